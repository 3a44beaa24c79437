"""Tools of a flow that only pretend: Python scripts that leave what the real ones would."""

import stat
import sys

BARE = 'bare = {"connections": {}, "port_directions": {}, "parameters": {}}\n'
YOSYS = (
    BARE
    + """
cells = {f"{k}{i}": {"type": k, **bare} for k, n in CELLS.items() for i in range(n)}
json.dump({"modules": {"vdla": {"cells": cells}}}, open("vdla.json", "w"))
"""
)
NEXTPNR = """
for path in (MADE, sys.argv[sys.argv.index("--write") + 1]):
    open(path, "w").write("config")
json.dump({"utilization": {n: {"used": 10 * i, "available": 99} for i, n in enumerate(NAMES)},
           "fmax": {"a": {"achieved": MHZ, "constraint": CLOCK}, "b": {"achieved": 500}}},
          open("report.json", "w"))
"""


def make_tool(folder, monkeypatch, name, text, **values):
    """A tool of that name for the flow, with values that its text has."""
    path = folder / name
    given = "".join(f"{key} = {value!r}\n" for key, value in values.items())
    path.write_text(f"#!{sys.executable}\nimport json, sys\n{given}{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(name.upper().replace("-", "_"), str(path))
