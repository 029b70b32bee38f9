"""What every suite works with: places, single measurements, interleaved ones, and the row they end in."""
import itertools
import json
import os
import statistics
import subprocess
import time
from dataclasses import dataclass, field

from benchmark import graphs


# A time that misses its goal by less may owe that to the machine.
NOISE = 0.15
NEAR = "near"


@dataclass
class Row:
    """One line of the result; `holds` is None where nothing was measured or no goal is set, NEAR within the noise."""

    what: str
    measured: str
    floor: str = ""
    goal: str = ""
    value: str = ""
    holds: object = None


@dataclass
class Bench:
    """The built programs, a work folder of this run's own, and how thorough to be."""

    tools: object
    folder: str
    long: bool
    memo: dict = field(default_factory=dict)
    numbers: object = field(default_factory=itertools.count)

    def __post_init__(self):
        self.work = os.path.join(self.folder, "work", time.strftime("%Y%m%d-%H%M%S") + f"-{os.getpid()}")
        os.makedirs(self.work)
        # What was built or removed a moment ago is still being written; it would be measured with the first row.
        os.sync()

    def fresh(self, name):
        """A new empty folder; never one whose files were deleted."""
        path = os.path.join(self.work, f"{name}-{next(self.numbers)}")
        os.makedirs(path)
        return path

    def graph(self, dag, **settings):
        path = os.path.join(self.fresh("graph"), "g.yaml")
        graphs.write_graph(path, dag, **settings)
        return path

    def citing(self, dag, nodes, **settings):
        path = os.path.join(self.fresh("citing"), "g.yaml")
        graphs.write_citing(path, dag, nodes, **settings)
        return path

    def meter(self, words, timeout=300, cwd=None, env=None):
        """Runs a command; returns wall_ms, own_cpu_ms, tree_cpu_ms, peak_mb, exit."""
        errors = os.path.join(self.work, "stderr")
        command = [self.tools.kit, "meter", "--timeout", str(timeout), "--stderr", errors, "--", *words]
        took = self.kit(command, cwd=cwd, env=env)
        if not took["in_time"]:
            raise SystemExit(f"{words[0]} took longer than {timeout} s: {' '.join(words)}")
        return took

    def omg(self, name, words, expect=0, cwd=None, home=None):
        """Runs an omg, with a home of its own unless told one, the model's stand-in first on PATH."""
        took = self.meter([self.tools.omgs[name], *words], cwd=cwd, env=self.omg_env(home))
        if took["exit"] != expect:
            with open(os.path.join(self.work, "stderr")) as errors:
                raise SystemExit(f"{name} {' '.join(words)} exited with {took['exit']}:\n{errors.read()[-2000:]}")
        return took

    def omg_env(self, home=None):
        path = os.path.dirname(self.tools.stub) + ":" + os.environ["PATH"]
        return {**os.environ, "PATH": path, "OMG_HOME": home or self.fresh("home")}

    def run(self, name, graph, slots):
        return self.omg(name, ["run", graph, "--no-web", "--concurrency", str(slots)])

    def floor(self, keep, count, slots, graph, prompt="hello"):
        """Runs the floor program in the place of an omg."""
        settings = {"n": count, "conc": slots, "keep": keep, "dir": self.fresh("floor"), "base": os.path.getsize(graph)}
        flags = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
        model = [self.tools.stub, "-p", prompt, "--output-format", "json"]
        return self.kit([self.tools.kit, "floor", *flags, "--", *model])

    def kit(self, command, cwd=None, env=None):
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)


def interleave(repetitions, **contestants):
    """Calls each contestant in turn, again and again; returns what each measured."""
    samples = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, measure in contestants.items():
            samples[name].append(measure())
    return samples


def median(samples, key="wall_ms"):
    return statistics.median(sample[key] for sample in samples)


def ratio(over, under, key="wall_ms"):
    """The median of the pairs' ratios."""
    return statistics.median(a[key] / b[key] for a, b in zip(over, under))


def at_most(what, measured, floor, value, goal, unit="x"):
    """A row whose value must not exceed its goal; sizes do not vary, times do."""
    spare = 0 if unit == "MB" else NOISE * goal
    holds = value <= goal or (value <= goal + spare and NEAR)
    return Row(what, measured, floor, f"<= {goal:g} {unit}", f"{value:.2f}", holds)
