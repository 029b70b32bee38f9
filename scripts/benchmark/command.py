"""The command line of `scripts/bench`: what is measured, in which order, and how it is told."""
import argparse
import os
import time

from benchmark import history, kill, live, load, memory, nodes, peers, start, waiting
from benchmark.bench import Bench
from benchmark.build import build, clean, target_dir

SUITES = [
    ("P6", start.rows),
    ("P1", nodes.rows),
    ("P2", nodes.growth_rows),
    ("P3", peers.rows),
    ("P4", memory.rows),
    ("P5", load.rows),
    ("P7", history.rows),
    ("resume", history.resume_rows),
    ("P8", live.dashboard_rows),
    ("P9", live.feed_rows),
    ("frames", live.frame_rows),
    ("P10", kill.rows),
    ("P11", waiting.rows),
]


def main(description):
    options = parse(description)
    folder = os.path.join(target_dir(), "bench")
    if options.clean:
        return clean(folder)
    bench = Bench(build(folder, options.against), folder, options.long)
    wanted = options.rows.split(",") if options.rows else [name for name, _ in SUITES]
    begun, missed = time.monotonic(), []
    for name, suite in SUITES:
        if name in wanted:
            missed += tell(name, suite(bench))
    seconds = time.monotonic() - begun
    print(f"\n{seconds:.0f} s, load average {os.getloadavg()[0]:.2f}; missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def parse(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", metavar="P1,P2,...", help="measure these only")
    parser.add_argument("--long", action="store_true", help="every size, more repetitions")
    parser.add_argument("--against", default="", metavar="PATH", help="another omg to measure beside")
    parser.add_argument("--clean", action="store_true", help="remove what earlier measurements left, measure nothing")
    return parser.parse_args()


def tell(name, rows):
    """Prints rows as they come; returns the names of those that miss their goal."""
    missed = []
    print(f"\n## {name}\n\n| {'what':44} | {'measured':>26} | {'floor':>26} | {'goal':>12} | {'is':>8} | holds |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        verdict = {None: "-", True: "yes", False: "NO"}.get(row.holds, row.holds)
        figures = f"{row.measured:>26} | {row.floor:>26} | {row.goal:>12} | {row.value:>8}"
        print(f"| {row.what:44} | {figures} | {verdict:5} |", flush=True)
        if row.holds is False:
            missed.append(f"{name} {row.what}")
    return missed
