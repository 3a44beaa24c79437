"""Which vdla runs: the digest covers each source, however vdla is installed."""

from __future__ import annotations

import re
from pathlib import Path

from vdla.farm import identity as module
from vdla.farm.identity import Identity, identity

ROOT = Path(__file__).parents[2]


def test_it_says_version_sources_and_python():
    assert re.fullmatch(
        r"vdla [\d.]+ with sources [0-9a-f]{12}, Python 3\.\d+ and Dask [\d.]+", str(identity())
    )
    assert Identity.from_message(identity().message()) == identity()


def test_another_version_may_know_of_other_fields():
    other = Identity.from_message({"version": "9.0", "sources": "0123456789ab", "colour": "red"})
    assert str(other) == "vdla 9.0 with sources 0123456789ab, Python unknown and Dask unknown"


def test_its_rooms_are_those_of_the_package():
    rooms = re.search(r"^ROOMS = \((.*)\)", (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert tuple(re.findall(r'"(\w+)"', rooms[1])) == module.ROOMS


def test_a_wheel_has_the_sources_of_the_clone(tmp_path, monkeypatch):
    """There, rooms are folders of the package."""
    paths = dict(module._sources())
    assert {"vdla/commands/cli.py", "farm/identity.py", "isa/config.py"} <= paths.keys()
    for name in list(paths)[::10]:
        room, _, rest = name.partition("/")
        target = tmp_path / "vdla" / ("" if room == "vdla" else room) / rest
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(paths[name].read_bytes())

    class Spec:
        def __init__(self, name):
            self.submodule_search_locations = [str(tmp_path.joinpath(*name.split(".")))]

    monkeypatch.setattr(module, "find_spec", Spec)
    assert sorted(name for name, _ in module._sources()) == sorted(list(paths)[::10])


def test_a_changed_source_is_another_identity(tmp_path, monkeypatch):
    file = tmp_path / "a.py"
    file.write_text("1\n")
    monkeypatch.setattr(module, "_sources", lambda: [("isa/a.py", file)])
    before = module._digest_of_sources()
    file.write_text("2\n")
    assert module._digest_of_sources() != before
