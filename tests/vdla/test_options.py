"""Options: one class for a command and for the function of the API that does the same."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import pytest

import vdla as package
from vdla import api, options
from vdla.options import Compare, Compile, Lockstep, Run, Synth, Tune, UsageError

TOLD = {
    "compile": (api.compile, Compile),
    "run": (api.run, Run),
    "compare": (api.compare, Compare),
    "tune": (api.tune, Tune),
    "synth": (api.synth, Synth),
    "lockstep": (None, Lockstep),
}


@pytest.mark.parametrize("command", TOLD)
def test_a_command_has_every_option_of_its_class(vdla, command):
    _, kind = TOLD[command]
    text = vdla(command, "--help").out
    for field in fields(kind):
        how = options.spelling(field)
        assert how is None or all(name in text for name in how.names), field.name


@pytest.mark.parametrize("command", [name for name, (function, _) in TOLD.items() if function])
def test_a_function_takes_every_option_of_its_class(command):
    function, kind = TOLD[command]
    parameters = inspect.signature(function).parameters
    assert list(parameters)[1:] == [field.name for field in fields(kind)]
    for field in fields(kind):
        if field.default is not MISSING:
            assert parameters[field.name].default == field.default


def test_spelled_out_or_as_an_object():
    spelled = api.compile("digits", "tiny", vthreads=1, records="none")
    whole = api.compile("digits", Compile("tiny", vthreads=1, records="none"))
    assert spelled.to_bytes() == whole.to_bytes()
    with pytest.raises(TypeError, match="unexpected keyword argument 'threads'"):
        api.compile("digits", threads=2)


def test_defaults_are_the_same_on_the_command_line():
    for kind in (Compile, Run, Compare, Synth, Lockstep):
        typed = {f.name: s.default for f in fields(kind) if (s := options.spelling(f))}
        assert options.read(kind, typed) == kind()
        assert not typed


def test_texts_are_read():
    typed = {f.name: s.default for f in fields(Compare) if (s := options.spelling(f))}
    typed |= {
        "vthreads": "1,4",
        "latencies": "0,64",
        "shapes": ["n=2", "x=1,3"],
        "settings": ["a=1"],
    }
    found = options.read(Compare, typed)
    assert found == Compare("paper", (1, 4), ("a=1",), None, {"n": (2,), "x": (1, 3)}, (0, 64))


def test_the_api_refuses_what_the_command_does(tmp_path):
    def refusal(function, *args, **kwargs) -> str:
        with pytest.raises(UsageError) as caught:
            function(*args, **kwargs)
        return str(caught.value)

    assert issubclass(UsageError, package.UserError)
    assert refusal(api.run, "digits", device="board") == (
        "--device board: expected --board B, found none"
    )
    assert refusal(api.run, "digits", board="ulx3s") == (
        "--board: expected --device board, found sim"
    )
    assert refusal(api.run, "digits", waves=tmp_path / "w.fst").endswith(
        "w.fst: expected --device rtl for waves, found sim"
    )
    assert refusal(api.sweep, "digits") == "--latency: expected some latencies, found none"
    module = api.compile("digits", "tiny", device="cpu")
    assert refusal(api.run, module, shapes={"n": (1,)}) == (
        "--shape: expected an ONNX model, found a module"
    )
    assert refusal(api.check, module) == (
        "--check: expected an ONNX model to compare with, found a module"
    )
    assert refusal(api.tune, "digits", tmp_path / "log", searcher="best").startswith(
        "--searcher: expected one of "
    )
    assert not (tmp_path / "log").exists()


def test_the_api_runs_on_a_virtual_board_as_the_command_does(monkeypatch):
    """The board that is reached is the one asked for; tests/boards runs real programs on it."""
    asked = []

    class Reached(Exception):
        pass

    def connect(board, config, **how):
        asked.append((board.name, config.name, how["port"], how["virtual"]))
        raise Reached

    monkeypatch.setattr(api, "connect", connect)
    for how in ({"virtual": True}, {"port": "/dev/ttyUSB9"}):
        with pytest.raises(Reached):
            api.run("digits", device="board", board="ulx3s", **how)
    assert asked == [("ulx3s", "ulx3s", None, True), ("ulx3s", "ulx3s", "/dev/ttyUSB9", False)]
