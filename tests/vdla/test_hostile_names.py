"""Hostile names in every field of every kind of file that vdla reads, and a look into everything
that it writes.

``KINDS`` are the files, ``COMMANDS`` what reads them; the tests are the table of both. A name of
ours (a config's, a space's) must be refused. A foreign one may be anything: no command may run what
it says, write beyond the folder it was given, send a terminal anything but text, or end in a
traceback.
"""

from __future__ import annotations

import json
import struct
import unicodedata
import zlib
from pathlib import Path

import numpy as np
import pytest
from qdq import QdqModel

from vdla import build, te
from vdla.hw import verilog
from vdla.isa.config import load_config
from vdla.runtime.module import PREFIX

NAMES = {
    "shell": '"; touch PWNED; $(touch PWNED) `touch PWNED` #',
    "verilog": 'x\nmodule evil(input wire aclk); initial $system("touch PWNED"); endmodule\n'
    "bind vdla evil e(.aclk(aclk));\n//",
    "comment": "*/\nint pwned(void);\n/*",
    "toml": 'a"\nblock_in = 8 #',
    "absolute": "/outside/PWNED",
    "above": "../../PWNED",
    "dots": "..",
    "terminal": "\x1b[2J\x1b]0;pwned\x07",
    "direction": "\u202egnp\u2028\x9b",
    "image": "<img src=x onerror=alert(1)>",
    "script": "</script><script>alert(1)</script>",
    "formula": r"$\frac$",
    "nul": "a\0b",
    "long": "n" * 1000,
}
REFUSED = [name for name in NAMES.values() if name != ".."]  # as a name of ours: .. is a legal one
SHOWN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # categories of characters that a terminal obeys


def spelled(text: str) -> str:
    """A string of TOML."""
    return json.dumps(text)


@pytest.fixture
def attempt(vdla, tmp_path, monkeypatch):
    """Runs a command in ``work``, which may write into ``work/out`` alone; gives what it left."""
    work = tmp_path / "deep" / "deeper" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)

    def run(*args, made=("out",)):
        (work / "out").mkdir(exist_ok=True)
        before = set(tmp_path.rglob("*"))
        done = vdla(*args)
        for text in (done.out, done.err):
            odd = {c for c in text.replace("\n", "") if unicodedata.category(c) in SHOWN}
            assert not odd, (args, odd)
            assert "Traceback" not in text
        new = {p.relative_to(work) for p in {*tmp_path.rglob("*")} - before if p.exists()}
        assert all(p.parts[0] in made for p in new), new
        assert not [
            p for p in tmp_path.rglob("*PWNED*") if p not in before and p.stat().st_size == 0
        ]
        assert not Path("/outside").exists()
        for page in (p for p in new if p.suffix == ".html"):
            text = page.read_text()
            assert "<img src=x" not in text
            assert "<script>alert" not in text
        for trace in (p for p in new if p.suffix == ".json"):
            json.loads(trace.read_text())
        return done

    return run


# Names of ours ------------------------------------------------------------------------------------

CONFIG = load_config("tiny").to_toml().replace('"tiny"', "NAME")
SPACE = """
name = NAME
base = "tiny"
[parameters]
block_in = [4, 8]
"""
CONFIG_COMMANDS = [
    "configs c.toml",
    "configs c.toml --json",
    "isa doc -c c.toml",
    "isa header -c c.toml",
    "isa rdl -c c.toml -o out/r.rdl",
    "isa asm p.s -o out/p.bin -c c.toml",
    "hw verilog -c c.toml",
    "compile digits -c c.toml -o out/m.vdla",
    "run digits -c c.toml --device rtl",
    "compare digits -c c.toml --out out --report out/r.html",
    "offload digits --board pynq-z1 -c c.toml --out out",
    "lockstep -c c.toml --programs 1",
    "evaluate digits -c c.toml",
    "tune digits -c c.toml --log out/log.jsonl",
    "synth --board pynq-z1 -c c.toml --out out",
    "explore digits --space base.toml --trials 1",
]


@pytest.mark.parametrize("command", CONFIG_COMMANDS)
def test_a_config_with_a_hostile_name_is_refused(command, attempt):
    Path("p.s").write_text("FINISH\n")
    Path("base.toml").write_text(SPACE.replace("NAME", '"s"').replace('"tiny"', '"c.toml"'))
    for name in REFUSED:
        Path("c.toml").write_text(CONFIG.replace("NAME", spelled(name)), "utf-8", "surrogatepass")
        done = attempt(*command.split())
        assert (done.code, done.out) == (2, ""), (name, done)
        assert "expected a name of 1 to 64 characters" in done.err or r"\x00" in done.err
        assert not list(Path("out").iterdir())


def test_a_file_without_a_name_says_which_key_gives_one(attempt):
    Path("my design.toml").write_text(CONFIG.replace("name = NAME", ""))
    done = attempt("configs", "my design.toml")
    assert done.code == 2
    assert done.err == (
        "vdla: my design.toml: expected a name of 1 to 64 characters out of A-Z a-z 0-9 _ . + -, "
        "found 'my design'; the key name sets it\n"
    )


