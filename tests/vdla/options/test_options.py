"""Options: one class for a command and for the function of the API that does the same."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, fields

import pytest

import vdla as package
from vdla import api
from vdla.options import Compare, Compile, Lockstep, Run, RunFiles, Synth, Tune, spelling
from vdla.options.spelling import Only, UsageError, option, require

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
        how = spelling.spelling(field)
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


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: api.compile("digits", threads=2),
         "compile: expected options of config, settings, device, board, target, vthreads, dump, "
         "records, shapes, host, gpu, places, placement, denormals, strict, calibration, turns, "
         "progress, found threads; "
         "did you mean vthreads?"),
        (lambda: api.compile("digits", shape={"n": 1}), "found shape; did you mean shapes?"),
        (lambda: api.run("digits", {}, inputs={}),
         "each once, found multiple values for argument 'inputs'"),
        (lambda: api.tune("digits"), "each once, found missing a required argument: 'log'"),
        (lambda: api.run("digits", zzz=1), ", found zzz"),
    ],
)  # fmt: skip
def test_options_that_a_function_does_not_have(call, line):
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).endswith(line)


@pytest.mark.parametrize("function", [api.run, api.compile, api.check, api.profile, api.compare])
def test_what_is_no_model(function):
    with pytest.raises(UsageError, match=r"^model: expected .*, found int$"):
        function(42)


def test_what_is_no_config_and_no_sizes():
    with pytest.raises(UsageError) as error:
        api.compile("digits", 16)
    assert str(error.value) == "config: expected a config, its name or TOML file, found int"
    with pytest.raises(UsageError) as error:
        api.compile("digits", shapes=[1, 3])
    assert str(error.value) == (
        "shapes: expected a dictionary of names, as {'batch': 4, 'x': (1, 3, 8, 8)}, found [1, 3]"
    )


# Options that would change nothing ---------------------------------------------------------------

RUN, TUNE = ("run", "digits"), ("tune", "digits", "--log", "l")
CPU_TUNE = (*TUNE, "--target", "cpu")
IDLE = {
    (*RUN, "--check", "--output", "y.npz"): "--output: expected no --check, found both",
    (*RUN, "--check", "--trace", "t.json"): "--trace: expected no --check, found both",
    (*RUN, "--profile", "--trace", "t.json"): "--trace: expected no --profile, found both",
    (*RUN, "--device", "cpu", "--profile", "--output", "y.npz"):
        "--output: expected no --profile, found both",
    (*RUN, "--samples", "3"): "--samples: expected --check, found none",
    (*RUN, "--samples", "3", "--profile"): "--samples: expected --check, found none",
    (*RUN, "--check", "--samples", "3", "--input", "x.npz"):
        "--samples: expected no --input, found both",
    (*RUN, "--virtual"): "--virtual: expected --device board, found sim",
    (*RUN, "--port", "/dev/x", "--check"): "--port: expected --device board, found sim",
    ("run", "d.vdla", "--records", "none"):
        "--records: expected an ONNX model, found the module d.vdla",
    ("run", "d.vdla", "--target", "native"):
        "--target: expected an ONNX model, found the module d.vdla",
    ("compile", "digits", "-o", "d.vdla", "--device", "cpu", "--vthreads", "1"):
        "--vthreads: expected --device sim or rtl, found cpu",
    (*TUNE, "--threads", "2"): "--threads: expected --target cpu or x86-64-v3 or x86-64-v4, "
        "found accelerator",
    (*TUNE, "--strategy", "sketch"): "--strategy: expected --target cpu or x86-64-v3 or x86-64-v4 "
        "or gpu, found accelerator",
    (*CPU_TUNE, "-c", "tiny"): "--config: expected --target accelerator, found cpu",
    (*CPU_TUNE, "--set", "acc_bytes=64"): "--set: expected --target accelerator, found cpu",
    (*CPU_TUNE, "--vthreads", "1"): "--vthreads: expected --target accelerator, found cpu",
    (*CPU_TUNE, "--workers", "1"): "--workers: expected --target accelerator, found cpu",
    ("lockstep", "--model", "digits", "--programs", "7"):
        "--programs: expected no --model, found both",
    ("lockstep", "--model", "digits", "--seed", "7"): "--seed: expected no --model, found both",
    ("lockstep", "--model", "digits", "--workers", "2"):
        "--workers: expected no --model, found both",
    ("lockstep", "--model", "digits", "--memories", "1"):
        "--memories: expected no --model, found both",
    ("lockstep", "--model", "digits", "--coverage"):
        "--coverage: expected no --model, found both",
}  # fmt: skip


@pytest.mark.parametrize("command", IDLE, ids=" ".join)
def test_an_option_that_would_change_nothing_is_refused(vdla, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    done = vdla(*command)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"vdla: {IDLE[command]}\n"
    assert not list(tmp_path.iterdir())


def test_the_functions_refuse_it_as_well(tmp_path):
    for call, line in (
        (lambda: api.run("digits", samples=3), "--samples: expected --check, found none"),
        (lambda: api.profile("digits", samples=3), "--samples: expected --check, found none"),
        (lambda: api.check("digits", {}, samples=3), "--samples: expected no --input, found both"),
        (lambda: api.tune("digits", tmp_path / "l", target="cpu", workers=3),
         "--workers: expected --target accelerator, found cpu"),
        (lambda: api.compare("digits", latencies=[1]),
         "--latency: expected vdla.sweep for memory latencies, found another"),
        (lambda: api.same_schedule("digits", latencies=[1]),
         "--latency: expected vdla.sweep for memory latencies, found another"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as error:
            call()
        assert str(error.value) == line


def test_every_condition_names_an_option_that_there_is():
    """What an option's ``only`` names is a field of its class, or another option of its command."""
    flags = {"check", "explain", "profile", "input", "images", "device"}
    for kind in (Compile, Run, RunFiles, Compare, Tune, Lockstep, Synth):
        known = {field.name for field in fields(kind)} | flags
        for field in fields(kind):
            how = spelling.spelling(field)
            for only in how.only if how else ():
                assert isinstance(only, Only)
                assert only.other in known, (kind, field.name)


