"""Builds what is measured and what measures it, into the folder `bench` below cargo's target directory."""
import json
import os
import shutil
import subprocess
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STUB_FLAGS = (
    "-O2 -Wall -Wextra -static -nostdlib -nostartfiles -fno-builtin -fno-stack-protector -fcf-protection=none "
    "-Wl,--build-id=none -Wl,-z,noseparate-code"
).split()
RUSTC = ["rustc", "-O", "--edition", "2024", "-C", "strip=symbols"]


@dataclass
class Tools:
    """Paths of the built programs; `omgs` by name, the one of this checkout first."""

    omgs: dict
    kit: str
    stub: str
    hello: str
    yaml_parse: str


def target_dir():
    return cargo_json(["metadata", "--no-deps", "--format-version", "1", "--offline"])[0]["target_directory"]


def build(folder, against):
    bin_dir = os.path.join(folder, "bin")
    os.makedirs(os.path.join(bin_dir, "models"), exist_ok=True)
    artifacts = cargo_json(["build", "--release", "--bin", "omg", "--message-format", "json-render-diagnostics"])
    omgs = {"omg": [it["executable"] for it in artifacts if it.get("executable")][-1]}
    if against:
        omgs["against"] = os.path.abspath(against)
    stub = os.path.join(bin_dir, "models", "claude")
    run(["cc", *STUB_FLAGS, "-o", stub, os.path.join(HERE, "stub.c")])
    return Tools(
        omgs=omgs,
        kit=rust_program(bin_dir, "kit", "kit/main.rs"),
        stub=stub,
        hello=rust_program(bin_dir, "hello", "hello.rs"),
        yaml_parse=rust_program(bin_dir, "yaml-parse", "yaml_parse.rs", *parser(artifacts)),
    )


def parser(artifacts):
    """The compiler's flags that link the parser which omg itself was just built with."""
    files = [it["filenames"] for it in artifacts if it.get("target", {}).get("name") == "granit_parser"]
    library = next(path for path in files[-1] if path.endswith(".rlib"))
    return ["--extern", f"granit_parser={library}", "-L", f"dependency={os.path.dirname(library)}", "-C", "lto=fat"]


def rust_program(bin_dir, name, source, *flags):
    path = os.path.join(bin_dir, name)
    run([*RUSTC, *flags, "-o", path, os.path.join(HERE, source)])
    return path


def cargo_json(words):
    output = subprocess.run(["cargo", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def run(words):
    subprocess.run(words, check=True)


def clean(folder):
    shutil.rmtree(folder, ignore_errors=True)
    return 0