@pytest.mark.parametrize("command", ["explore digits --space s.toml --trials 1 --out out"])
@pytest.mark.parametrize("field", ["name", "base", "parameter", "constraint"])
def test_a_space_with_a_hostile_name_is_refused(command, field, attempt):
    for name in REFUSED:
        text = SPACE.replace("NAME", spelled(name) if field == "name" else '"s"')
        if field == "base":
            text = text.replace('"tiny"', spelled(name))
        if field == "parameter":
            text += f"{spelled(name)} = [1, 2]\n"
        if field == "constraint":
            text = f"constraints = [{spelled(name)}]\n" + text
        Path("s.toml").write_text(text)
        done = attempt(*command.split())
        assert (done.code, done.out) == (2, ""), (name, done)
        assert not list(Path("out").iterdir())


def test_what_is_cached_for_a_config_says_no_name(monkeypatch):
    """One cache serves all configs of a hash: their names must not get into it."""
    monkeypatch.setattr(verilog, "convert", lambda top, name: f"module {name}; endmodule\n")
    config = load_config("tiny")
    other = load_config("tiny").override([])
    object.__setattr__(other, "name", "planted")
    assert verilog.verilog_of(config) == verilog.verilog_of(other)
    assert "planted" not in verilog.verilog_of(other)


# Names of foreign files ---------------------------------------------------------------------------


def hostile_model(path: Path) -> None:
    """A quantized network with a hostile name in every field that has one."""
    m = QdqModel(seed=5, name=NAMES["script"])
    x = m.input("x", (1, 8, 6, 6))
    for _ in range(6):
        x = m.conv(x, 8, 3 if m.shapes[x][2] > 4 else 1)
    m.output(m.node("Softmax", [x], m.shapes[x], axis=1))
    model = m.model()
    rename(model.graph)
    model.producer_name = model.domain = model.doc_string = NAMES["terminal"]
    model.metadata_props.add(key=NAMES["terminal"], value=NAMES["image"])
    path.write_bytes(model.SerializeToString())


def rename(graph) -> None:
    """Gives nodes and tensors hostile names, each of ``NAMES`` to several."""
    spare, new = list(NAMES.values()), {}

    def of(name: str) -> str:
        return new.setdefault(name, spare[len(new) % len(spare)] + f".{len(new)}" * (len(new) > 13))

    for each in (*graph.input, *graph.output, *graph.initializer):
        each.name = of(each.name)
    for node in graph.node:
        node.name = of(node.name)
        node.doc_string = NAMES["terminal"]
        node.input[:] = [name and of(name) for name in node.input]
        node.output[:] = map(of, node.output)


MODEL_COMMANDS = [
    "run m.onnx -c tiny",
    "run m.onnx -c tiny --json",
    "run m.onnx -c tiny --device cpu --profile",
    "run m.onnx -c tiny --check --samples 1",
    "run m.onnx -c tiny --energy horowitz-45nm --trace out/t.json --output out/y.npz",
    "run m.onnx --device cpu --trace out/t.json",
    "compile m.onnx -c tiny -o out/m.vdla --dump out/dump",
    "compare m.onnx -c tiny --out out --report out/page.html --latency 0,64 --same-schedule",
    pytest.param("offload m.onnx --board pynq-z1 --out out", marks=pytest.mark.long),
    "evaluate m.onnx -c tiny",
    pytest.param(
        "tune m.onnx -c tiny --log out/l.jsonl --trials 1 --workers 1", marks=pytest.mark.long
    ),
    "run m.onnx -c tiny --shape NAME=1",
    "run m.onnx -c tiny --place NAME=gpu",
    "compare m.onnx -c tiny --trace-layer NAME",
]


@pytest.mark.parametrize("command", MODEL_COMMANDS)
def test_a_model_with_hostile_names(command, attempt):
    hostile_model(Path("m.onnx"))
    words = [w.replace("NAME", NAMES["terminal"]) for w in command.split()]
    done = attempt(*words)
    assert done.code == (2 if "NAME" in command else 0), done


@pytest.mark.long
def test_each_layer_is_traced_in_the_folder(attempt):
    hostile_model(Path("m.onnx"))
    layers = attempt("compare", "m.onnx", "-c", "tiny", "--out", "out", "--json").json["layers"]
    for layer in layers:
        assert attempt("compare", "m.onnx", "-c", "tiny", "--out", "out", "--trace-layer",
                       layer["name"]).code == 0  # fmt: skip


@pytest.fixture
def module(attempt):
    """A module of the model, its header as JSON, and what writes it again."""
    hostile_model(Path("m.onnx"))
    assert attempt("compile", "m.onnx", "-c", "tiny", "-o", "out/m.vdla").code == 0
    data = Path("out/m.vdla").read_bytes()
    magic, version, length, _ = PREFIX.unpack_from(data)
    header, sections = data[PREFIX.size :][:length], data[PREFIX.size + length :]

    def write(header: dict) -> None:
        text = json.dumps(header).encode()
        prefix = struct.pack("<8sIII", magic, version, len(text), zlib.crc32(text))
        Path("out/m.vdla").write_bytes(prefix + text + sections)

    return json.loads(header), write


