"""What `omg auto` makes of a goal through a real CLI: the plan, the ceiling that its nodes run under, and what of a
person's own they are given.

Four goals, whose plans are in answers.json. SCOPE, on each CLI, is two nodes that try what they may and what they may not,
once more with --accept-loaded-user-config, which shows that the first time it was the ceiling that held. REPAIR, on each,
is a plan that is refused and bought once more. STAGING, on claude, is nodes that run as an agent of the person, use a skill
of theirs, and find nothing of the repository's. INTERRUPT, on claude, is a run that Ctrl-C ends and a second leg goes on
with, under the same ceiling and without skills. All plan in a place where person and repository have laid out what a
planned node is to be kept from.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from real_cli.table import PASS, dollars

RUN_SECONDS_MAX = 120
# What the person has. The standing permission would let every command run.
HOME = {
    ".claude/settings.json": '{"permissions": {"allow": ["Bash(*)"]}}',
    ".claude/agents/code-reviewer.md": "---\nname: code-reviewer\ndescription: Reviews\ntools: Read\n"
    "permissionMode: bypassPermissions\nhooks: {SessionStart: [{hooks: [{type: command, command: touch ../hooked}]}]}\n"
    "mcpServers: {planted: {command: touch, args: [../served]}}\n---\nSTAGED-AGENT\n",
    ".claude/skills/asking/SKILL.md": "---\nname: asking\ndescription: Asks\nallowed-tools: Bash(touch *)\n---\nASKING-SKILL\n",
    ".claude/skills/greeting/SKILL.md": "---\nname: greeting\ndescription: Greets\n---\nSTAGED-SKILL\n",
}
# What the repository has: an agent of the same name as the person's, an agent and a skill besides, and a document.
WORK = {
    ".claude/agents/code-reviewer.md": "---\nname: code-reviewer\ndescription: Reviews\n---\nPLANTED-AGENT\n",
    ".claude/agents/planted-checker.md": "---\nname: planted-checker\ndescription: Checks\n---\nPLANTED-AGENT\n",
    ".claude/skills/planted/SKILL.md": "---\nname: planted\ndescription: Plants\n---\nPLANTED-SKILL\n",
    "CLAUDE.md": "PLANTED-DOCUMENT\n",
    "AGENTS.md": "PLANTED-DOCUMENT\n",
}
# A server that says when it is started, which the person's config.toml has.
CODEX_SERVER = '\n[mcp_servers.planted]\ncommand = "sh"\nargs = ["-c", "echo started >> {log}"]\n'
# A planned node ignores config.toml and with it the provider, which it is given on the command line here.
CODEX_SHIM = """#!/bin/sh
case " $* " in *" --ignore-user-config "*) ;; *) exec {real} "$@" ;; esac
shift
exec {real} exec -c 'model="stub-model"' -c 'model_provider="stub"' -c analytics.enabled=false -c features.plugins=false \\
  -c 'model_providers.stub={{name="stub",base_url="{stub}/v1",wire_api="responses"}}' "$@"
