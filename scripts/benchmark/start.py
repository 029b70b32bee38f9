"""P6: what it costs to start the program and do next to nothing."""
import os

from benchmark import graphs
from benchmark.bench import at_most, interleave, median, ratio
from benchmark.nodes import label

BINARY_MB = 8


def rows(bench):
    graph = bench.graph(graphs.shape("layered", 8), prompt_bytes=1500)
    commands = {"version": (["version"], 1.5), "lint of 8 nodes": (["lint", graph], 2.0)}
    for what, (words, goal) in commands.items():
        contestants = {name: lambda name=name, words=words: bench.omg(name, words) for name in bench.tools.omgs}
        contestants["hello"] = lambda: bench.meter([bench.tools.hello])
        samples = interleave(101 if bench.long else 41, **contestants)
        for name in bench.tools.omgs:
            measured = f"{median(samples[name]):.2f} ms, {median(samples[name], 'peak_mb'):.1f} MB"
            floor = f"hello {median(samples['hello']):.2f} ms"
            yield at_most(f"{what}{label(name)}", measured, floor, ratio(samples[name], samples["hello"]), goal)
    for name, path in bench.tools.omgs.items():
        size = os.path.getsize(path) / 1e6
        yield at_most(f"size of the binary{label(name)}", f"{size:.2f} MB", "", size, BINARY_MB, "MB")
