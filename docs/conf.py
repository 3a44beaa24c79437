"""Sphinx's settings for the site: ``make docs`` builds it into build/site.

Pages that lie outside of docs/ are included by pages under project/ and reference/; links to them
are turned to those here, so that they lead somewhere in the repository and on the site.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

from vdla import __version__

project = "vdla"
author = "the vdla developers"
project_copyright = "the vdla developers, Apache-2.0"
version = release = __version__
extensions = [
    "myst_nb", "sphinx_design", "sphinx_click", "sphinx.ext.autodoc", "sphinx.ext.napoleon",
]  # fmt: skip
exclude_patterns = ["**/.ipynb_checkpoints"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # tests/docs/test_notebooks.py executes them
autodoc_typehints = "none"  # signatures have them
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = f"vdla {version}"
html_show_sphinx = False

OUTSIDE = {  # files outside of docs/, and the pages that include them
    "isa/ISA.md": "/reference/isa.md",
    "README.md": "/index.md",
    "CHANGELOG.md": "/project/changelog.md",
    "CONTRIBUTING.md": "/project/contributing.md",
    "SECURITY.md": "/project/security.md",
}
LINK = re.compile(rf"\]\((?:\.\./)+({'|'.join(map(re.escape, OUTSIDE))})")


def on_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Turns links of a page that lead out of docs/ to pages of the site."""
    source[0] = LINK.sub(lambda match: f"]({OUTSIDE[match[1]]}", source[0])


def setup(app: Sphinx) -> None:
    """Connects what is done to each page."""
    app.connect("source-read", on_site)
