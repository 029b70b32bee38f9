"""P5: reading and checking large graphs."""
from benchmark import graphs
from benchmark.bench import at_most, interleave, median, ratio
from benchmark.nodes import label

SHAPES = ["chain", "wide", "layered"]
PROMPT_BYTES = 200


def rows(bench):
    for shape in SHAPES:
        files = {count: write(bench, shape, count) for count in (5_000, 50_000)}
        for name in bench.tools.omgs:
            yield growth(bench, shape, files, name)
    for nodes, what in ((1, "chain of one-node fragments"), (2, "chain of two-node fragments")):
        dags = {count: graphs.shape("chain", count) for count in (5_000, 50_000)}
        files = {count: bench.citing(dag, nodes, prompt_bytes=PROMPT_BYTES) for count, dag in dags.items()}
        for name in bench.tools.omgs:
            yield growth(bench, what, files, name)
    wide = write(bench, "wide", 50_000)
    for name in bench.tools.omgs:
        yield against_parse(bench, wide, name)


def write(bench, shape, count):
    return bench.graph(graphs.shape(shape, count), prompt_bytes=PROMPT_BYTES)


def growth(bench, shape, files, name):
    samples = interleave(
        7 if bench.long else 3,
        few=lambda: bench.omg(name, ["lint", files[5_000]]),
        many=lambda: bench.omg(name, ["lint", files[50_000]]),
    )
    many, few = samples["many"], samples["few"]
    measured = f"{median(many):.0f} ms, {median(many, 'peak_mb'):.0f} MB"
    what = f"lint, {shape}: 50,000 / 5,000{label(name)}"
    return at_most(what, measured, f"{median(few):.1f} ms", ratio(many, few), 14)


def against_parse(bench, wide, name):
    samples = interleave(
        7 if bench.long else 5,
        lint=lambda: bench.omg(name, ["lint", wide]),
        parse=lambda: bench.meter([bench.tools.yaml_parse, wide]),
    )
    walls = [f"{median(samples[it]):.0f} ms" for it in ("lint", "parse")]
    value = ratio(samples["lint"], samples["parse"])
    return at_most(f"lint, wide 50,000 / the YAML parse alone{label(name)}", *walls, value, 4.0)