"""
SCOPE = {"scoped": dict(verdict=PASS, calls=3), "later": dict(verdict=PASS, calls=3)}
STAGING = {
    "review-work": dict(verdict=PASS, calls=1),
    "greet": dict(verdict=PASS, calls=2),
    "planted-checker": dict(verdict=PASS, calls=1),
}
REPAIR = {"mended": dict(verdict=PASS, calls=1)}
# The first leg asked for the nap, the second one for it and for two things more.
INTERRUPT = {"before": dict(verdict=PASS, calls=1), "nap": dict(verdict=PASS, calls=1 + 3)}
# What there is afterwards. Both CLIs let a node touch a file below its directory although it lists nothing but git: claude
# since the mode of `later` is auto, which its plan screen says, codex since its sandbox knows no commands.
MADE = ["inside", "later", "unlisted.txt"]
# With the opt-in the person's standing permission counts; codex's sandbox stays as it is.
MADE_LOADED = {"claude": ["../outside.txt", *MADE], "codex": MADE}
REFUSED = r"scoped.*claude refused a tool call \(Bash: touch \.\./outside\.txt\)"


class Requests:
    """The bodies of what a CLI has asked the model since this was made."""

    def __init__(self, folder):
        self.folder, self.before = folder, set(os.listdir(folder))

    def holding(self, word):
        names = sorted(set(os.listdir(self.folder)) - self.before)
        texts = [(self.folder / name).read_text() for name in names if name.endswith(".json")]
        return [json.loads(text)["body"] for text in texts if word in text]


def holds(requests, word):
    return any(word in json.dumps(request) for request in requests)


def offered(requests):
    """The tools that were offered, but for the placeholder that a newer claude adds."""
    names = {tool.get("name", tool.get("type")) for request in requests for tool in request.get("tools", [])}
    return sorted(names - {"DeferredToolPlaceholder"})


def write_all(folder, files):
    for name, says in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(says)


def prepare(space, runtime, stub):
    (space.path / "aside.txt").write_text("ATTACHED-FILE\n")
    write_all(space.home, HOME)
    write_all(space.work, WORK)
    if runtime == "codex":
        with open(space.home / ".codex" / "config.toml", "a") as config:
            config.write(CODEX_SERVER.format(log=space.path / "servers"))
        shim = space.path / "bin" / "codex"
        shim.parent.mkdir()
        shim.write_text(CODEX_SHIM.format(real=shutil.which("codex", path=space.env["PATH"]), stub=stub))
        shim.chmod(0o755)
        space.env["PATH"] = f"{shim.parent}:{space.env['PATH']}"


def auto(table, runtime, space, goal, call, wanted, *flags):
    """Plans `goal` and runs it: one call of the planner, which asks the model twice, and the nodes. Returns what was said
    and what was asked."""
    what, requests = " ".join([goal, *flags]), Requests(space.dumped)
    child = space.start(what, "auto", goal, "--runtime", runtime, "--no-web", *flags)
    table.equal(f"{what}: exit code", 0, child.wait(RUN_SECONDS_MAX))
    state = space.state()
    usage, unknown = state.get("planning_usage", {}), state.get("planning_cost_unknown", False)
    cost = "unknown" if unknown else dollars(state.get("planning_cost_usd", 0))
    table.equal("planning", "200+40 tokens, " + ("unknown" if runtime == "codex" else dollars(2 * call)),
                f"{usage.get('input_tokens', 0)}+{usage.get('output_tokens', 0)} tokens, {cost}")
    table.records(runtime, call, wanted, state["nodes"])
    table.equal("left in the process table", [], space.left())
    return space.log(what), requests


def scope(table, runtime, space, call):
    places = ("../outside.txt", "inside", "later", "planner.txt", "unlisted.txt")
    made = lambda: [name for name in places if (space.work / name).exists()]
    servers = lambda: (space.path / "servers").read_text().split().count("started")

    log, requests = auto(table, runtime, space, "SCOPE", call, SCOPE)
    table.equal("made", MADE, made())
    table.equal("document: planner, nodes", (True, False), seen_by_planner_and_nodes(requests))
    table.equal("file attached", False, holds(requests.holding("PLANNED-SCOPED"), "ATTACHED-FILE"))
    if runtime == "claude":
        table.said("refused", REFUSED, log)
        table.equal("tools", ["Bash", "Read", "Skill"], offered(requests.holding("PLANNED-SCOPED")))
    else:
        table.equal("servers, of the planner", 1, servers())

    log, requests = auto(table, runtime, space, "SCOPE", call, SCOPE, "--accept-loaded-user-config")
    table.equal("made", MADE_LOADED[runtime], made())
    table.equal("document: planner, nodes", (True, True), seen_by_planner_and_nodes(requests))
    if runtime == "codex":
        table.equal("servers, of both and nodes", 1 + 3, servers())


def seen_by_planner_and_nodes(requests):
    """Whether either was shown the repository's document."""
    return tuple(holds(requests.holding(word), "PLANTED-DOCUMENT") for word in ("You plan work", "PLANNED-"))


def staging(table, space, call):
    log, requests = auto(table, "claude", space, "STAGING", call, STAGING)
    table.said("agent", "review-work runs as code-reviewer", log)
    table.said("skills", "skills are ENABLED on 2 of 3 nodes: greet, planted-checker", log)
    table.equal("tools of the agent", ["Read"], offered(requests.holding("PLANNED-REVIEW")))
    table.equal("of the agent's head", [], [name for name in ("hooked", "served") if (space.path / name).exists()])
    table.equal("skill, staged", True, holds(requests.holding("PLANNED-GREET"), "STAGED-SKILL"))
    table.said("skill that asks", r"asking: .*allowed-tools in its head", log)
    table.said("refused", r"greet.*claude refused a tool call \(Skill: asking\)", log)
    table.equal("skill, asking", False, holds(requests.holding("PLANNED-GREET"), "ASKING-SKILL"))
    table.equal("anything planted", False, holds(requests.holding("PLANNED-"), "PLANTED-"))


