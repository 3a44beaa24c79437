"""Names of our own are checked; foreign ones are escaped for terminals and paths."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.support.errors import UserError
from vdla.support.names import LONGEST_NAME, check_name, path_part, printable, shortened


@pytest.mark.parametrize("name", ["paper", "ulx3s-wide", "v1.2+x_3", "a" * LONGEST_NAME])
def test_names_that_are_fine(name):
    check_name(name, "here", UserError)


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "..\\x", "é", "a\n", "\x1b[2J", '"', "a" * (LONGEST_NAME + 1)]
)
def test_names_that_are_refused(name):
    with pytest.raises(UserError) as caught:
        check_name(name, "here", UserError)
    assert str(caught.value) == (
        "here: expected a name of 1 to 64 characters out of A-Z a-z 0-9 _ . + -, "
        f"found {name!r}; the key name sets it"
    )


@given(st.text(st.characters(exclude_categories=())))
def test_a_terminal_obeys_nothing_of_a_printable_text(text):
    result = printable(text)
    assert not {unicodedata.category(c) for c in result} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    result.encode()


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("conv_1/Größe ✓", "conv_1/Größe ✓"),
        ("\x1b[2Ja\nb", r"\x1b[2Ja\nb"),
        ("\u202egnp\x9b", r"\u202egnp\x9b"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_is_escaped(text, result):
    assert printable(text) == result


@given(st.text(), st.integers(1, 40))
def test_a_shortened_text_keeps_start_and_end(text, most):
    result = shortened(text, most)
    assert len(result) <= most
    start, dots, end = result.partition("…") if len(text) > most else (text, "", "")
    assert text.startswith(start)
    assert not dots or text.endswith(end)


def test_names_that_start_alike_differ_when_shortened():
    assert shortened("pool2_QuantizeLinear_Output.unpacked", 20) == "pool2_Quan….unpacked"


@given(st.text())
def test_a_part_of_a_path_is_one_part(text):
    part = path_part(text)
    assert Path("a", part).parent == Path("a")
    assert Path("a", part).resolve() == Path("a").resolve() / part
    assert len(part.encode()) <= LONGEST_NAME


@pytest.mark.parametrize(
    ("text", "part"),
    [("/layer1/conv", "_layer1_conv"), ("..", "_"), ("../x", "_x"), ("a\0b", "a_b"), ("", "_")],
)
def test_parts_of_paths(text, part):
    assert path_part(text) == part
