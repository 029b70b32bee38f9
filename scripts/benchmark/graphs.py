"""The graphs that are measured, and the same graphs for other build tools.

A graph is a list of (id, [ids it depends on]); every format is written from that one list. Deterministic.
"""
import math
import os
import random

LOREM = (
    "Read the change under review, compare every function that it touches with the task, and say what is missing. "
    "Run the tests and report the first failure with the command that shows it. "
)


def shape(kind, count):
    ids = [f"n{number:06d}" for number in range(count)]
    return {"chain": chain, "fan": fan, "wide": wide, "layered": layered}[kind](ids)


def chain(ids):
    return [(name, ids[at - 1 : at] if at else []) for at, name in enumerate(ids)]


def wide(ids):
    return [(name, []) for name in ids]


def fan(ids):
    """One node, then all but one side by side, then one that waits for all."""
    return [(ids[0], []), *((name, ids[:1]) for name in ids[1:-1]), (ids[-1], ids[1:-1])]


def layered(ids):
    """Square layers; each node depends on up to three of the two layers above."""
    dice, width = random.Random(1), max(2, math.isqrt(len(ids)))
    return [(name, parents(dice, ids, at // width * width, width)) for at, name in enumerate(ids)]


def parents(dice, ids, layer, width):
    if not layer:
        return []
    above = range(max(0, layer - 2 * width), layer)
    return [ids[at] for at in sorted({dice.choice(above) for _ in range(dice.randint(1, 3))})]


def write_graph(path, dag, prompt_bytes=5, prompts=None, extra=()):
    """`prompts` gives single nodes a prompt of their own; `extra` are lines that each node gets."""
    with open(path, "w") as file:
        file.write("name: bench\nversion: 1\nconcurrency: 10\nnodes:\n")
        for name, depends_on in dag:
            file.write(node(name, depends_on, (prompts or {}).get(name) or text(prompt_bytes), extra))


def write_citing(path, dag, nodes, prompt_bytes=5):
    """A graph whose every node cites one fragment, of one node or of two."""
    fragments = os.path.join(os.path.dirname(path), "fragments")
    os.makedirs(fragments)
    prompt = f"prompt: |\n      {{{{ with.what }}}}\n      {text(prompt_bytes)}\n"
    head = "fragment: piece\ndescription: bench\nsubstitutions: [what]\n"
    check = f"  - id: check\n    depends_on: [do]\n    prompt: |\n      {text(prompt_bytes)}\n"
    body = {1: f"node:\n    {prompt}", 2: f"exit: check\nnodes:\n  - id: do\n    {prompt}{check}"}[nodes]
    with open(os.path.join(fragments, "piece.yaml"), "w") as file:
        file.write(head + body)
    with open(path, "w") as file:
        file.write("name: bench\nversion: 1\nconcurrency: 10\nnodes:\n")
        for name, depends_on in dag:
            file.write(f"  - id: {name}\n    use: piece\n    with: {{what: do {name}}}\n")
            if depends_on:
                file.write(f"    depends_on: [{', '.join(depends_on)}]\n")


def node(name, depends_on, prompt, extra):
    lines = [f"  - id: {name}", "    type: claude-run"]
    if depends_on:
        lines.append(f"    depends_on: [{', '.join(depends_on)}]")
    lines += ["    prompt: |", f"      {prompt}", *(f"    {line}" for line in extra)]
    return "\n".join(lines) + "\n"


def text(length):
    return "hello"[:length] if length <= 5 else (LOREM * (length // len(LOREM) + 1))[:length].rstrip()


def write_makefile(folder, dag, stub):
    names = " ".join(name for name, _ in dag)
    with open(os.path.join(folder, "Makefile"), "w") as file:
        file.write(f"all: {names}\n.PHONY: all {names}\n")
        for name, depends_on in dag:
            file.write(f"{name}: {' '.join(depends_on)}\n\t@{stub} -p hello --output-format json --id {name}\n")


def write_ninja(folder, dag, stub):
    with open(os.path.join(folder, "build.ninja"), "w") as file:
        file.write(f"rule model\n  command = {stub} -p hello --output-format json --id $out\n")
        for name, depends_on in dag:
            file.write(f"build {name}: model" + (f" | {' '.join(depends_on)}" if depends_on else "") + "\n")
