"""P1 and P2: what a node costs when the model answers at once, and how that grows."""
from benchmark import graphs
from benchmark.bench import at_most, interleave, median, ratio

GOALS = {100: 1.0, 1000: 0.6, 5000: 0.3}
SHAPES = [("chain", 1), ("fan", 10)]
REPETITIONS = {100: 9, 1000: 3, 5000: 1}
REPETITIONS_LONG = {100: 15, 1000: 7, 5000: 3}


def rows(bench):
    """Wall time a node, against the floor that syncs three times a node."""
    for count, goal in GOALS.items():
        for shape, slots in SHAPES:
            samples = measure(bench, shape, count, slots)
            floors = [f"{median(samples[keep]) / count:.3f}" for keep in ("strict", "promise", "bare")]
            for name in bench.tools.omgs:
                yield at_most(
                    f"{shape} {count}, {slots} at a time{label(name)}",
                    f"{median(samples[name]) / count:.3f} ms/node",
                    " / ".join(floors),
                    ratio(samples[name], samples["strict"]),
                    goal,
                )


def growth_rows(bench):
    """Own processor time a node at 5,000 against 100, and with long prompts against short ones."""
    for shape, slots in SHAPES:
        few, many = measure(bench, shape, 100, slots), measure(bench, shape, 5000, slots)
        for name in bench.tools.omgs:
            small, large = median(few[name], "own_cpu_ms") / 100, median(many[name], "own_cpu_ms") / 5000
            what = f"{shape}, own CPU a node: 5,000 / 100{label(name)}"
            yield at_most(what, f"{large:.3f} ms/node", f"{small:.3f} ms/node", large / small, 2.0)
    for name in bench.tools.omgs:
        yield from prompt_rows(bench, name)


def prompt_rows(bench, name):
    chain = graphs.shape("chain", 1000)
    short, long = bench.graph(chain), bench.graph(chain, prompt_bytes=2048)
    samples = interleave(
        7 if bench.long else 3, short=lambda: bench.run(name, short, 1), long=lambda: bench.run(name, long, 1)
    )
    for key, what in (("own_cpu_ms", "own CPU"), ("wall_ms", "wall")):
        measured, floor = (f"{median(samples[length], key) / 1000:.3f} ms/node" for length in ("long", "short"))
        value = ratio(samples["long"], samples["short"], key)
        yield at_most(f"chain 1000, {what}: 2 KB / 5 B prompts{label(name)}", measured, floor, value, 1.5)


def measure(bench, shape, count, slots):
    """Every omg and the floors on one graph; each combination is measured once and remembered."""
    key = (shape, count)
    if key not in bench.memo:
        graph = bench.graph(graphs.shape(shape, count))
        contestants = {name: lambda name=name: bench.run(name, graph, slots) for name in bench.tools.omgs}
        for keep in ("strict", "promise", "bare"):
            contestants[keep] = lambda keep=keep: bench.floor(keep, count, slots, graph)
        repetitions = (REPETITIONS_LONG if bench.long else REPETITIONS)[count]
        bench.memo[key] = interleave(repetitions, **contestants)
    return bench.memo[key]


def label(name):
    return "" if name == "omg" else f" ({name})"
