"""JSON that others wrote."""

from __future__ import annotations

import json

import pytest

from vdla.support.json_text import DEEPEST, read_json


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + "1" + closing * depth


@pytest.mark.parametrize("encode", [str, str.encode])
def test_what_is_read(encode):
    for text in ("3", '{"a": [1, {"b": null}]}', nested(DEEPEST), "[" + "[1]," * 200 + "1]"):
        assert read_json(encode(text)) == json.loads(text)


@pytest.mark.parametrize(
    "text", [nested(DEEPEST + 1), nested(500), nested(100_000), "[" * 100_000,
             nested(DEEPEST, '{"a":[', "]}")]
)  # fmt: skip
def test_what_is_too_deep(text):
    with pytest.raises(ValueError, match=r"^brackets more than 64 deep$"):
        read_json(text)


def test_what_is_no_json():
    with pytest.raises(ValueError, match="Expecting value"):
        read_json("[1,")
