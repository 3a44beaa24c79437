"""Damaged files of every kind that vdla reads: each is refused in one line, or taken.

    python tests/support/fuzz_files.py --seed 7 --files 1300 [--kind module] [--keep FOLDER]

File ``n`` is of the ``n``-th kind, in turn, and what is done to it follows from ``n`` alone. The
command that reads it runs in a process of its own, with ``SECONDS`` of processor time and
``MEMORY`` bytes. It ends well where the exit code is 0 or 1, or where it is 2 with one line on
stderr that is no traceback, nothing on stdout and no file written. Everything else fails: a
traceback, a signal, a hang, a part of a file.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent))

from random_graphs import float_model, quantized

from vdla.compiler import models
from vdla.isa.asm import disassemble
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish
from vdla.isa.program import Program
from vdla.runtime.module import PREFIX, Module
from vdla.sim.checker import check
from vdla.support.names import printable

SECONDS = 60  # of processor time that a command may take
WAIT = 240  # seconds until it counts as one that waits for ever
MEMORY = 12 << 30
SHOWN = 200  # characters of what a command said
ROOT = Path(__file__).parents[2]
INTEGERS = (0, 1, -1, 2, 3, 7, 255, 256, -128, 1 << 15, (1 << 31) - 1, 1 << 31, -(1 << 31),
            1 << 32, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63), 1 << 64, 10**30)  # fmt: skip
FLOATS = (0.0, -0.0, 1.5, -1.0, 1e-45, 1e-300, 1e38, 1e308, float("inf"), -float("inf"),
          float("nan"))  # fmt: skip
TEXTS = ("", " ", "a", "x" * 5000, "\0", "\x1b[2J", "../../x", "/etc/passwd", "é✓", "\u202e", "0",
         "-1", "nan", "[]", "{", "x\ny", "$(x)", "<b>", "float32", "int8", "bfloat16", "sim", "cpu",
         "program0", "Conv", "ai.onnx", "com.microsoft")  # fmt: skip

Random = random.Random
Command = tuple[str, ...]


# Damage -------------------------------------------------------------------------------------------


def damaged_bytes(rng: Random, data: bytes) -> bytes:
    """Bytes with some flipped, left out, repeated, or cut off."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(result) + 1)
        size = rng.choice((1, 1, 4, 64, 1000))
        match rng.randrange(5):
            case 0 if at < len(result):
                result[at] ^= 1 << rng.randrange(8)
            case 1:
                result[at : at + size] = rng.randbytes(rng.choice((0, size, 2 * size)))
            case 2:
                result[at:at] = result[at : at + size]
            case 3:
                del result[at:]
            case _:
                result[at : at + size] = b"\xff" * size
    return bytes(result)


