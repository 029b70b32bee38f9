"""P7: listing many runs and showing one; and how soon a resume of a large run begins its first node."""
import os
import shutil

from benchmark import graphs
from benchmark.bench import Row, at_most, interleave, median, ratio
from benchmark.nodes import label

RUNS = 10_000
#: A run of eight nodes with prompts of a person's length is 24 KB.
NODES, PROMPT_BYTES = 8, 1500
LARGE = 5_000


def rows(bench):
    for name in bench.tools.omgs:
        home = many_runs(bench, name, RUNS)
        repetitions = 9 if bench.long else 5
        list_runs = ["runs", "list"]
        cold = interleave(
            repetitions,
            omg=lambda: without_index(bench, name, home, list_runs),
            skim=lambda: floor(bench, home, "skim"),
        )
        yield row(f"runs list, {RUNS:,} runs, no index{label(name)}", cold, "skim", 2)
        warm = interleave(
            repetitions,
            omg=lambda: bench.omg(name, list_runs, home=home),
            stat=lambda: floor(bench, home, "stat"),
        )
        yield row(f"runs list, {RUNS:,} runs, warm index{label(name)}", warm, "stat", 4)
        some = sorted(os.listdir(os.path.join(home, "runs")))[RUNS // 2]
        shown = interleave(
            41,
            omg=lambda: bench.omg(name, ["show", some], home=home),
            start=lambda: bench.omg(name, ["version"], home=home),
        )
        yield row(f"show, one of {RUNS:,} runs{label(name)}", shown, "start", 2)


def row(what, samples, under, goal):
    measured = f"{median(samples['omg']):.2f} ms, {median(samples['omg'], 'peak_mb'):.0f} MB"
    return at_most(what, measured, f"{under} {median(samples[under]):.2f} ms", ratio(samples["omg"], samples[under]), goal)


def floor(bench, home, mode):
    return bench.meter([bench.tools.kit, "history", "--root", os.path.join(home, "runs"), "--mode", mode])


def without_index(bench, name, home, words):
    index = os.path.join(home, "cache", "runs")
    if os.path.exists(index):
        # Moved, not removed: see the note on freed inodes in the head of scripts/bench.
        os.rename(index, os.path.join(bench.fresh("index"), "runs"))
    return bench.omg(name, words, home=home)


def many_runs(bench, name, count):
    """A home with copies of one real run, each with an id of its own."""
    home, run = run_once(bench, name, graphs.shape("layered", NODES), prompt_bytes=PROMPT_BYTES)
    old = os.path.basename(run).encode()
    files = {it: read(os.path.join(run, it)) for it in os.listdir(run) if os.path.isfile(os.path.join(run, it))}
    for number in range(count - 1):
        minute, second = divmod(number, 60)
        day, minute = divmod(minute, 24 * 60)
        new = f"202401{day + 1:02d}-{minute // 60:02d}{minute % 60:02d}{second:02d}.{number + 1:09d}-1"
        folder = os.path.join(home, "runs", new)
        os.mkdir(folder)
        for it, text in files.items():
            with open(os.path.join(folder, it), "wb") as file:
                file.write(text.replace(old, new.encode()))
    os.sync()
    return home


def run_once(bench, name, dag, expect=0, **settings):
    home = bench.fresh("home")
    bench.omg(name, ["run", bench.graph(dag, **settings), "--no-web", "--concurrency", "10"], expect, home=home)
    runs = os.path.join(home, "runs")
    return home, os.path.join(runs, os.listdir(runs)[0])


def read(path):
    with open(path, "rb") as file:
        return file.read()


def resume_rows(bench):
    """Against the same program reading the same files once, `show`; how far both are from a skim has no goal."""
    for name in bench.tools.omgs:
        dag = graphs.shape("layered", LARGE)
        prompts = {dag[-1][0]: "STUB fail=1"}
        home, run = run_once(bench, name, dag, expect=1, prompt_bytes=200, prompts=prompts)
        samples = interleave(
            9 if bench.long else 5,
            resume=lambda: resume(bench, name, home),
            show=lambda: bench.omg(name, ["show", os.path.basename(run)], home=home),
            skim=lambda: floor(bench, home, "skim"),
        )
        what = f"resume of {LARGE:,} nodes{label(name)}"
        measured = f"first node after {median(samples['resume']):.1f} ms"
        shown, skimmed = (f"{it} {median(samples[it]):.1f} ms" for it in ("show", "skim"))
        yield at_most(what, measured, shown, ratio(samples["resume"], samples["show"]), 3)
        yield Row(what, measured, skimmed, value=f"{ratio(samples['resume'], samples['skim']):.2f}")


def resume(bench, name, home):
    """Resumes a copy of the run whose last node failed."""
    copy = os.path.join(bench.fresh("resume"), "home")
    shutil.copytree(home, copy)
    runs = os.path.join(copy, "runs")
    run = os.listdir(runs)[0]
    feed = os.path.join(runs, run, "events.jsonl")
    command = [bench.tools.omgs[name], "resume", run, "--retry-failed", "--no-web"]
    return bench.kit([bench.tools.kit, "first", "--feed", feed, "--", *command], env=bench.omg_env(copy))
