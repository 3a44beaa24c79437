"""Every error is the user's, a failed check, or a bug: its base says which."""

import importlib
import pkgutil
from importlib.util import find_spec

import pytest

import vdla
from vdla.support.errors import CheckError, UserError

# Loop IR that a pass damaged, bytes on a line that aren't a frame (they are asked for again), and
# what functions of one file tell each other.
INTERNAL = {
    *("IRError", "InterpError", "vdla.compiler.targets.processor.codegen.llvm.CodegenError"),
    *("FrameError", "Unroll", "Mismatch", "AccessError", "CudaError"),
}
OPTIONAL = ("jax", "jax2onnx")  # packages that only `make test-long` installs
ROOMS = (
    *("support", "isa", "sim", "compiler", "runtime", "boards.board"),
    *("options", "names", "kernels", "api", "commands"),
)


def modules():
    for room in ROOMS:
        package = importlib.import_module(f"vdla.{room}")
        yield package
        for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"vdla.{room}."):
            try:
                yield importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                assert error.name in OPTIONAL, found.name  # noqa: PT017


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="the compiler needs it")
def test_every_error_has_its_base():
    errors = {
        value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Exception)
        and value.__module__.startswith("vdla.")
    }
    assert len(errors) > 20
    others = {e for e in errors if not issubclass(e, UserError | CheckError)}
    unknown = {e for e in others if not {e.__name__, f"{e.__module__}.{e.__name__}"} & INTERNAL}
    assert unknown == set()


def test_it_is_public_and_a_value_error():
    assert vdla.UserError is UserError
    with pytest.raises(ValueError, match="config"):
        vdla.compare("digits", "no such config")