def repair(table, runtime, space, call):
    """The two calls of the planner ask the model once each, which costs what the one call of the other plans does."""
    log, requests = auto(table, runtime, space, "REPAIR", call, REPAIR)
    told = "unknown" if runtime == "codex" else re.escape(dollars(call))
    table.said("planned twice", f"the first reply was refused and cost {told}", log)
    table.said("refused", r'! node "mended": allowed_tools: "Bash\(\*\)" is not one of', log)
    table.equal("calls of the planner", 2, len(requests.holding("You plan work")))
    table.equal("of them told why", 1, len(requests.holding("validator refusals")))


def interrupt(table, space, call, seconds):
    """Ctrl-C while a planned node runs a command that it may run, and a second leg."""
    goal, requests = f"INTERRUPT {seconds}", Requests(space.dumped)
    child = space.start(goal, "auto", goal, "--no-web")
    until = time.monotonic() + 60
    while f"sleep {seconds}" not in space.left() and time.monotonic() < until and child.poll() is None:
        time.sleep(0.05)
    table.equal("INTERRUPT: a command runs", True, f"sleep {seconds}" in space.left())
    child.send_signal(signal.SIGINT)
    table.equal("INTERRUPT: exit code", 130, child.wait(30))
    table.equal("left in the process table", [], space.left())
    record = space.state()["nodes"].get("nap", {})
    table.equal("record", ("FAIL", "interrupted"), (record.get("verdict"), record.get("cause")))
    table.equal("tools", ["Bash", "Read", "Skill"], offered(requests.holding("PLANNED-NAP")))

    (space.work / "wake").touch()
    requests = Requests(space.dumped)
    child = space.start("resume", "resume", "latest", "--retry-failed", "--no-web")
    table.equal("resumed: exit code", 0, child.wait(RUN_SECONDS_MAX))
    table.records("claude", call, INTERRUPT, space.state()["nodes"])
    table.said("skills", "that leg gave 2 nodes 2 skills of yours: before, nap", space.log("resume"))
    table.said("refused", r"nap.*claude refused a tool call \(Bash: touch \.\./again\.txt\)", space.log("resume"))
    table.equal("made", False, (space.path / "again.txt").exists())
    table.equal("tools", ["Bash", "Read"], offered(requests.holding("PLANNED-NAP")))
    table.equal("asked again of what passed", 0, len(requests.holding("PLANNED-BEFORE")))
    table.equal("left in the process table", [], space.left())
    table.equal("copies left", [], os.listdir(space.path / "omg" / "staged"))


def planted_agent(table, space):
    """What the staging rests on: claude itself knows a repository's agent, and under isolation no more. And it attaches
    what a prompt names after an @, which no planned node's prompt has it do."""
    def ask(*words):
        ran = subprocess.run(["claude", "-p", "PLANTED? @../aside.txt", "--output-format", "json", "--agent",
                              "planted-checker", *words],
                             cwd=space.work, env=space.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             check=False, executable=shutil.which("claude", path=space.env["PATH"]))
        return ran.returncode, (ran.stdout + ran.stderr).splitlines()

    requests = Requests(space.dumped)
    code, said = ask()
    table.said("planted agent", '"result":"PLANTED-AGENT answers"', said)
    table.equal("planted agent: exit code", 0, code)
    table.equal("claude itself attaches", True, holds(requests.holding("PLANTED?"), "ATTACHED-FILE"))
    code, said = ask("--setting-sources", "")
    table.said("planted agent, isolated", "'planted-checker' not found", said)
    table.equal("isolated: exit code", 1, code)


def drive(table, runtime, space, stub, call, seconds):
    """Everything that is planned; `call` is the price of one call of the model."""
    prepare(space, runtime, stub)
    scope(table, runtime, space, call)
    repair(table, runtime, space, call)
    if runtime == "claude":
        staging(table, space, call)
        interrupt(table, space, call, seconds)
        planted_agent(table, space)
