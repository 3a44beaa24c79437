"""Other runtimes for ONNX files on a processor, which benchmarks time beside vdla.

onnxruntime comes with vdla, OpenVINO with ``pip install 'vdla[peers]'``. Each runs a file on as
many threads as vdla has, in float32 where the file has it, and takes denormal numbers for zeros, as
vdla does: OpenVINO by itself, onnxruntime by ``session.set_denormal_as_zero``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import onnx
import onnxruntime
from onnx import TensorProto, helper
from rich.console import Console

Run = Callable[[Mapping[str, Any]], object]  # arrays by the names of inputs
CPUINFO = Path("/proc/cpuinfo")
EXTENSIONS = {"avx512_vnni": "AVX-512 VNNI", "avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
MATRIX = ("amx_int8", "AMX")
WALL, PROCESSOR = "wall", "processor"
CLOCKS = {WALL: time.perf_counter, PROCESSOR: time.process_time}
PAUSE = 0.1  # seconds before each turn: onnxruntime's threads look for work for some 50 ms
ABSENT = "–"
COLUMNS = 160


class Peer(Protocol):
    """A runtime: its name in tables, its version, and files that it makes ready."""

    name: str
    version: str

    def ready(self, path: Path, shapes: Mapping[str, Sequence[int]], threads: int) -> Run:
        """Function that runs a file on inputs of some shapes.

        Raises:
            Exception: any, where the runtime refuses the file.
        """


class Onnxruntime:
    """onnxruntime with its default graph optimization.

    Its option for denormals holds for threads of its own, and for the thread that opens a process's
    first session, as long as that lives: so the first one is opened here.
    """

    name, version = "onnxruntime", onnxruntime.__version__

    def __init__(self) -> None:
        session_of(_smallest().SerializeToString(), 1, flush=True)

    def ready(self, path: Path, shapes: Mapping[str, Sequence[int]], threads: int) -> Run:
        """A session's run; the shapes are the inputs' own."""
        session = session_of(str(path), threads, flush=True)
        return lambda inputs: session.run(None, inputs)


def session_of(model: str | bytes, threads: int, *, flush: bool = False) -> Any:
    """A session of onnxruntime of a file's path or a model's bytes; ``flush``: denormal numbers
    are zeros."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # errors alone: a file may be wrong about its own shapes
    options.add_session_config_entry("session.set_denormal_as_zero", str(int(flush)))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _smallest() -> onnx.ModelProto:
    """A model of one operator."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Openvino:
    """OpenVINO for the latency of one input; inputs and outputs aren't copied."""

    name = "openvino"

    def __init__(self) -> None:
        self.package: Any = import_module("openvino")
        self.core, self.version = self.package.Core(), self.package.__version__.partition("-")[0]

    def ready(self, path: Path, shapes: Mapping[str, Sequence[int]], threads: int) -> Run:
        """A request's inference of a model that is compiled for the shapes."""
        model = self.core.read_model(path)
        model.reshape({name: list(shape) for name, shape in shapes.items()})
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }
        request = self.core.compile_model(model, "CPU", settings).create_infer_request()
        return lambda inputs: request.infer(dict(inputs), share_inputs=True, share_outputs=True)


PEERS: dict[str, Callable[[], Peer]] = {"onnxruntime": Onnxruntime, "openvino": Openvino}


def peers_named(text: str) -> list[Peer]:
    """The peers of names between commas, the value of ``--peers``.

    Raises:
        ArgumentTypeError: there is none of a name, or its package isn't installed.
    """
    names = text.split(",")
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(PEERS)}, found {name}")
        if find_spec(name) is None:
            raise argparse.ArgumentTypeError(
                f"expected the package {name}, found none; install with: pip install 'vdla[peers]'"
            )
    return [PEERS[name]() for name in dict.fromkeys(names)]


# Times ------------------------------------------------------------------------------------------


@dataclass
class Times:
    """vdla's shortest run and each peer's, in milliseconds, and vdla's over the peer's.

    ``median_ratios`` are those of the median runs. A peer that refuses the file is in none.
    """

    ours_ms: float = 0.0
    peers_ms: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    median_ratios: dict[str, float] = field(default_factory=dict)

    def to_fastest(self) -> float | None:
        """vdla's time over that of the fastest peer; None where all refuse."""
        return max(self.ratios.values(), default=None)


@dataclass(frozen=True)
class Job:
    """A file, inputs of it, on how many threads it runs, how often, and by which clock."""

    path: Path
    inputs: Mapping[str, Any]
    threads: int
    runs: int
    clock: str = WALL


