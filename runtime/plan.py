"""The run plan: what a module does, step by step, and on what.

Grammar::

    Plan        := Step*                          in the order in which they run, but for jumps
    Step        := Work | Control
    Work        := Host | Accelerate | Gpu | Onnx | Open | Outside
    Control     := Copy | Clear | Jump | Next | Call | Return
    Host        := name function args             calls a host function
    Accelerate  := program layers reads writes    runs a program on the accelerator
    Gpu         := name function args             launches a function's kernels on the GPU
    Onnx        := name model args                runs one of the module's ONNX models
    Open        := name model args results order  runs one whose results are outputs of any size
    Outside     := name target code args          runs one of the module's codes for a target that a
                                                  package of its own brings
    Copy        := name args turn way             copies a tensor, or one element of it
    Clear       := name args                      fills a tensor with zeros
    Jump        := name to condition when         goes on with step ``to``, if a condition holds
    Next        := name to turn turns strict      counts a turn, and jumps for one more
    Call        := name to saved                  goes on with step ``to``, until a Return
    Return      := name                           goes on behind the last Call, or ends the run

``args`` are tensors of the module, the result last. An accelerator's program knows itself where its
bytes lie in DRAM; ``reads`` and ``writes`` are the tensors that it shares with other steps. In a
module's file a step is a JSON object whose ``kind`` tells which it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from vdla.runtime.errors import ModuleError
from vdla.support.names import shortened

MOST_OF_A_NAME = 40  # characters of a layer's name in a title


@dataclass(frozen=True)
class Host:
    """A call of a host function, for the node ``name``."""

    KIND: ClassVar[str] = "host"

    name: str
    function: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Accelerate:
    """A program of the accelerator; ``layers`` are the nodes that it computes.

    ``reads`` are the tensors that it reads and that others write, ``writes`` those that others may
    read.
    """

    KIND: ClassVar[str] = "vdla"

    program: str
    layers: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.program


@dataclass(frozen=True)
class Gpu:
    """A call of a function of the module's kernels, for the node ``name``."""

    KIND: ClassVar[str] = "gpu"

    name: str
    function: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Onnx:
    """A model that onnxruntime runs on the host, for the node ``name``."""

    KIND: ClassVar[str] = "onnxruntime"

    name: str
    model: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Open:
    """A model that onnxruntime runs on the host, whose results are outputs of the module.

    Their sizes depend on data, so they have no place in the image: the last of ``args`` is a byte
    that stands for all ``results``. ``order`` are the names of all outputs, as a run gives them.
    """

    KIND: ClassVar[str] = "outputs"

    name: str
    model: str
    args: tuple[str, ...]
    results: tuple[str, ...]
    order: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Outside:
    """Code that the runtime of another package's target runs, for the node ``name``."""

    KIND: ClassVar[str] = "outside"

    name: str
    target: str
    code: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Copy:
    """A copy of the first of ``args`` to the second.

    ``way`` is "whole" for a tensor; "take" for one element of the first along its first axis, "put"
    for one of the second, which ``turn`` counts, an int64.
    """

    KIND: ClassVar[str] = "copy"

    name: str
    args: tuple[str, ...]
    turn: str = ""
    way: str = "whole"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Clear:
    """Zeros for the tensor that ``args`` is."""

    KIND: ClassVar[str] = "clear"

    name: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Jump:
    """A jump to step ``to``; with a ``condition``, one bool, where that is as ``when`` says."""

    KIND: ClassVar[str] = "jump"

    name: str
    to: int
    condition: str = ""
    when: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Next:
    """The end of a turn of a loop: ``turn``, an int64, is counted up, and while it is less than
    ``turns``, step ``to`` comes next.

    With ``strict``, the loop was to end before: that it goes on is an error.
    """

    KIND: ClassVar[str] = "next"

    name: str
    to: int
    turn: str
    turns: int
    strict: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Call:
    """A call of the steps from ``to`` on; ``saved`` are tensors that have their values again when
    it has returned."""

    KIND: ClassVar[str] = "call"

    name: str
    to: int
    saved: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Return:
    """The end of called steps; of the run where none are called."""

    KIND: ClassVar[str] = "return"

    name: str

    def __str__(self) -> str:
        return self.name


Work = Host | Accelerate | Gpu | Onnx | Open | Outside
Control = Copy | Clear | Jump | Next | Call | Return
Step = Work | Control
Plan = tuple[Step, ...]
WAYS = ("whole", "take", "put")  # of copies
HOSTS = ("cpu", Gpu.KIND)  # devices that run what an accelerator leaves, or all of a network
KERNELS = "kernels for a GPU"  # a module's code for such steps, for people
STEPS: dict[str, type[Step]] = {
    step.KIND: step
    for step in (
        Host, Accelerate, Gpu, Onnx, Open, Outside, Copy, Clear, Jump, Next, Call, Return,
    )
}  # fmt: skip

# the fields that aren't text
FIELDS: dict[str, type] = {
    **dict.fromkeys(("args", "layers", "reads", "writes", "results", "order", "saved"), list),
    **dict.fromkeys(("to", "turns"), int),
    **dict.fromkeys(("when", "strict"), bool),
}
WORDS = {list: "a list of names", int: "a whole number", bool: "true or false", str: "text"}


