"""Host code: which machine it is for, and what is no host code."""

from __future__ import annotations

import pytest

from vdla.runtime import HostCode, ModuleError, native
from vdla.runtime.native import board_machine, check_machine, check_object, is_shared

ELF = b"\x7fELF"


class Processor:
    """A C library that says what Linux says of a processor: its features are AT_HWCAP, 16."""

    def __init__(self, features):
        self.features = features

    def getauxval(self, which):
        return self.features if which == 16 else 0


@pytest.mark.parametrize(("triple", "features", "expected"), [
    ("aarch64-linux-gnu", 0b10, "+neon"),
    ("aarch64-linux-gnu", 0b101, ""),
    ("arm-linux-gnueabihf", 1 << 12, "+neon"),
    ("arm-linux-gnueabihf", ~(1 << 12) & 0xFFFF, ""),
    ("riscv64-linux-gnu", 0x112D, "+m,+a,+f,+d,+c"),  # letters acdfim
    ("riscv64-linux-gnu", 0x1101, "+m,+a"),
    ("mips-linux-gnu", 0xFFFF, ""),
])  # fmt: skip
def test_a_boards_features(triple, features, expected, monkeypatch):
    monkeypatch.setattr(native.sysconfig, "get_config_var", lambda name: triple)
    monkeypatch.setattr(native.ctypes, "CDLL", lambda name: Processor(features))
    found, _, enabled = board_machine()
    assert (found, enabled) == (triple, expected)


@pytest.mark.parametrize(("code", "fits"), [
    (ELF + bytes(16), True), (b"\xcf\xfa\xed\xfe" + bytes(16), True),
    (b"\x64\x86" + bytes(18), True), (b"\0asm\1\0\0\0" + bytes(12), True),
    (b"\0asm" + bytes(16), False), (ELF + bytes(15), False), (bytes(20), False),
])  # fmt: skip
def test_what_an_object_file_begins_with(code, fits):
    if fits:
        check_object(code, "host code")
        return
    with pytest.raises(ModuleError) as caught:
        check_object(code, "host code")
    assert str(caught.value) == (
        f"host code: expected an object file, found {len(code)} bytes of {code[:4]!r}"
    )


def test_a_shared_object_says_so_in_its_header():
    """ELF's e_type, two bytes from byte 16 on."""
    assert is_shared(ELF + bytes(12) + b"\x03\x00" + bytes(2))
    assert not is_shared(ELF + bytes(12) + b"\x01\x00" + bytes(2))
    assert not is_shared(ELF + bytes(13) + b"\x03\x00" + bytes(1))
    assert not is_shared(b"\xcf\xfa\xed\xfe" + bytes(12) + b"\x03\x00" + bytes(2))


@pytest.mark.parametrize(("one", "other", "same"), [
    ("x86_64-unknown-linux-gnu", "x86_64-pc-linux-gnu", True),
    ("aarch64-linux", "aarch64-unknown-linux-gnu", True),
    ("arm64-apple-darwin23", "arm64-apple-macosx14.0", True),
    ("x86_64-unknown-linux-gnu", "x86_64-apple-darwin23", False),
    ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", False),
    ("wasm32-wasi", "wasm32-emscripten", False),
])  # fmt: skip
def test_triples_of_one_platform(one, other, same, monkeypatch):
    monkeypatch.setattr(native, "host_machine", lambda: (one, "cpu", ""))
    host = HostCode(bytes(20), other, "theirs", "", {})
    if same:
        check_machine(host, "module")
        return
    with pytest.raises(ModuleError, match=f"^module: expected host code for {one}, found {other} "):
        check_machine(host, "module")


@pytest.mark.parametrize(("needed", "some"), [
    ("+a,+b", "b"), ("+a,+b,+c,+d,+e", "b, c, d, e"), ("+f,+e,+d,+c,+b,-x", "b, c, d, e, …"),
])  # fmt: skip
def test_features_that_this_machine_lacks(needed, some, monkeypatch):
    monkeypatch.setattr(native, "host_machine", lambda: ("x86_64-linux", "small", "+a,-b"))
    with pytest.raises(ModuleError) as caught:
        check_machine(HostCode(bytes(20), "x86_64-linux", "large", needed, {}), "module")
    assert str(caught.value) == (
        f"module: expected host code for this small, found code for large that needs {some}"
    )
