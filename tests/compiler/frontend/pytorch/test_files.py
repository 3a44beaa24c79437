"""Files of PyTorch's: each goes the way that its bytes say, whatever its name is."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A network, and a ``.pt2`` file of it."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 4), nn.Tanh()).eval()
    path = tmp_path_factory.mktemp("programs") / "net.pt2"
    torch.export.save(torch.export.export(module, (torch.ones(2, 6),)), path)
    return module, path


def test_a_program_is_run(vdla, program, tmp_path):
    module, path = program
    x = torch.linspace(-1, 1, 12).reshape(2, 6)
    np.savez(tmp_path / "in.npz", input=x.numpy())
    done = vdla("run", path, "--device", "cpu", "--input", tmp_path / "in.npz", "--output",
                tmp_path / "out.npz", "--json")  # fmt: skip
    assert (done.code, done.err) == (0, "")
    json.loads(done.out)
    with np.load(tmp_path / "out.npz") as outputs:
        (result,) = outputs.values()
    assert np.allclose(result, module(x).detach().numpy(), atol=1e-6)


def test_a_program_is_told_by_its_bytes(vdla, program, tmp_path):
    renamed = tmp_path / "net.onnx"
    renamed.write_bytes(program[1].read_bytes())
    done = vdla("compile", renamed, "--device", "cpu", "-o", tmp_path / "net.vdla")
    assert done.code == 0
    assert f"wrote {tmp_path / 'net.vdla'}: " in done.err


def test_a_pickle(vdla, program, tmp_path):
    path = tmp_path / "net.pt2"
    torch.save(program[0].state_dict(), path)
    done = vdla("run", path, "--device", "cpu")
    assert done.code != 0
    assert (
        f"{path}: expected a program by torch.export.save, or FILE.py:CLASS, found a pickle by "
        "torch.save\n"
    ) in done.err


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
def test_a_file_that_was_cut(vdla, program, tmp_path, share):
    data = program[1].read_bytes()
    path = tmp_path / "net.pt2"
    path.write_bytes(data[: int(share * len(data))])
    done = vdla("run", path, "--device", "cpu")
    assert done.code != 0
    assert f"{path}: expected a whole file, found a damaged zip: " in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_file_with_damaged_members(vdla, program, tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(program[1]) as whole, zipfile.ZipFile(path, "w") as damaged:
        names = whole.namelist()
        chosen = rng.choice([n for n in names if whole.getinfo(n).file_size > 8])
        for name in names:
            data = bytearray(whole.read(name))
            if name == chosen:
                data[: len(data) // 2] = rng.bytes(len(data) // 2)
            damaged.writestr(name, bytes(data))
    done = vdla("run", path, "--device", "cpu")
    if done.code == 0:  # weights can be any bytes
        assert "weight" in chosen or "data" in chosen or "sample" in chosen
        return
    assert done.err.count("\n") == 1
    assert f"{path}" in done.err
    assert "Traceback" not in done.err
