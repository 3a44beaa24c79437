"""The names of TFLite's schema, out of the package ``tflite``, which is imported when needed."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from vdla.support.errors import UserError
from vdla.support.install import pip_install

EXTRA = "tflite"
# Element types as numpy names them; the others are of tensors without numbers.
DTYPES = {
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "FLOAT64": "float64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "BOOL": "bool",
    "INT4": "int4",
    "RESOURCE": "resource",
}


@cache
def schema() -> ModuleType:
    """The package of the schema's classes.

    Raises:
        UserError: it isn't installed; says how to install it.
    """
    try:
        import tflite
    except ImportError:
        raise UserError(
            "TFLite files: expected the package tflite, which reads them, found none; "
            f"install with: {pip_install(EXTRA)}"
        ) from None
    module: ModuleType = tflite
    return module


@cache
def names_of(enumeration: str) -> dict[int, str]:
    """An enumeration of the schema: names by number.

    Args:
        enumeration: its name, as "BuiltinOperator".
    """
    members = vars(getattr(schema(), enumeration))
    return {value: name for name, value in members.items() if isinstance(value, int)}


def number_of(enumeration: str, name: str) -> int:
    """The number of a name in an enumeration of the schema."""
    return int(getattr(getattr(schema(), enumeration), name))


def word(enumeration: str, number: object) -> str:
    """The name of a number in an enumeration of the schema, or the number where it has none."""
    return names_of(enumeration).get(number, str(number)) if isinstance(number, int) else ""
