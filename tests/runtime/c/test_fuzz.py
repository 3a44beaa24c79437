"""Modules with bytes changed, under AddressSanitizer and UBSan: fuzz.c says what is tried."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from random_control import random_program
from random_loops import random_model

import vdla
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.c.generate import FOLDER

SOURCE = Path(__file__).with_name("fuzz.c")
FLAGS = (
    "-std=gnu11", "-g", "-O1", "-funsigned-char", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all", f"-I{FOLDER}",
)  # fmt: skip
TINY, OPTIONS = load_config("tiny"), Options(device="cpu", processor=Processor(quick=True))
# Programs with calls, choices, loops, lists and optional values.
PROGRAMS, MODELS = (1, 3, 7, 33, 41, 47, 73), (4, 8, 12, 96, 282)


@pytest.fixture(scope="session")
def fuzzer(tmp_path_factory):
    """The compiled fuzzer."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler of C")
    path = tmp_path_factory.mktemp("fuzz") / "fuzz"
    subprocess.run([compiler, *FLAGS, SOURCE, "-o", path], check=True)
    return path


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """Files of modules."""
    folder = tmp_path_factory.mktemp("modules")
    made = {
        "digits": vdla.compile("digits", device="cpu"),
        "digits on tiny": vdla.compile("digits", config="tiny"),
    }
    graphs = {f"program {n}": random_program(n) for n in PROGRAMS}
    graphs |= {f"model {n}": import_model(random_model(n)[0]) for n in MODELS}
    made |= {name: compile_graph(graph, TINY, OPTIONS) for name, graph in graphs.items()}
    for name, module in made.items():
        (folder / name).write_bytes(module.packed())
    return [*folder.iterdir()]


def fuzzed(fuzzer, modules, seed: int, mutations: int) -> tuple[int, int, int]:
    """How many modules were tried, opened and ran."""
    done = subprocess.run(
        [fuzzer, str(seed), str(mutations), *modules], capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""  # each module opens as it is
    return tuple(map(int, re.findall(r"\d+", done.stdout)))


def test_no_access_is_wild(fuzzer, modules):
    tried, opened, ran = fuzzed(fuzzer, modules, 1, 400)
    assert tried == 400 * len(modules)
    assert tried > opened > ran > tried // 20  # changes come past the first checks


@pytest.mark.long
def test_no_access_is_wild_in_many(fuzzer, modules):
    fuzzed(fuzzer, modules, 2, 15_000)
