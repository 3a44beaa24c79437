"""The command that installs an optional part of vdla, for messages that say what is missing."""

from __future__ import annotations

import json
from importlib.metadata import distributions
from urllib.parse import unquote, urlsplit

PACKAGE = "vdla"


def pip_install(extra: str) -> str:
    """``pip install 'vdla[EXTRA]'``, with the clone or wheel that vdla was installed from.

    Args:
        extra: a name of ``[project.optional-dependencies]`` in pyproject.toml.
    """
    return pip_install_from(_direct_url(), extra)


def pip_install_from(origin: str | None, extra: str) -> str:
    """The command for an installation with an origin.

    Args:
        origin: the text of its ``direct_url.json`` (PEP 610); None if it came from an index.
        extra: a name of an optional part.
    """
    if origin is None:
        return f"pip install '{PACKAGE}[{extra}]'"
    record = json.loads(origin)
    if "dir_info" not in record:
        return f"pip install '{PACKAGE}[{extra}] @ {record['url']}'"
    editable = "-e " if record["dir_info"].get("editable") else ""
    return f"pip install {editable}'{unquote(urlsplit(record['url']).path)}[{extra}]'"


def _direct_url() -> str | None:
    """The text of this installation's ``direct_url.json``, if it has one."""
    records = (each.read_text("direct_url.json") for each in distributions(name=PACKAGE))
    return next(filter(None, records), None)  # metadata in a clone's own folder has no record
