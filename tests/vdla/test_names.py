"""The public names: for type checkers, for programs, and where each is."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import vdla
from vdla import api, options


def seen_by_type_checkers(package) -> set[tuple[str, str]]:
    """Names that a package imports where types are checked, each with its home."""
    (block,) = (
        node for node in ast.parse(Path(package.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )  # fmt: skip
    return {
        (node.module, each.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }


@pytest.mark.parametrize("package", [api, options], ids=["api", "options"])
def test_type_checkers_and_programs_see_the_same_names(package):
    homes = {(home, name) for home, names in package.HOMES.items() for name in names}
    modules = {tuple(home.rsplit(".", 1)) for home in api.MODULES.values()}
    seen = seen_by_type_checkers(package) - modules
    assert seen == homes
    for home, name in homes:
        assert getattr(package, name) is getattr(importlib.import_module(home), name)


def test_every_public_name_is_there():
    named = {name for names in api.HOMES.values() for name in names}
    assert named | api.MODULES.keys() == {*api.__all__, "prepare", "random_inputs"}
    assert vdla.__all__ == api.__all__
    assert {name for names in options.HOMES.values() for name in names} == {*options.__all__}
    for name in vdla.__all__:
        assert getattr(vdla, name) is getattr(api, name)


@pytest.mark.parametrize("package", [vdla, api, options])
def test_what_is_no_name(package):
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018