def odd_value(rng: Random, like: object = None) -> object:
    """A value of JSON or TOML: mostly of the kind that another one is of."""
    if rng.random() < 0.6:
        if isinstance(like, bool):
            return not like
        if isinstance(like, int):
            return rng.choice((like + 1, like - 1, -like, 2 * like, *INTEGERS))
        if isinstance(like, float):
            return rng.choice((*FLOATS, *INTEGERS))
        if isinstance(like, str):
            return rng.choice((like + "x", like[:-1], *TEXTS))
    deep: object = 1
    for _ in range(rng.choice((5, 100, 700))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    return rng.choice((None, True, [], {}, [[]], deep, *INTEGERS, *FLOATS, *TEXTS))


def damaged_value(rng: Random, value: object) -> object:
    """A tree of dictionaries and lists with one to three of its values changed, gone or twice."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return odd_value(rng, value)
        inside, key = rng.choice(places)
        match rng.randrange(6):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, list):
                inside.insert(key, copy.deepcopy(inside[key]))
            case 1:
                inside[rng.choice(TEXTS)] = inside[key]
            case _:
                inside[key] = odd_value(rng, inside[key])
    return value


def _places(value: object) -> Iterator[tuple[dict | list, object]]:
    """Where values are in a tree, at most some thousand."""
    open_values = [value]
    for _ in range(3000):
        if not open_values:
            return
        each = open_values.pop()
        if isinstance(each, dict | list):
            keys = list(each) if isinstance(each, dict) else range(len(each))
            for key in keys:
                yield each, key
                open_values.append(each[key])


def damaged_text(rng: Random, text: str) -> str:
    """A text with lines and words left out, repeated, swapped or replaced."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(lines) + 1)
        match rng.randrange(6):
            case 0:
                lines[at : at + 1] = []
            case 1:
                lines[at:at] = lines[at : at + 1]
            case 2:
                lines.insert(at, rng.choice(("(" * 5000, "[" * 3000, *TEXTS)))
            case _ if at < len(lines):
                words = lines[at].split(" ")
                words[rng.randrange(len(words))] = rng.choice(
                    (*map(str, INTEGERS), *map(str, FLOATS), *TEXTS)
                )
                lines[at] = " ".join(words)
    return "\n".join(lines)


def damaged_proto(rng: Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with one to three fields of its messages changed, gone or twice."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        message, name = rng.choice(list(_fields(result)))
        _damage_field(rng, message, name)
    return result


def _fields(message) -> Iterator[tuple[object, object]]:
    """All fields of a message and of those in it, but the values of large tensors."""
    open_messages = [message]
    while open_messages:
        each = open_messages.pop()
        for name, value in each.ListFields():
            yield each, name
            if name.type == name.TYPE_MESSAGE:
                # The oldest protobuf has ``label``, the newest ``is_repeated``.
                repeated = not hasattr(value, "ListFields")
                open_messages += list(value) if repeated else [value]


def _damage_field(rng: Random, message, name) -> None:
    value = getattr(message, name.name)
    repeated = not isinstance(value, str | bytes | int | float) and not hasattr(value, "ListFields")
    number = {name.TYPE_STRING: TEXTS, name.TYPE_BYTES: (b"", b"\xff", b"a" * 999)}.get(
        name.type, FLOATS if name.type in (name.TYPE_FLOAT, name.TYPE_DOUBLE) else INTEGERS
    )
    with suppress(ValueError, TypeError, UnicodeEncodeError):  # what the field can't hold
        if rng.random() < 0.2:
            message.ClearField(name.name)
        elif repeated and len(value):
            at = rng.randrange(len(value))
            if rng.random() < 0.3:
                del value[at]
            elif name.type == name.TYPE_MESSAGE:
                value.add().CopyFrom(value[at])
            elif rng.random() < 0.3:
                value.append(value[at])
            else:
                value[at] = rng.choice(number)
        elif name.type != name.TYPE_MESSAGE:
            setattr(message, name.name, rng.choice(number))


# Kinds of files -----------------------------------------------------------------------------------


@cache
def model_of(number: int) -> onnx.ModelProto:
    """A few small networks, of floats and quantized."""
    if number % 2:
        return quantized(float_model(940_000 + number, integer=True), number)
    return float_model(940_000 + number)


def model_command(rng: Random) -> Command:
    """A command that reads m.onnx."""
    return rng.choice(
        (
            ("run", "m.onnx", "--device", "cpu"),
            ("run", "m.onnx", "-c", "tiny"),
            ("run", "m.onnx", "-c", "tiny", "--check", "--samples", "1"),
            ("compile", "m.onnx", "-c", "paper-full", "-o", "m.vdla"),
            ("quantize", "m.onnx", "-o", "q.onnx"),
        )
    )


def onnx_fields(rng: Random) -> Command:
    """An ONNX file with fields changed."""
    model = damaged_proto(rng, model_of(rng.randrange(12)))
    Path("m.onnx").write_bytes(model.SerializePartialToString())
    return model_command(rng)


def onnx_bytes(rng: Random) -> Command:
    """An ONNX file with bytes changed."""
    data = model_of(rng.randrange(12)).SerializeToString()
    Path("m.onnx").write_bytes(damaged_bytes(rng, data))
    return model_command(rng)


@cache
def module_bytes() -> bytes:
    """A module of digits for ``tiny``."""
    from vdla import api

    return api.compile("digits", config="tiny").to_bytes()


def module_command(rng: Random) -> Command:
    """A command that reads m.vdla."""
    return rng.choice(
        (
            ("run", "m.vdla"),
            ("run", "m.vdla", "--no-native"),
            ("run", "m.vdla", "--trace", "t.json", "--profile")[: rng.choice((4, 2))],
            ("run", "m.vdla", "--profile"),
            ("isa", "disasm", "m.vdla"),
        )
    )


def module_header(rng: Random) -> Command:
    """A module with another header, whose checksum is right."""
    data = module_bytes()
    magic, version, length, _ = PREFIX.unpack_from(data)
    header, rest = data[PREFIX.size :][:length], data[PREFIX.size + length :]
    text = json.dumps(damaged_value(rng, json.loads(header))).encode()
    prefix = PREFIX.pack(magic, version, len(text), zlib.crc32(text))
    Path("m.vdla").write_bytes(prefix + text + rest)
    return module_command(rng)


def module_section(rng: Random) -> Command:
    """A module with a program or constants that are others, whose checksums are right."""
    module = Module.from_bytes(module_bytes())
    if rng.random() < 0.3:
        module.constants = damaged_bytes(rng, module.constants)
    else:
        name = rng.choice(list(module.programs))
        module.programs[name] = damaged_bytes(rng, module.programs[name])
    Path("m.vdla").write_bytes(module.to_bytes())
    return module_command(rng)


def module_file(rng: Random) -> Command:
    """A module's bytes changed."""
    Path("m.vdla").write_bytes(damaged_bytes(rng, module_bytes()))
    return module_command(rng)


def arrays(rng: Random) -> Command:
    """An .npz of inputs or of calibration samples."""
    name = model_of(2).graph.input[0].name
    shape = [d.dim_value for d in model_of(2).graph.input[0].type.tensor_type.shape.dim]
    array: object = np.ones(rng.choice((shape, [3, *shape[1:]], [], [0], [1, *shape], shape[1:])))
    kind = rng.choice(
        ("float32", "float64", "int8", "complex64", "<U3", "S5", "bool", "datetime64[s]")
    )
    with suppress(ValueError, TypeError):
        array = np.asarray(array).astype(kind)
    np.savez("x.npz", **{rng.choice((name, name, name, *TEXTS[:8])): array})
    match rng.randrange(5):
        case 0:
            Path("x.npz").write_bytes(damaged_bytes(rng, Path("x.npz").read_bytes()))
        case 1:
            with zipfile.ZipFile("x.npz", "a") as file:
                file.writestr(rng.choice((name, "a.npy", "../a.npy", "a\0b")), rng.randbytes(99))
        case 2:
            np.save("x.npz", np.array([{"a": 1}], object), allow_pickle=True)
            Path("x.npz.npy").rename("x.npz")
    Path("m.onnx").write_bytes(model_of(2).SerializeToString())
    return rng.choice(
        (
            ("run", "m.onnx", "--device", "cpu", "--input", "x.npz"),
            ("quantize", "m.onnx", "-o", "q.onnx", "--calibration", "x.npz"),
        )
    )


def toml_text(value: object) -> str:
    """A tree as TOML, as far as TOML has it."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(str(k))} = {toml_text(v)}" for k, v in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    return "''" if value is None else json.dumps(value)


def damaged_toml(rng: Random, path: Path) -> str:
    """A TOML file with values, or with lines changed."""
    import tomllib

    text = path.read_text()
    if rng.random() < 0.3:
        return damaged_text(rng, text)
    values = damaged_value(rng, tomllib.loads(text))
    if not isinstance(values, dict):
        return toml_text(values)
    return "\n".join(f"{json.dumps(str(k))} = {toml_text(v)}" for k, v in values.items())


def config(rng: Random) -> Command:
    """A config's TOML, or settings."""
    source = rng.choice(("tiny", "paper-full", "ulx3s"))
    text = damaged_toml(rng, ROOT / f"isa/configs/{source}.toml")
    Path("c.toml").write_text(text, "utf-8", "surrogateescape")
    key = rng.choice(("block_in", "memory.latency", "memory.banks.count", *TEXTS))
    setting = f"{key}={rng.choice((*INTEGERS, *FLOATS, *TEXTS))}".replace("\0", "")
    return rng.choice(
        (
            ("configs", "c.toml"),
            ("isa", "header", "-c", "c.toml"),
            ("run", "digits", "-c", "c.toml", "--images", "1"),
            ("configs", "tiny", "--set", setting),
            ("evaluate", "digits", "-c", "tiny", "--set", setting),
        )
    )


def space(rng: Random) -> Command:
    """A space of designs, or a table of energy."""
    if rng.random() < 0.5:
        name = rng.choice(("horowitz-45nm", "aladdin-45nm"))
        Path("e.toml").write_text(damaged_toml(rng, ROOT / f"sim/energy/tables/{name}.toml"))
        return ("run", "digits", "-c", "tiny", "--images", "1", "--energy", "e.toml")
    Path("s.toml").write_text(damaged_toml(rng, ROOT / "explore/spaces/small.toml"))
    return ("explore", "digits", "--space", "s.toml", "--budget", "1", "--out", "o")


@cache
def tuning_log() -> bytes:
    """Records that ship with vdla."""
    path = ROOT / "compiler/targets/accelerator/search/data/best.jsonl"
    return b"".join(path.read_bytes().splitlines(keepends=True)[:4])


def log(rng: Random) -> Command:
    """A log of tuning, or of a search for designs."""
    lines = tuning_log().splitlines()
    if rng.random() < 0.3:
        data = damaged_bytes(rng, tuning_log())
    else:
        at = rng.randrange(len(lines))
        lines[at] = json.dumps(damaged_value(rng, json.loads(lines[at]))).encode()
        data = b"".join(line + b"\n" for line in lines)
    Path("log").write_bytes(data)
    return rng.choice(
        (
            ("run", "digits", "-c", "paper", "--images", "1", "--records", "log"),
            ("tune", "digits", "-c", "tiny", "--trials", "1", "--workers", "1", "--log", "log"),
            ("explore", "digits", "--space", "small", "--budget", "1", "--resume", "log"),
        )
    )


@cache
def program_text() -> str:
    """The assembly of digits."""
    module = Module.from_bytes(module_bytes())
    program = next(iter(module.programs.values()))
    return disassemble(Program.from_bytes(program, load_config("tiny")))


def assembly(rng: Random) -> Command:
    """A program in assembly, or bytes of one."""
    if rng.random() < 0.5:
        lines = program_text().splitlines()
        text = damaged_text(rng, "\n".join(lines[: rng.choice((5, 40))]))
        Path("p.s").write_text(text, "utf-8", "surrogateescape")
        return ("isa", "asm", "p.s", "-o", "p.bin", "-c", "tiny")
    program = next(iter(Module.from_bytes(module_bytes()).programs.values()))
    Path("p.bin").write_bytes(damaged_bytes(rng, program))
    return ("isa", "disasm", "p.bin", "-c", "tiny")


KERNEL = """import sys
import numpy as np
import vdla
kernel = vdla.build(vdla.parse(open("k.txt").read(), "cpu"), None, "cpu")
kernel(*(np.zeros(p.shape, p.dtype) for p in kernel.params))
"""


@cache
def kernel_text() -> str:
    """A kernel's loops as text."""
    from vdla import build, te

    a = te.placeholder((8, 6), "float32", "a")
    k = te.reduce_axis((0, 6), "k")
    b = te.compute((8,), lambda i: te.sum(a[i, k] * 2.0, axis=k), "b")
    c = te.compute((8,), lambda i: te.select(b[i] > 1.0, b[i], 0.5), "c")
    return build(te.create_schedule(c.op), [a, c], "cpu").passes["loops"]


def kernel(rng: Random) -> Command:
    """The text of a kernel, parsed, built and run."""
    Path("k.txt").write_text(damaged_text(rng, kernel_text()), "utf-8", "surrogateescape")
    return ("kernel", "k.txt")


KINDS: dict[str, Callable[[Random], Command]] = {
    each.__name__: each
    for each in (
        onnx_fields, onnx_bytes, module_header, module_section, module_file, arrays, config, space,
        log, assembly, kernel, onnx_fields, module_header,
    )
}  # fmt: skip
TURNS = ("onnx_fields", "module_header", *KINDS)  # the first two are of most use


# One file -----------------------------------------------------------------------------------------


@dataclass
class Report:
    """How many commands ended how, and what went wrong, by the files' numbers."""

    ended: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {how}" for how, count in sorted(self.ended.items()))
        return f"{ends or 'nothing'}; {len(self.failed)} failed"


def run_file(number: int, folder: Path, kind: str = "") -> tuple[str, str, Command]:
    """How the command that reads file ``number`` ended, what it said, and the command."""
    chosen = kind or TURNS[number % len(TURNS)]
    rng = Random(number)
    before = Path.cwd()
    os.chdir(folder)
    try:
        command = KINDS[chosen](rng)
        made = set(folder.rglob("*"))
        code, out, err = _called(command)
        new = [p.name for p in {*folder.rglob("*")} - made if p.name not in ("stdout", "stderr")]
    finally:
        os.chdir(before)
    return (*_ending(code, out, err, new), command)


def _ending(code: int | str, out: str, err: str, new: list[str]) -> tuple[str, str]:
    """The word for an ending, and why it is none that should be."""
    lines = err.strip().splitlines()
    last = printable(lines[-1] if lines else "")[:SHOWN]
    if isinstance(code, str):
        return "failed", f"{code}: {last}"
    if "Traceback" in err:
        return "failed", f"traceback: {last}"
    if code == 0:
        return "taken", ""
    if code == 1:
        return "checked", ""
    if code != 2 or not lines:
        return "failed", f"exit code {code}: {last}"
    if new:
        return "failed", f"refused, but wrote {', '.join(new)}: {last}"
    if not last.startswith("vdla: ") or err != f"{lines[-1]}\n":
        progress = ("vdla: compiling", "vdla: waiting")  # may stand before the line
        if not all(line.startswith(progress) for line in lines[:-1]):
            return "failed", f"{len(lines)} lines: {printable(err)[:SHOWN]}"
    return "refused", ""


def _called(command: Command) -> tuple[int | str, str, str]:
    """Runs a command in a child of this process, with limits: its exit code, or what ended it."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be_the_command(command)
    end, code = time.monotonic() + WAIT, None
    while time.monotonic() < end:
        done, status, _ = os.wait4(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.005)
    if code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        code = f"waited for {WAIT} s"
    elif code in (-signal.SIGXCPU, -signal.SIGKILL):
        code = f"hang, {SECONDS} s of processor time"
    elif code < 0:
        code = f"signal {-code}"
    texts = (Path(name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    out, err = texts
    return code, out, err


def _be_the_command(command: Command) -> None:
    """The child: it never returns."""
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for name, number in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        if command[0] == "kernel":
            code = _run_kernel()
        else:
            from vdla.commands.cli import _run

            sys.argv = ["vdla", *command]
            code = _run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code or 0)


def _run_kernel() -> int:
    from vdla.commands import endings
    from vdla.support.errors import UserError

    try:
        exec(compile(KERNEL, "kernel", "exec"), {})
    except UserError as error:
        return endings.say(str(error), endings.WRONG)
    return 0


def fuzz(seed: int, files: int, kind: str = "", keep: Path | None = None) -> Report:
    """Runs files ``seed`` to ``seed + files - 1``; prints each that fails, and keeps it."""
    report = Report()
    _warm_up()
    for number in range(seed, seed + files):
        with tempfile.TemporaryDirectory() as folder:
            how, why, command = run_file(number, Path(folder), kind)
            report.ended[how] += 1
            if how == "failed":
                report.failed[number] = why
                shown = " ".join(command)
                print(f"file {number}: {shown}\n  {why}", flush=True)
                if keep is not None:
                    import shutil

                    shutil.copytree(folder, keep / str(number), dirs_exist_ok=True)
    return report


def _warm_up() -> None:
    """What all commands need is compiled and imported once, before the children are made."""
    import vdla.api.models
    import vdla.commands.evaluate
    import vdla.commands.explore
    import vdla.commands.run
    import vdla.commands.tiles
    import vdla.commands.transform  # noqa: F401
    from vdla.sim.machine import warm_up

    for name in ("tiny", "paper", "paper-full", "ulx3s"):
        warm_up(load_config(name))
    check(load_config("tiny"), [Finish()])
    module_bytes()
    program_text()
    kernel_text()
    models.model_path("digits")


def main() -> None:
    """The command: exit code 1 when a file fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--kind", choices=[*KINDS], default="")
    parser.add_argument("--keep", type=Path, help="a folder for the files that fail")
    options = parser.parse_args()
    began = time.monotonic()
    report = fuzz(options.seed, options.files, options.kind, options.keep)
    took = time.monotonic() - began
    print(f"seed {options.seed}, {options.files} files: {report}; {took:.0f} s")
    raise SystemExit(bool(report.failed))


if __name__ == "__main__":
    main()