def timed(peers: Sequence[Peer], ours: Run, job: Job) -> Times:
    """vdla's run and the peers' of a job, in turns."""
    peers_runs = {peer.name: run for peer in peers if (run := made_ready(peer, job))}
    own, *others = in_turns(job, lambda: ours(job.inputs), *peers_runs.values())
    theirs = dict(zip(peers_runs, others, strict=True))
    return Times(
        1e3 * min(own),
        {name: 1e3 * min(seconds) for name, seconds in theirs.items()},
        {name: min(own) / min(seconds) for name, seconds in theirs.items()},
        {name: median(own) / median(seconds) for name, seconds in theirs.items()},
    )


def made_ready(peer: Peer, job: Job) -> Callable[[], object] | None:
    """A peer's run of a job, after its first one; None where it refuses the file."""
    try:
        shapes = {name: array.shape for name, array in job.inputs.items()}
        run = peer.ready(job.path, shapes, job.threads)
        run(job.inputs)
    except Exception:  # each runtime has errors of its own
        return None
    return lambda: run(job.inputs)


def in_turns(job: Job, *which: Callable[[], object]) -> list[list[float]]:
    """Seconds of each run of each, in turns; before each that counts is one that doesn't."""
    seconds: list[list[float]] = [[] for _ in which]
    clock = CLOCKS[job.clock]
    for _ in range(job.runs):
        for one, times in zip(which, seconds, strict=True):
            time.sleep(PAUSE)
            one()
            start = clock()
            one()
            times.append(clock() - start)
    return seconds


# Tables -----------------------------------------------------------------------------------------


def titles(names: Sequence[str]) -> list[str]:
    """Columns of times: vdla's, each peer's and the ratio to it, the ratio to the fastest."""
    each = [title for name in names for title in (f"{name} ms", f"÷ {name}")]
    return ["vdla ms", *each, *(["÷ fastest"] if len(names) > 1 else [])]


def cells(times: Times, names: Sequence[str]) -> list[str]:
    """A row's cells in the columns of ``titles``."""
    each = [shown(at.get(name)) for name in names for at in (times.peers_ms, times.ratios)]
    return [shown(times.ours_ms), *each, *([shown(times.to_fastest())] if len(names) > 1 else [])]


def summary(rows: Sequence[Times], names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """(title, cells) of the lines below a table: geometric means of the ratios, and the worst."""
    ratios = [[row.ratios.get(name) for row in rows] for name in names]
    fastest = [row.to_fastest() for row in rows]
    for title, of in (("geometric mean", mean), ("worst", worst)):
        each = [cell for column in ratios for cell in ("", shown(of(column)))]
        yield title, ["", *each, *([shown(of(fastest))] if len(names) > 1 else [])]


def mean(ratios: Iterable[float | None]) -> float | None:
    """The geometric mean of those that there are; None without any."""
    known = [ratio for ratio in ratios if ratio]
    return exp(sum(map(log, known)) / len(known)) if known else None


def worst(ratios: Iterable[float | None]) -> float | None:
    """The largest of those that there are; None without any."""
    return max((ratio for ratio in ratios if ratio), default=None)


def shown(value: float | None) -> str:
    """Three digits, or a dash."""
    return ABSENT if value is None else f"{value:.3g}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of programs that time peers."""
    parser.add_argument("--peers", type=peers_named, default="onnxruntime")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default=WALL,
        help="processor: seconds that one thread computes, where others' work disturbs the wall's",
    )  # fmt: skip


def check_clock(parser: argparse.ArgumentParser, clock: str, threads: int) -> None:
    """Ends the program where processor time is wanted of several threads, which wait busily."""
    if clock == PROCESSOR and threads > 1:
        parser.error(f"--clock processor: expected --threads 1, found {threads}")


def console(stderr: bool = False) -> Console:
    """A console for tables, wide enough for them where it is no terminal."""
    result = Console(stderr=stderr)
    return result if result.is_terminal else Console(stderr=stderr, width=COLUMNS)


def machine_line(peers: Iterable[Peer]) -> str:
    """A line beside a table: this processor's instructions, the peers and their versions."""
    return "; ".join([instructions(), *(f"{peer.name} {peer.version}" for peer in peers)])


def instructions() -> str:
    """The vector instructions of this processor, as Linux has them: "AVX-512 VNNI, no AMX"."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    flags = {
        flag
        for line in lines
        if line.partition(":")[0].strip().lower() in ("flags", "features")
        for flag in line.partition(":")[2].split()
    }
    newest = next((name for flag, name in EXTENSIONS.items() if flag in flags), "unknown")
    flag, name = MATRIX
    return f"{newest}, {name if flag in flags else f'no {name}'}"
