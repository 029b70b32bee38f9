"""P11: what the engine adds to nodes that take their time."""
from benchmark import graphs
from benchmark.bench import at_most, interleave, median
from benchmark.nodes import label

COUNT, SLOTS, SLEEP_MS = 502, 10, 50
LATENESS_MS, CPU_MS = 0.2, 20


def rows(bench):
    for name in bench.tools.omgs:
        yield lateness(bench, name)
    for name in bench.tools.omgs:
        yield idleness(bench, name)


def lateness(bench, name):
    """Against the fan's ideal: its first node, full rounds of its middle, its last node. The floor runs as many nodes
    without a graph, in as many full rounds and one of two."""
    fan = graphs.shape("fan", COUNT)
    graph = bench.graph(fan, prompts={node: f"STUB sleep={SLEEP_MS}" for node, _ in fan})
    ideal = (2 + (COUNT - 2) / SLOTS) * SLEEP_MS
    samples = interleave(
        5 if bench.long else 3,
        omg=lambda: bench.run(name, graph, SLOTS),
        floor=lambda: bench.floor("promise", COUNT, SLOTS, graph, prompt=f"STUB sleep={SLEEP_MS}"),
    )
    late = (median(samples["omg"]) - ideal) / COUNT
    floor = (median(samples["floor"]) - (ideal - SLEEP_MS)) / COUNT
    what = f"fan {COUNT} x {SLEEP_MS} ms: lateness a node{label(name)}"
    return at_most(what, f"{median(samples['omg']):.0f} ms", f"{floor:.2f} ms", late, LATENESS_MS, "ms")


def idleness(bench, name):
    wide = graphs.shape("wide", SLOTS)
    graphs_of = [bench.graph(wide, prompts={node: f"STUB sleep={ms}" for node, _ in wide}) for ms in (10_000, 1)]
    waiting, brief = (bench.run(name, graph, SLOTS)["own_cpu_ms"] for graph in graphs_of)
    what = f"10 children for 10 s: own CPU{label(name)}"
    return at_most(what, f"{waiting:.1f} ms", f"{brief:.1f} ms for 1 ms", waiting - brief, CPU_MS, "ms")
