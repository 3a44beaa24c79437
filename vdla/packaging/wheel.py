"""A wheel: the shared library with a small package around it, for Python with numpy alone."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from importlib import metadata
from importlib.resources import files

from vdla.packaging.files import Files, shared_library
from vdla.packaging.objects import Packaged

DATE = (1980, 1, 1, 0, 0, 0)  # of files in the wheel: the same module gives the same bytes
TAGS = {  # of platforms, by architecture, for code that any processor of it runs
    "x86_64": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "arm": "manylinux_2_17_armv7l.musllinux_1_1_armv7l",
    "riscv64": "manylinux_2_31_riscv64",
}
LOCAL = {"x86_64": "linux_x86_64", "aarch64": "linux_aarch64", "arm": "linux_armv7l"}
GENERIC = ("x86_64", "aarch64-linux", "arm-linux", "riscv64-linux")
METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: {name}, a network compiled by vdla
Requires-Python: >=3.10
Requires-Dist: numpy
License-File: LICENSE
Description-Content-Type: text/markdown

# {name}

A network compiled by vdla: `import {name}`, `{name}.run({arguments})`, or `python -m {name}`.

{tensors}

The file LICENSE is that of vdla's runtime, which is part of this package.
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: vdla ({version})
Root-Is-Purelib: false
{tags}
"""


def wheel(packaged: Packaged, version: str) -> Files:
    """A wheel by its file name."""
    name, platform = packaged.name, _platform(packaged)
    info = f"{name}-{version}.dist-info"
    folder = files("vdla.packaging").joinpath("data", "wheel")
    contents = {
        f"{name}/__init__.py": folder.joinpath("network.py").read_bytes(),
        f"{name}/__main__.py": folder.joinpath("main.py").read_bytes(),
        f"{name}/lib.so": shared_library(packaged),
        f"{info}/METADATA": _metadata(packaged, version).encode(),
        f"{info}/WHEEL": _tags(platform).encode(),
        f"{info}/licenses/LICENSE": _license().encode(),
    }
    record = "".join(
        f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in contents.items()
    )
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    return {f"{name}-{version}-py3-none-{platform}.whl": _zipped(contents)}


def _platform(packaged: Packaged) -> str:
    """The tag of the platforms that a wheel is for: those of a whole architecture, or of machines
    like this one."""
    processor = packaged.processor
    tags = TAGS if processor.name in GENERIC else LOCAL
    return tags.get(processor.machine, f"linux_{processor.machine}")


def _metadata(packaged: Packaged, version: str) -> str:
    module = packaged.module
    titles = (("Input", module.inputs), ("Output", module.outputs))
    lines = [f"- {title} `{n}`: {module.tensors[n]}" for title, names in titles for n in names]
    arguments = ", ".join(n if n.isidentifier() else f"**{{{n!r}: …}}" for n in module.inputs)
    return METADATA.format(
        name=packaged.name, version=version, arguments=arguments, tensors="\n".join(lines)
    )


def _tags(platform: str) -> str:
    tags = "\n".join(f"Tag: py3-none-{each}" for each in platform.split("."))
    return WHEEL.format(version=metadata.version("vdla"), tags=tags)


def _license() -> str:
    """The licence of the runtime."""
    known = (each.read_text("licenses/LICENSE") for each in metadata.distributions(name="vdla"))
    return next(filter(None, known), "Apache-2.0\n")


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _zipped(contents: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, DATE)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, data)
    return buffer.getvalue()
