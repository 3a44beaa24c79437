"""Maps the rooms at the top level to packages: ``isa/`` is ``vdla.isa``.

The package list is generated, so a new subpackage can't be left out of the wheel.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOMS = ("support", "farm", "isa", "sim", "hw", "compiler", "runtime", "boards", "explore")
HERE = Path(__file__).parent

packages = ["vdla", *(f"vdla.{p}" for p in find_namespace_packages("vdla"))]
package_dir = {"vdla": "vdla"}
for room in ROOMS:
    if not any((HERE / room).rglob("*.py")):
        continue
    package_dir[f"vdla.{room}"] = room
    packages.append(f"vdla.{room}")
    packages += [
        f"vdla.{room}.{p}"
        for p in find_namespace_packages(room)
        if any((HERE / room / p.replace(".", "/")).glob("*"))
    ]

setup(
    packages=packages,
    package_dir=package_dir,
    package_data={
        "": [
            "*.toml",
            "*.onnx",
            "*.npz",
            "*.jsonl",
            "*.cpp",
            "*.v",
            "*.c",
            "*.h",
            "*.hpp",
            "*.mjs",
            "*.rs",
            "*.go",
            "*.java",
            "*.ll",
            "*.ll.xz",
            "*.o.xz",
            "index.json",
            "py.typed",
        ],
        "vdla.analysis.report": ["*.html", "*.css", "*.js"],
        "vdla.packaging": ["data/*/*.py", "data/*/*.html", "data/*/*.css", "data/*/*.js"],
        "vdla.commands.schemas": ["*.json"],
    },
)
