"""Models in files of other kinds than ONNX, brought into an ONNX file.

    onnx_file("net.tflite")           TFLite's
    onnx_file("net.pt2")              a program by torch.export.save
    onnx_file("net.py:Net")           a PyTorch module or a function of JAX in Python

A file is what its first bytes say, not its name. The ONNX file lies in the cache folder, by a
digest of its bytes; it notes the file that it comes from, which messages name.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.packages import missing
from vdla.compiler.frontend.sources import note_source
from vdla.support.files import cache_folder, keep_newest, write_bytes

if TYPE_CHECKING:
    import onnx  # which takes long to import, and an ONNX file needs none here

MOST_BYTES = 1 << 30  # of all models that are kept; the longest unused go first
LARGEST = 2**31 - 1  # bytes of a protobuf message
PROGRAM = "archive_format"  # a member of what torch.export.save writes
PICKLE = "data.pkl"  # a member of what torch.save writes

Translate = Callable[[Path], "onnx.ModelProto"]


def onnx_file(model: str | Path) -> Path:
    """Path of the ONNX file of a model: its own, or that of its translation.

    Raises:
        ModelError: the file is of a kind that isn't read, or can't be translated.
        UserError: the package that reads it is missing.
    """
    if python_name(str(model)) is not None:
        return _translated(str(model), 0, 0)
    path = Path(model)
    if not path.is_file() or _translator(path) is None:
        return path  # what is wrong with it is for the ONNX reader to say
    stat = path.stat()
    return _translated(str(model), stat.st_mtime_ns, stat.st_size)


def python_name(model: str) -> tuple[Path, str] | None:
    """File and name of a ``FILE.py:NAME``; None where a model is none."""
    file, colon, name = model.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") else None


@cache
def _translated(model: str, _time: int, _size: int) -> Path:
    """Path of a model's translation, made once for a file of that time and size."""
    python = python_name(model)
    if python is not None:
        proto = _from_python(*python)
        stem = python[1]
    else:
        path = Path(model)
        translate = _translator(path)
        assert translate is not None
        proto, stem = translate(path), path.stem
    return write_model(proto, model, stem)


def write_model(model: onnx.ModelProto, source: str, stem: str) -> Path:
    """Path of a model in the cache folder, by a digest of its bytes.

    Args:
        model: notes its source.
        source: the file or the module that it comes from, as messages name it.
        stem: the file's name without its end.

    Raises:
        ModelError: it is larger than a file of protobuf can be.
    """
    note_source(model, source)
    if model.ByteSize() > LARGEST:
        gib = f"{model.ByteSize() / 2**30:.1f} GiB"
        raise ModelError(source, "a model of at most 2 GiB", gib)
    data = model.SerializeToString(deterministic=True)
    folder = cache_folder("translated", hashlib.sha256(data).hexdigest()[:24])
    path = folder / f"{stem}.onnx"
    if not (path.is_file() and path.stat().st_size == len(data)):
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, data)
        keep_newest(folder.parent, "*/*.onnx", MOST_BYTES)
    return path


# Kinds of files ---------------------------------------------------------------------------------


def _translator(path: Path) -> Translate | None:
    """The translator of a file by its first bytes; None for ONNX and what isn't known.

    Raises:
        ModelError: the file is of a kind that isn't read.
    """
    with path.open("rb") as file:
        start = file.read(8)
    if start[4:8] == b"TFL3":
        return _from_tflite
    if start[:4] == b"GGUF":
        raise ModelError(str(path), "a model of tensors and operators", "GGUF, weights alone")
    if start[:8] == b"\x89HDF\r\n\x1a\n":
        expected = 'an ONNX file; Keras writes one by model.export("m.onnx", format="onnx")'
        raise ModelError(str(path), expected, "HDF5")
    if start[:4] == b"PK\x03\x04":
        return _of_archive(path)
    return None


def _of_archive(path: Path) -> Translate | None:
    """The translator of a zip file by its members."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError) as error:
        raise ModelError(str(path), "a whole file", f"a damaged zip: {error}") from None
    # A program has zip files in it, and one that was cut ends as they do.
    if min((info.header_offset for info in infos), default=0) > 0:
        raise ModelError(str(path), "a whole file", "a damaged zip: its first files aren't listed")
    members = {info.filename.rpartition("/")[2] for info in infos}
    if PROGRAM in members or "serialized_exported_program.json" in members:
        return _from_program
    if PICKLE in members:
        expected = "a program by torch.export.save, or FILE.py:CLASS"
        raise ModelError(str(path), expected, "a pickle by torch.save")
    if "model.weights.h5" in members:
        expected = 'an ONNX file; Keras writes one by model.export("m.onnx", format="onnx")'
        raise ModelError(str(path), expected, "a Keras archive")
    return None


def _from_tflite(path: Path) -> onnx.ModelProto:
    from vdla.compiler.frontend.tflite import translate

    return translate(path.read_bytes(), str(path))


def _from_program(path: Path) -> onnx.ModelProto:
    try:
        from vdla.compiler.frontend.pytorch.capture import convert, load_program
    except ModuleNotFoundError as error:
        raise missing(str(path), error, "torch") from None
    return convert(load_program(path), str(path)).model


def _from_python(path: Path, name: str) -> onnx.ModelProto:
    from vdla.compiler.frontend.functions import capture_function
    from vdla.compiler.frontend.python_files import load_function

    function, args = load_function(path, name)
    return capture_function(function, args, {}, None, f"{path}:{name}").model
