"""The forms of a package: what files each is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vdla.packaging.files import (
    Files,
    archive,
    header,
    objects,
    shared_library,
    shipped,
    symbols,
    wasm_module,
)
from vdla.packaging.objects import WASM, Packaged, model_object
from vdla.packaging.page import page
from vdla.packaging.wheel import wheel

BINDINGS = ("vdla.rs", "vdla.go")  # of runtime/c/bindings, to what is linked
LOADED = (*BINDINGS, "Vdla.java")  # and to what is loaded
BOARDS = tuple(f"boards/{name}" for name in ("boards.h", "link.h", "boards.c", "uio.c", "serial.c"))
EXAMPLE = "on_board.c"  # a program that runs a network called digits
SOURCES = (
    "inner.h", "numbers.h", "text.c", "read.c", "check.c", "open.c", "core.c", "run.c",
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One form: its files of a packaged module and a version, and whether they lie in a folder of
    their own.

    ``target`` is the default processor, by its name; ``assembly`` says that functions are wanted as
    text, ``accelerates`` that the module may have programs for a board.
    """

    make: Callable[[Packaged, str], Files]
    folder: bool = True
    target: str = "native"
    assembly: bool = False
    accelerates: bool = False


def _headers(packaged: Packaged) -> Files:
    """Headers of C and C++, and where there are programs for a board, what reaches boards."""
    made = {f"{packaged.name}.h": header(packaged).encode(), "vdla.h": shipped("vdla.h")}
    made |= _bindings("vdla.hpp")
    if packaged.module.accelerated:
        made |= {name.rpartition("/")[2]: shipped(name) for name in BOARDS}
        made[EXAMPLE] = _example(packaged.name)
    return made


def _example(name: str) -> bytes:
    """The example program for a network of another name."""
    text = shipped(f"boards/{EXAMPLE}").decode()
    return text.replace("digits", name).replace("DIGITS", name.upper()).encode()


def _bindings(*names: str) -> Files:
    return {name: shipped(f"bindings/{name}") for name in names}


def static(packaged: Packaged, version: str) -> Files:
    """A static library, its headers, and bindings of languages that a system with threads runs."""
    members = objects(packaged)
    return {
        f"lib{packaged.name}.a": archive(members, symbols(packaged)),
        **_headers(packaged),
        **_bindings(*(BINDINGS if packaged.processor.threads else ())),
    }


def shared(packaged: Packaged, version: str) -> Files:
    """A shared library, its headers, and bindings."""
    return {
        f"lib{packaged.name}.so": shared_library(packaged),
        **_headers(packaged),
        **_bindings(*LOADED),
    }


def sources(packaged: Packaged, version: str) -> Files:
    """The runtime in C, and the module's bytes and functions as assembly."""
    names = (*SOURCES, "threads.c") if packaged.processor.threads else SOURCES
    host, name = packaged.module.host, packaged.name
    made = {name: shipped(name) for name in names}
    made[f"{name}.s"] = model_object(packaged, assembly=True)
    if host and host.functions:
        made[f"{name}_functions.s"] = host.code
    return {**made, **_headers(packaged)}


def wasm(packaged: Packaged, version: str) -> Files:
    """A module of WebAssembly, and the JavaScript that runs it in a browser or in Node."""
    return {f"{packaged.name}.wasm": wasm_module(packaged), **_bindings("vdla.mjs")}


FORMS = {
    "static": Form(static, accelerates=True),
    "shared": Form(shared, accelerates=True),
    "c": Form(sources, assembly=True, accelerates=True),
    "wheel": Form(wheel, folder=False, target="this architecture"),
    "wasm": Form(wasm, target=WASM),
    "page": Form(page, folder=False, target=WASM),
}