@pytest.mark.parametrize(
    "command",
    ["run out/m.vdla", "run out/m.vdla --device rtl --no-native", "isa disasm out/m.vdla"],
)
def test_a_module_with_hostile_names(command, module, attempt):
    header, write = module
    for name in REFUSED:
        write({**header, "config": {**header["config"], "name": name}})
        done = attempt(*command.split())
        assert done.code == 2, (name, done)


def test_a_module_whose_programs_have_hostile_names(module, attempt):
    header, write = module
    for name in NAMES.values():
        text = json.dumps(header).replace('"program0"', json.dumps(name))
        text = text.replace('"program:program0"', json.dumps(f"program:{name}"))
        write(json.loads(text))
        done = attempt("isa", "disasm", "out/m.vdla", "-o", "out/p.s")
        assert done.code == 0, done
        assert Path("out/p.s").read_text().startswith("; ")
        assert "\nint pwned" not in Path("out/p.s").read_text()
        assert attempt("run", "out/m.vdla", "--trace", "out/t.json").code == 0


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_an_input_file_with_hostile_names(name, attempt):
    hostile_model(Path("m.onnx"))
    np.savez("x.npz", **{name: np.zeros(3, np.float32)})
    assert attempt("run", "m.onnx", "-c", "tiny", "--input", "x.npz").code == 2
    assert attempt("quantize", "m.onnx", "-o", "out/q.onnx", "--calibration", "x.npz").code == 2


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_an_energy_table_with_hostile_texts(name, attempt):
    source = Path(__file__).parents[2] / "sim/energy/tables/horowitz-45nm.toml"
    lines = [
        f"title = {spelled(name)}" if line.startswith("title") else line
        for line in source.read_text().splitlines()
    ]
    Path("e.toml").write_text("\n".join(lines))
    done = attempt("run", "digits", "-c", "tiny", "--images", "1", "--energy", "e.toml")
    assert done.code == 0
    Path("e.toml").write_text("\n".join(lines).replace("\nadd =", f"\n{spelled(name)} ="))
    done = attempt("run", "digits", "-c", "tiny", "--images", "1", "--energy", "e.toml")
    assert done.code == 2


@pytest.mark.long
def test_records_and_logs_with_hostile_names(attempt):
    hostile_model(Path("m.onnx"))
    tune = ("tune", "m.onnx", "-c", "tiny", "--trials", "1", "--workers", "1", "--log")
    assert attempt(*tune, "out/l.jsonl").code == 0
    text = Path("out/l.jsonl").read_text()
    for name in NAMES.values():
        records = [json.loads(line) for line in text.splitlines()]
        for record in records:
            record.update({k: name for k, v in record.items() if isinstance(v, str)})
        Path("out/o.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        for command in (["run", "m.onnx", "-c", "tiny", "--records"], tune):
            assert attempt(*command, "out/o.jsonl").code in (0, 2)
        Path("out/o.jsonl").write_text(json.dumps({name: name}) + "\n")
        for command in (["run", "m.onnx", "-c", "tiny", "--records"], tune):
            assert attempt(*command, "out/o.jsonl").code in (0, 2)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_designs_and_programs_with_hostile_texts(name, attempt, monkeypatch):
    Path("p.s").write_text(name)
    assert attempt("isa", "asm", "p.s", "-o", "out/p.bin").code == 2
    Path("p.s").write_text(f"LOAD {name}=1\n")
    assert attempt("isa", "asm", "p.s", "-o", "out/p.bin").code == 2
    assert attempt("evaluate", "digits", f"{name}=1").code == 2
    assert attempt("configs", "tiny", "--set", f"{name}=1").code == 2


@pytest.mark.parametrize("name", [n for n in NAMES.values() if "\0" not in n and "/" not in n])
def test_files_with_hostile_names(name, attempt):
    """The files' own names, which the user typed: they are printed and never obeyed."""
    if len(name) > 200:
        pytest.skip("no file can have the name")
    hostile_model(Path(f"{name}.onnx"))
    made = ("out", f"{name}.toml")
    assert attempt("compile", f"{name}.onnx", "-c", "tiny", "-o", f"out/{name}.vdla").code == 0
    assert attempt("compare", f"{name}.onnx", "-c", "tiny", "--out", "out", made=made).code == 0
    Path(f"{name}.toml").write_text("[")
    assert attempt("configs", f"{name}.toml", made=made).code == 2


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_kernels_with_hostile_names(device, request):
    """Names of te become those of LLVM's IR and of OpenCL C."""
    if device == "gpu":
        request.getfixturevalue("gpu")
    for name in NAMES.values():
        a = te.placeholder((8,), "float32", name=name)
        b = te.compute((8,), lambda i, a=a: a[i] + a[i], name=name)
        kernel = build(te.create_schedule(b.op), [a, b], device)
        kernel(np.ones(8, np.float32), result := np.zeros(8, np.float32))
        assert np.array_equal(result, np.full(8, 2, np.float32))
