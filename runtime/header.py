"""The schema of a module's header: what types and which ranges its fields have.

Whether the fields fit each other (a step's tensors, a function's parameters) is for the executor to
check. A board that has nothing but NumPy reads modules without the schema: of its header, what the
executor uses is checked there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from vdla.runtime.dtypes import DTYPES
from vdla.runtime.errors import ModuleError

SHOWN = 60  # characters of a value in a message
LARGEST = (1 << 63) - 1
SIZE = {"type": "integer", "minimum": 0, "maximum": LARGEST}
TEXT = {"type": "string"}


def _object(required: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Objects of these fields, all of them, and no others."""
    return {
        "type": "object",
        "properties": dict(required),
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def _list(items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _table(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


TENSOR = _object({"shape": _list(SIZE), "dtype": {"enum": list(DTYPES)}, "offset": SIZE})
HOST = _object(dict.fromkeys(("triple", "cpu", "features"), TEXT) | {
    "functions": _table(_list(SIZE, minItems=1)),
})  # fmt: skip
COUNTS = _list({"type": "integer", "minimum": 1, "maximum": (1 << 31) - 1}, minItems=3, maxItems=3)
LAUNCH = _object({
    "kernel": TEXT, "grid": COUNTS, "group": COUNTS, "args": _list(SIZE), "shared": SIZE,
})  # fmt: skip
KERNELS = _object({
    "language": {"enum": ["opencl", "ptx"]},
    "architecture": TEXT,
    "functions": _table(_object({
        "params": _list(SIZE, minItems=1), "scratch": _list(SIZE), "launches": _list(LAUNCH),
    })),
})  # fmt: skip
LAYER = _object({
    "name": TEXT, "op": TEXT, "output": TEXT, "macs": SIZE, "dram_bytes": SIZE, "tile": TEXT,
})  # fmt: skip
RUN = {"type": "array", "items": [TEXT, SIZE], "minItems": 2, "maxItems": 2}
SECONDS = {"type": "number", "minimum": 0}
STEP_TIME = _object({
    "name": TEXT, "operators": _list(TEXT),
    **dict.fromkeys(("cycles", "memory_seconds", "seconds"), SECONDS), "runs": SIZE,
})  # fmt: skip
HOST_TIME = _object({
    "processor": TEXT, "clock_mhz": SECONDS, "steps": _list(STEP_TIME), "call_seconds": SECONDS,
    "shared_bytes": SIZE, "unknown": _list(TEXT), "undecided": _list(TEXT),
})  # fmt: skip
METADATA = _object({
    "model": TEXT,
    "placement": _list(_object(dict.fromkeys(("op", "name", "device", "reason"), TEXT))),
    "layers": _list(LAYER),
    "memory": _object(dict.fromkeys(("constants", "activations", "tensors"), SIZE)),
    "work": _table(SIZE),
    "indices": _table(SIZE),
    "streams": _table(_object({"layers": _list(RUN), "stages": _list(TEXT)})),
})  # fmt: skip
ALL_OR_NONE = {  # a module that is put together by hand has no metadata
    **METADATA,
    "properties": {
        **METADATA["properties"],
        "host_time": HOST_TIME,
        "denormals": {"enum": ["flush", "keep"]},
    },
    "required": [],
    "if": {"minProperties": 1},
    "then": {"required": METADATA["required"]},
}
HEADER = _object({
    "config": {"type": "object"},
    "isa_hash": TEXT,
    "config_hash": TEXT,
    "tensors": _table(TENSOR),
    "inputs": _list(TEXT, uniqueItems=True),
    "outputs": _list(TEXT, minItems=1),
    "dram_bytes": SIZE,
    "steps": _list({"type": "object"}),
    "host": {**HOST, "type": ["null", "object"]},
    "kernels": {**KERNELS, "type": ["null", "object"]},
    "metadata": ALL_OR_NONE,
    "arguments": _table({"type": ["string", "object"]}),
    "values": _list({
        "type": "array", "items": [TEXT, {"type": ["string", "object"]}],
        "minItems": 2, "maxItems": 2,
    }),
    "sections": _list(_object({"name": TEXT, "size": SIZE, "crc32": SIZE})),
})  # fmt: skip


def check_header(header: Any, where: str) -> None:
    """Raises ModuleError where a header breaks the schema; names the field."""
    try:
        import fastjsonschema
    except ModuleNotFoundError:
        return
    try:
        _validate()(header)
    except fastjsonschema.JsonSchemaValueException as error:
        field, _, rule = error.message.removeprefix("data").lstrip(".").partition(" must ")
        shown = repr(error.value)
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
        place = f"header: {field}" if field else "header"
        raise ModuleError(f"{where}: {place}: expected it to {rule}, found {shown}") from None


@cache
def _validate() -> Callable[[Any], Any]:
    import fastjsonschema

    validate: Callable[[Any], Any] = fastjsonschema.compile(HEADER, use_default=False)
    return validate
