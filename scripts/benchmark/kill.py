"""P10: what is left of a run that ends before its time, with ten children in flight."""
import math
import time

from benchmark.bench import Row, median
from benchmark.nodes import label

#: What the stand-in does, and how many processes called after the model are then in flight.
CHILDREN = {
    "plain": ("", 10),
    "ignore TERM and INT": ("ignterm=1", 10),
    "and a grandchild": ("ignterm=1 grand=1", 19),
    "and a grandchild in its own session": ("ignterm=1 grand=2", 19),
}
#: `kill` ends the engine alone; what it leaves is its guard's to end.
WAYS = ["fail", "int", "term", "kill"]
#: The steps of the ladder that ends a child: after INT, after TERM. Only who ignores both lives as long.
LADDER_MS = {"plain": 0}
LADDER_OTHERWISE_MS = 3000 + 2000
#: The same for the guard, which ends what an engine leaves that was killed, and is counted among what has to be gone.
GUARD_LADDER_MS = 200
ALLOWANCE_MS = 60


def rows(bench):
    for children, (behaviour, want) in CHILDREN.items():
        for way in WAYS:
            for name in bench.tools.omgs:
                yield cell(bench, name, children, way, behaviour, want)


def cell(bench, name, children, way, behaviour, want):
    dag = [(f"k{number}", []) for number in range(10)]
    prompts = {node: f"STUB sleep=30000 gsleep=25000 {behaviour}" for node, _ in dag}
    if way == "fail":
        prompts["k9"] = "STUB sleep=1500 fail=1"
    graph = bench.graph(dag, prompts=prompts)
    seen = [watch(bench, name, graph, way, want) for _ in range(3 if bench.long else 1)]
    bound = ladder_ms(children, way) + ALLOWANCE_MS
    left = max(it["left"] for it in seen)
    gone = median([{**it, "all_gone_ms": it["all_gone_ms"] or math.inf} for it in seen], "all_gone_ms")
    holds = all(it["reached"] for it in seen) and left == 0 and gone <= bound
    what, processes = f"{way}: {children}{label(name)}", f"{seen[0]['processes']} processes"
    return Row(what, f"all gone {gone:.1f} ms", processes, f"0, {bound} ms", f"{left} left", holds)


def ladder_ms(children, way):
    if way == "kill":
        return LADDER_MS.get(children, GUARD_LADDER_MS)
    return LADDER_MS.get(children, LADDER_OTHERWISE_MS)


def watch(bench, name, graph, way, want):
    settings = ["--mark", str(time.monotonic_ns()), "--want", str(want), "--how", way]
    run = [bench.tools.omgs[name], "run", graph, "--no-web", "--concurrency", "10"]
    return bench.kit([bench.tools.kit, "kill", *settings, "--", *run], env=bench.omg_env())
