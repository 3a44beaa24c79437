"""A page: one HTML file that runs the module, as WebAssembly, on what is drawn or chosen."""

from __future__ import annotations

import base64
import json
from importlib.resources import files

from vdla.packaging.files import Files, shipped, wasm_module
from vdla.packaging.objects import Packaged

EXPORT = "export class"  # what a script of a page has without the first word


def page(packaged: Packaged, version: str) -> Files:
    """An HTML file by its name."""
    folder = files("vdla.packaging").joinpath("data", "page")
    parts = {
        "TITLE": packaged.name,
        "STYLE": folder.joinpath("page.css").read_text(),
        "RUNTIME": shipped("bindings/vdla.mjs").decode().replace(EXPORT, "class"),
        "SCRIPT": folder.joinpath("page.js").read_text(),
        "MODULE": json.dumps(base64.b64encode(wasm_module(packaged)).decode()),
    }
    text = folder.joinpath("page.html").read_text()
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return {f"{packaged.name}.html": text.encode()}