def program_titles(plan: Sequence[Step]) -> dict[str, str]:
    """Title of each program in tables: its first and last layer, and which of several it is, as in
    ``program 1 of 3: conv1 to pool4``. By the programs' names."""
    steps = accelerator_steps(plan)
    titles = {}
    for place, step in enumerate(steps, start=1):
        ends = [shortened(name, MOST_OF_A_NAME) for name in (*step.layers[:1], *step.layers[-1:])]
        layers = " to ".join(dict.fromkeys(ends))
        which = f"program {place} of {len(steps)}" if len(steps) > 1 else ""
        titles[step.program] = ": ".join(part for part in (which, layers) if part) or step.program
    return titles


def accelerator_steps(plan: Sequence[Step]) -> list[Accelerate]:
    """The steps that need an accelerator."""
    return [step for step in plan if isinstance(step, Accelerate)]


def host_tensors(plan: Sequence[Step]) -> list[str]:
    """The tensors in the image that others than the accelerator read and write, each once."""
    hosts = (step for step in plan if not isinstance(step, Accelerate))
    return list(dict.fromkeys(name for step in hosts for name in (*reads(step), *writes(step))))


def shared_tensors(plan: Sequence[Step], ends: Sequence[str]) -> list[tuple[Accelerate, str]]:
    """The tensors that accelerator steps read of others' or write for them, beside the steps that
    do; ``ends`` are the module's inputs and outputs."""
    others = {*host_tensors(plan), *ends}
    moved = ((step, n) for step in accelerator_steps(plan) for n in (*step.reads, *step.writes))
    return [(step, name) for step, name in moved if name in others]


def reads(step: Step) -> tuple[str, ...]:
    """The tensors that a step reads."""
    if isinstance(step, Accelerate):
        return step.reads
    if isinstance(step, Jump):
        return (step.condition,) if step.condition else ()
    if isinstance(step, Next):
        return (step.turn,)
    if isinstance(step, Copy):
        return (*step.args[:-1], *filter(None, (step.turn,)))
    return step.saved if isinstance(step, Call) else getattr(step, "args", ())[:-1]


def writes(step: Step) -> tuple[str, ...]:
    """The tensors that a step writes."""
    if isinstance(step, Accelerate):
        return step.writes
    if isinstance(step, Next):
        return (step.turn,)
    return step.saved if isinstance(step, Call) else getattr(step, "args", ())[-1:]


def targets(plan: Sequence[Step]) -> set[int]:
    """The numbers of the steps that others jump to or call."""
    return {step.to for step in plan if isinstance(step, Jump | Next | Call)}


def runs(plan: Sequence[Step]) -> list[int]:
    """The number of times that each step runs, as far as a plan says: the turns of the loops around
    it, where their number is known. All of ``undecided`` counts once."""
    result = [1] * len(plan)
    for number, step in enumerate(plan):
        if isinstance(step, Next) and not step.strict:
            for each in range(step.to, number + 1):
                result[each] *= step.turns
    return result


def decided(plan: Sequence[Step]) -> list[bool]:
    """Whether each step runs as often as ``runs`` says: no jump leads over it, no call to it."""
    first = min((step.to for step in plan if isinstance(step, Call)), default=len(plan))
    over = {n for at, s in enumerate(plan) if isinstance(s, Jump) for n in range(at + 1, s.to)}
    return [number < first and number not in over for number in range(len(plan))]


def undecided(plan: Sequence[Step]) -> list[str]:
    """The choices, loops and calls of which only a run knows how often they lead where."""
    jumps = (step for step in plan if isinstance(step, Jump) and step.condition)
    names = [step.name.rpartition(".")[0] for step in jumps]
    return list(dict.fromkeys([*names, *(step.name for step in plan if isinstance(step, Call))]))


def is_apart(step: Step) -> bool:
    """Whether a step reads and writes another memory than the module's image."""
    return isinstance(step, Gpu)


def to_json(step: Step) -> dict[str, Any]:
    """A step as a module's file has it."""
    values = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(step).items()}
    return {"kind": step.KIND, **values}


def from_json(value: Mapping[str, Any]) -> Step:
    """A step of a module's file.

    Raises:
        ModuleError: no such kind of step, or a field that is missing or of another type.
    """
    cls = STEPS.get(value.get("kind", ""))
    if cls is None:
        raise ModuleError(
            f"steps: expected one of kind {', '.join(STEPS)}, found {value.get('kind')!r}"
        )
    result: dict[str, Any] = {}
    for f in fields(cls):
        given, kind = value.get(f.name), FIELDS.get(f.name, str)
        names = given if isinstance(given, list) else ()
        if type(given) is not kind or not all(isinstance(each, str) for each in names):
            raise ModuleError(
                f"steps: expected {f.name} of a {cls.KIND} step, {WORDS[kind]}, found {given!r}"
            )
        result[f.name] = tuple(given) if isinstance(given, list) else given
    return cls(**result)