def test_a_list_is_as_good_as_a_tuple():
    @dataclass
    class Told:
        some: object = option((2,), "-s", "--some", typed=str, only=[Only("check")])

    require(Told([2]))
    with pytest.raises(UsageError, match=r"^--some: expected --check, found none$"):
        require(Told([3]))


def test_defaults_are_the_same_on_the_command_line():
    for kind in (Compile, Run, Compare, Synth, Lockstep):
        typed = {f.name: s.default for f in fields(kind) if (s := spelling.spelling(f))}
        assert spelling.read(kind, typed) == kind()
        assert not typed


def test_texts_are_read():
    typed = {f.name: s.default for f in fields(Compare) if (s := spelling.spelling(f))}
    typed |= {
        "vthreads": "1,4",
        "latencies": "0,64",
        "shapes": ["n=2", "x=1,3"],
        "settings": ["a=1"],
    }
    found = spelling.read(Compare, typed)
    assert found == Compare(None, (1, 4), ("a=1",), None, {"n": (2,), "x": (1, 3)}, (0, 64))


def test_the_api_refuses_what_the_command_does(tmp_path):
    def refusal(function, *args, **kwargs) -> str:
        with pytest.raises(UsageError) as caught:
            function(*args, **kwargs)
        return str(caught.value)

    assert issubclass(UsageError, package.UserError)
    assert refusal(api.run, "digits", device="board") == (
        "--device board: expected --board B, found none"
    )
    assert refusal(api.run, "digits", device="cpu", board="ulx3s") == (
        "--board: expected --device board or sim or rtl, found cpu"
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

    monkeypatch.setattr("vdla.api.ready.connect", connect)
    for how in ({"virtual": True}, {"port": "/dev/ttyUSB9"}):
        with pytest.raises(Reached):
            api.run("digits", device="board", board="ulx3s", **how)
    assert asked == [("ulx3s", "ulx3s", None, True), ("ulx3s", "ulx3s", "/dev/ttyUSB9", False)]
