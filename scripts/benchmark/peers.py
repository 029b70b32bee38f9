"""P3: the same chain and the same model's stand-in, run by build tools that keep no state."""
import os
import shutil
import subprocess

from benchmark import graphs
from benchmark.bench import Row, at_most, interleave, median, ratio
from benchmark.nodes import label

GOALS = {"ninja": 1.0, "make": 4.0}
COUNT = 1000


def rows(bench):
    chain = graphs.shape("chain", COUNT)
    graph, folder = bench.graph(chain), bench.fresh("peer")
    graphs.write_makefile(folder, chain, bench.tools.stub)
    graphs.write_ninja(folder, chain, bench.tools.stub)
    contestants = {name: lambda name=name: bench.run(name, graph, 1) for name in bench.tools.omgs}
    present = [tool for tool in GOALS if find(tool)]
    for tool in present:
        contestants[tool] = lambda tool=tool: peer(bench, tool, folder)
    samples = interleave(7 if bench.long else 5, **contestants)
    for tool, goal in GOALS.items():
        if tool not in present:
            yield Row(f"chain {COUNT} against {tool}", "not installed")
            continue
        for name in bench.tools.omgs:
            measured, floor = (f"{median(samples[it]) / COUNT:.3f} ms/node" for it in (name, tool))
            value = ratio(samples[name], samples[tool])
            yield at_most(f"chain {COUNT} against {tool}{label(name)}", measured, floor, value, goal)


def peer(bench, tool, folder):
    """ninja builds what has no output again and again, and make's targets are phony: both run every command."""
    took = bench.meter([tool, "-C", folder, "-j1"])
    if took["exit"] != 0:
        raise SystemExit(f"{tool} exited with {took['exit']}")
    return took


def find(tool):
    """Whether the tool is there, after an attempt to install it."""
    if not shutil.which(tool) and shutil.which("apt-get") and os.geteuid() == 0:
        package = {"ninja": "ninja-build"}.get(tool, tool)
        subprocess.run(["apt-get", "install", "-y", "-qq", package], stdout=subprocess.DEVNULL, check=False)
    return shutil.which(tool)
