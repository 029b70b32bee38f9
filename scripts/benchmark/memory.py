"""P4: how much memory the engine needs, and what huge outputs cost."""
from benchmark import graphs
from benchmark.bench import at_most, interleave, median, ratio
from benchmark.nodes import label, measure

PEAK_MB = {1000: 16, 5000: 32}
#: What an output that is not kept may add to the peak: rings, pipes and allocator slack.
SLACK_MB = 4
MB = 1_000_000


def rows(bench):
    for count, goal in PEAK_MB.items():
        samples = measure(bench, "chain", count, 1)
        for name in bench.tools.omgs:
            peak = median(samples[name], "peak_mb")
            yield at_most(f"peak, chain {count}{label(name)}", f"{peak:.1f} MB", "", peak, goal, "MB")
    for name in bench.tools.omgs:
        yield from flat_rows(bench, name)
        yield from reply_rows(bench, name)


def flat_rows(bench, name):
    """What is not kept whole costs no memory."""
    quiet = bench.graph([("a", [])])
    cases = {
        "300 MB of stderr": bench.graph([("a", [])], prompts={"a": f"STUB err={300 * MB}"}),
        "verify prints 300 MB": bench.graph([("a", [])], extra=verified_by(f"head -c {300 * MB} /dev/zero")),
    }
    for what, graph in cases.items():
        samples = interleave(3, quiet=lambda: bench.run(name, quiet, 1), loud=lambda: bench.run(name, graph, 1))
        peak, base = (median(samples[it], "peak_mb") for it in ("loud", "quiet"))
        wall = f"{peak:.1f} MB, {median(samples['loud']):.0f} ms"
        yield at_most(f"peak, {what}{label(name)}", wall, f"{base:.1f} MB", peak - base, SLACK_MB, "MB")


def verified_by(command):
    return ["success_check:", "  verify:", f"    command: {command}"]


def reply_rows(bench, name):
    """A reply is kept whole; its cost must be linear."""
    graphs_of = {size: bench.graph([("a", [])], prompts={"a": f"STUB out={size * MB}"}) for size in (50, 100)}
    samples = interleave(
        5 if bench.long else 3,
        small=lambda: bench.run(name, graphs_of[50], 1),
        large=lambda: bench.run(name, graphs_of[100], 1),
    )
    small, large = samples["small"], samples["large"]
    peak = median(small, "peak_mb")
    yield at_most(f"peak, reply of 50 MB{label(name)}", f"{peak:.0f} MB", "50 MB", peak / (50 * MB / 2**20), 3.0)
    walls = [f"{median(it):.0f} ms" for it in (large, small)]
    yield at_most(f"wall, reply of 100 MB / 50 MB{label(name)}", *walls, ratio(large, small), 2.5)
