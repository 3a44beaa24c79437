"""A release has one version, and its lowest dependencies are named."""

from __future__ import annotations

import pytest
from scripts import load_script

release = load_script("tools/release.py")


def test_one_version_everywhere():
    assert len(set(release.versions().values())) == 1
    assert release.check_versions() == release.project()["version"]


def test_another_version_is_named(monkeypatch):
    other = {"pyproject.toml": "1.0.0", "CITATION.cff": "0.9.0"}
    monkeypatch.setattr(release, "versions", lambda: other)
    with pytest.raises(release.ReleaseError, match=r"found pyproject\.toml 1\.0\.0, CITATION"):
        release.check_versions()


def test_lowest_versions_are_those_of_the_project():
    lowest = dict(each.split("==") for each in release.lowest())
    assert lowest["numpy"] == "2.0"
    assert len(lowest) == len(release.project()["dependencies"])


def test_a_command_that_fails_is_shown(tmp_path):
    with pytest.raises(release.ReleaseError, match="Traceback"):
        release.run(["python3", "-c", "1 / 0"], tmp_path)


@pytest.mark.long
def test_the_wheel_in_new_environments(tmp_path):
    """With network: packages come from the index."""
    _, wheel = release.made(tmp_path / "dist")
    release.check_files(wheel, tmp_path / "direct")
    release.check_environment("lowest versions", [str(wheel), *release.lowest()])
    release.check_environment("newest versions", ["--upgrade", str(wheel)])
