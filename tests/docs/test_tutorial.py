"""The tutorial of docs/microarchitecture.md: its diffs apply, and make two equal machines."""

from __future__ import annotations

import re

import pytest
from recipes import ROOT, apply, command, copy_sources, diffs

from vdla.isa.config import load_config
from vdla.isa.manual import header

DOCUMENT = (ROOT / "docs" / "microarchitecture.md").read_text()
DIFFS = diffs(DOCUMENT)
COMPARED = ("hw/test_alu.py", "sim/test_semantics.py")  # tests of what an operation computes
STALE = "docs/microarchitecture.md, section 13: its diffs no longer apply; make them again"


@pytest.fixture
def sources(tmp_path):
    """A copy of the sources."""
    return copy_sources(tmp_path)


def test_the_diffs_apply(sources):
    """Each by itself, behind those before it."""
    done = apply(sources, DIFFS, "--verbose")
    assert done.returncode == 0, f"{STALE}\n{done.stderr.decode()}"
    assert done.stderr.count(b"Checking patch") == "".join(DIFFS).count("+++ b/") > 0


@pytest.mark.long
def test_the_operation_works(sources):
    done = apply(sources, DIFFS)
    assert done.returncode == 0, f"{STALE}\n{done.stderr.decode()}"
    manual = command(sources, "vdla", "isa", "doc")
    assert "RSQRT = 10, LEAKY = 11." in manual.stdout, manual.stderr
    done = command(sources, "vdla", "lockstep", "-c", "tiny", "--programs", "200", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"mismatches": 0' in done.stdout
    tests = [str(sources / "tests" / name) for name in COMPARED]
    done = command(sources, "pytest", "-m", "not long", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


def test_names_of_the_driver_exist():
    """The C in section 11 uses names that ``vdla isa header`` writes."""
    (code,) = re.findall(r"^```c\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    used = set(re.findall(r"VDLA_\w+", code))
    known = set(re.findall(r"#define (VDLA_\w+)", header(load_config("paper"))))
    assert used <= known
    assert len(used) > 10
