"""P8 and P9: the live view. A dashboard of a thousand runs, how soon a line of a feed reaches who follows it, and how smooth the
page of a run is meanwhile."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from benchmark import graphs
from benchmark.bench import NEAR, NOISE, Row, at_most, interleave, median
from benchmark.history import floor, many_runs, without_index
from benchmark.nodes import label

RUNS = 1_000
TABS = 10
EVENTS = 100
#: How long an idle server is watched, in seconds, and how long after the last request it is one.
IDLE, CALM = 10, 16
#: The run that streams into a page: its size, and how long each node takes, ten at a time.
NODES, SLEEP_MS = 1_000, 50
FRAMES_A_SECOND = 30
HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = os.path.join(HERE, "../../tests/web")


def dashboard_rows(bench):
    for name in bench.tools.omgs:
        home = many_runs(bench, name, RUNS)
        skims = interleave(5, skim=lambda: floor(bench, home, "skim"))["skim"]
        firsts, repeats = [], []
        for _ in range(5 if bench.long else 3):
            without_index(bench, name, home, ["version"])
            with Server(bench, name, home) as server:
                firsts.append(server.get("/api/cards"))
                repeats.append(min(server.get("/api/cards") for _ in range(3)))
        skim = median(skims)
        first, repeat = sorted(firsts)[len(firsts) // 2], sorted(repeats)[len(repeats) // 2]
        what = f"cards of {RUNS:,} runs{label(name)}"
        yield at_most(f"first {what}", f"{first:.1f} ms", f"skim {skim:.1f} ms", first / skim, 3)
        yield at_most(f"again {what}", f"{repeat:.2f} ms", "", repeat, 10, "ms")
        with Server(bench, name, home) as server:
            tabs = [server.stream("/api/cards/events", b"cards_ready") for _ in range(TABS)]
            time.sleep(CALM)
            cpu, wakes = server.idle(IDLE)
            yield at_most(f"idle, {TABS} tabs{label(name)}", f"{cpu * 60:.3f} s a minute", "", cpu * 60, 0.2, "s")
            per_tab = wakes / TABS
            yield at_most(f"idle, {TABS} tabs: wake-ups a tab{label(name)}", f"{wakes:.1f} /s in all", "", per_tab, 5, "/s")
            some = sorted(os.listdir(os.path.join(home, "runs")))[RUNS // 2]
            feed = os.path.join(home, "runs", some, "events.jsonl")
            with open(feed, "a") as file:
                file.write('{"schema":3,"ts":"2026-01-02T03:04:05Z","run_id":"r","event":"run_started"}\n')
            took = server.follow(feed, path="/api/cards/events", ready="cards_ready", card="1", events=50, gap_ms=60)
            yield reached(f"change to card{label(name)}", took, 20)
            for tab in tabs:
                tab.close()


def feed_rows(bench):
    for name in bench.tools.omgs:
        for clients, stuck, goal in [(1, 0, 10), (50, 0, 10), (200, 0, 20), (50, 5, 10)]:
            home = many_runs(bench, name, 1)
            run = os.listdir(os.path.join(home, "runs"))[0]
            feed = os.path.join(home, "runs", run, "events.jsonl")
            with Server(bench, name, home, run) as server:
                took = server.follow(feed, path="/api/events", ready="caught_up", clients=clients, stuck=stuck, events=EVENTS)
            beside = f" beside {stuck} stuck" if stuck else ""
            yield reached(f"append to client, {clients}{beside}{label(name)}", took, goal)


def frame_rows(bench):
    """A browser of its own draws on the processors that the run needs as well: the page is measured where it has least."""
    for name in bench.tools.omgs:
        what = f"frames while {NODES:,} nodes stream{label(name)}"
        if not shutil.which("node") or not shutil.which("chromium"):
            yield Row(what, "no node or chromium here", goal=f">= {FRAMES_A_SECOND} /s")
            continue
        if not os.path.isdir(os.path.join(PAGES, "node_modules")):
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=PAGES, check=True)
        tries = sorted((streamed(bench, name) for _ in range(3)), key=lambda seen: seen["frames"] / seen["seconds"])
        seen = tries[1]
        rate = seen["frames"] / seen["seconds"]
        holds = rate >= FRAMES_A_SECOND or (rate >= FRAMES_A_SECOND * (1 - NOISE) and NEAR)
        measured = f"95 % in {seen['p95_ms']:.0f} ms, all in {seen['longest_ms']:.0f}"
        yield Row(what, measured, f"idle {seen['idle']:.0f} /s", f">= {FRAMES_A_SECOND} /s", f"{rate:.1f}", holds)


def streamed(bench, name):
    """What the browser saw of a run from its beginning to its end."""
    layered = graphs.shape("layered", NODES)
    graph = bench.graph(layered, prompts={node: f"STUB sleep={SLEEP_MS}" for node, _ in layered})
    home = bench.fresh("home")
    words = [bench.tools.omgs[name], "run", graph, "--no-web", "--concurrency", "10"]
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True}
    with Server(bench, name, home) as server:
        run = subprocess.Popen(words, env=bench.omg_env(home), stdout=subprocess.PIPE, **quiet)
        id = next(found[1] for line in run.stdout if (found := re.search(r"\(run ([^)]+)\)", line)))
        url = f"http://127.0.0.1:{server.port}/run/{id}/"
        watched = subprocess.run(["node", os.path.join(HERE, "frames.mjs"), url], stdout=subprocess.PIPE, check=True, text=True)
        run.communicate()
    return json.loads(watched.stdout)


def reached(what, took, goal):
    if took["got"] < took["want"]:
        return Row(what, f"{took['got']} of {took['want']} arrived", goal=f"<= {goal} ms", holds=False)
    return at_most(what, f"p50 {took['p50_ms']:.2f} ms", "", took["p99_ms"], goal, "ms")


class Server:
    """An `omg serve` of a home, from when it answers to when it has ended."""

    def __init__(self, bench, name, home, run=None):
        self.bench, self.port = bench, free_port()
        words = [bench.tools.omgs[name], "serve", *([run] if run else []), "--port", str(self.port), "--no-open"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, env=bench.omg_env(home), **quiet)

    def __enter__(self):
        until = time.monotonic() + 15
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise SystemExit("the server did not begin") from None
                time.sleep(0.005)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)

    def get(self, path):
        """Asks for a page and returns how many milliseconds it took."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 200, answer.status
        return (time.monotonic() - begun) * 1000

    def stream(self, path, ready):
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        read = b""
        while ready not in read:
            read = read[-len(ready) :] + peer.recv(1 << 16)
        return peer

    def idle(self, seconds):
        """What the server takes with nothing to do: its share of one core, and how often a second its threads wake up."""
        cpu, wakes = self.cpu(), self.wakes()
        time.sleep(seconds)
        woken = sum(max(0, n - wakes.get(thread, 0)) for thread, n in self.wakes().items())
        return (self.cpu() - cpu) / seconds, woken / seconds

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wakes(self):
        """How often each thread has waited for something so far."""
        threads = f"/proc/{self.process.pid}/task"
        found = {}
        for thread in os.listdir(threads):
            # One that has just ended is none.
            with contextlib.suppress(OSError), open(f"{threads}/{thread}/status") as file:
                found[thread] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])
        return found

    def follow(self, feed, **settings):
        flags = {"port": self.port, "feed": feed, **settings}
        words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return self.bench.kit([self.bench.tools.kit, "follow", *words])


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
