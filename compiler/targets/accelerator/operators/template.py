"""Templates, which the accelerator can be given: one per operator, and their protocol.

A **template** is an operator at one size, without a graph: it knows its expression, the tiles that
it can be cut into, and what each of them costs. Its **tile** is a point of that space: with it the
template gives a schedule. An :class:`Operator` is a template bound to a node: which tensors it
reads and writes, and the constants that the accelerator alone needs.

Each operator is one file of this folder with one subclass of :class:`Template`. Subclasses register
themselves with the graph nodes that they are for and with the name under which records know them;
whoever places, compiles or tunes asks here, and knows no operator by name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from math import prod
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets import template
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.operators.cost import (
    Places,
    TileCost,
    cheapest,
    no_tile,
)
from vdla.compiler.targets.accelerator.operators.nest import Nest
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale
from vdla.support.numbers import ceil_div

Array = NDArray[np.generic]

MIN_FILL = 0.5  # below this share of the input lanes, a convolution is better off on the processor

BY_NODE: dict[type[Node], type[AnyTemplate]] = {}
BY_NAME: dict[str, type[AnyTemplate]] = {}
INSTEAD: dict[type[Node], list[type[AnyTemplate]]] = {}  # asked before the one by node


class Tile:
    """A point of a template's schedule space: a frozen dataclass whose fields are the knobs."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    vthreads: int


N = TypeVar("N", bound=Node)
T = TypeVar("T", bound=Tile)


@dataclass(frozen=True)
class Binding:
    """A template's place in a graph.

    ``tensors`` maps the expression's placeholders and its result ``out`` to the graph's tensors;
    ``constants`` are the placeholders that the accelerator alone reads, as it wants them. ``macs``
    and ``dram_bytes`` are the node's own: no padding, every byte once.
    """

    tensors: Mapping[str, str]
    constants: Mapping[str, Array]
    macs: int
    dram_bytes: int


class Template(template.Template[N, Config], Generic[N, T]):
    """An operator of one size: a frozen dataclass; ``N`` are its nodes, ``T`` its tiles.

    ``NAME`` is what records call it, ``TILE`` the class of its tiles, ``NOUN`` what errors call it.
    ``NUMBERS`` are the fields that change results and no cycle (zero points, clipping bounds,
    factors), and of the fields ``ZEROS`` all does but whether they are zero: templates that differ
    in nothing else share their tile. A template with ``TUNED`` false has one tile, and nothing to
    search for. With ``ASKS_DEPTHS`` its schedule depends on how much the buffers hold, too.
    ``INSTEAD`` are nodes of other templates, of which it takes those that ``instead`` says.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    NAME: ClassVar[str]
    INSTEAD: ClassVar[tuple[type[Node], ...]] = ()
    TILE: ClassVar[type[Tile]]
    NOUN: ClassVar[str]
    NUMBERS: ClassVar[Mapping[str, object]] = {}
    ZEROS: ClassVar[Sequence[str]] = ()
    TUNED: ClassVar[bool] = True
    ASKS_DEPTHS: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "NAME" in vars(cls):  # the others are parts of templates
            BY_NAME[cls.NAME] = cls
            BY_NODE.update(dict.fromkeys(cls.NODES, cls))
            for node in cls.INSTEAD:
                INSTEAD.setdefault(node, []).append(cls)

    # From the graph ---------------------------------------------------------------------------

    @classmethod
    def refusal(
        cls, node: N, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Reason for which a node of ``NODES`` can't or shouldn't run on the accelerator; None if
        it should.

        Args:
            min_fill: the share of the input lanes that a convolution must fill.
        """
        return None

    @classmethod
    def instead(cls, node: Node, graph: Graph, config: Config) -> Self | None:
        """The template of a node of ``INSTEAD``; None where the node's own is better."""
        return None

    @classmethod
    def placed(cls, node: N) -> str:
        """Text of the placement report for a node that runs on the accelerator."""
        return f"{cls.NOUN} on int8"

    @classmethod
    @abstractmethod
    def of(cls, node: N, graph: Graph, config: Config) -> Self:
        """The template of a node that was placed on the accelerator."""

    @abstractmethod
    def bind(self, node: N, graph: Graph, config: Config) -> Binding:
        """The node's tensors and constants in the graph."""

    # The schedule space -----------------------------------------------------------------------

    @abstractmethod
    def schedule(self, tile: T, config: Config) -> Schedule:
        """The scheduled expression."""

    def instructions(self, tile: T, config: Config) -> Kernel | None:
        """The instructions of an operator whose loops no schedule gives; None of all others."""
        return None

    @abstractmethod
    def tiles(self, config: Config, vthreads: int, only: T | None = None) -> Iterator[T]:
        """The tiles for so many virtual threads that the buffers hold; with ``only``, those of its
        size."""

    def candidates(self, config: Config, vthreads: int) -> Iterator[tuple[Places, T]]:
        """``tiles``, those that make the same loops as one whose numbers are columns, and where
        they stand among all."""
        return alike(list(self.tiles(config, vthreads)))

    def cost(self, tile: T, config: Config) -> TileCost:
        """The work of a tile, for the analytic model; its numbers may be columns.

        A template whose ``best`` doesn't ask the model has none.
        """
        raise NotImplementedError(f"{self.NAME}: expected a template that the analytic model knows")

    def nest(self, tile: T, config: Config) -> Nest:
        """The loops around a tile; its numbers may be columns, with an entry for each of many.

        A template that isn't ``TUNED`` has none: nothing is searched for.
        """
        raise NotImplementedError(f"{self.NAME}: expected a template that is tuned")

    @property
    def wanted(self) -> str:
        """Name, for errors, of the operator of which the buffers have to hold a tile."""
        return self.NOUN

    # What all of them share -------------------------------------------------------------------

    @property
    def geometry(self) -> Self:
        """A copy with every field that changes no cycle set to a neutral value."""
        numbers = {n: v for n, v in self.NUMBERS.items() if getattr(self, n) is not None}
        zeros = {name: int(getattr(self, name) != 0) for name in self.ZEROS}
        return replace(self, **numbers, **zeros)

    def best(self, config: Config, vthreads: int) -> T:
        """The tile for so many virtual threads that the analytic model likes best.

        Raises:
            TilingError: the buffers hold none.
        """
        groups = list(self.candidates(config, vthreads))
        costs = ((self.cost(tile, config), places) for places, tile in groups)
        result = cheapest(costs, config)
        if result is None:
            raise no_tile(f"one tile of {self.wanted}", config)
        return _tile_at(result, groups)

    def is_legal(self, tile: T, config: Config, vthreads: int) -> bool:
        """Whether ``tiles`` has a tile; of all those, only the ones of its size are made."""
        return tile in self.tiles(config, vthreads, tile)

    def to_json(self) -> dict[str, object]:
        """The fields of the geometry, as tuning records hold them."""
        result: dict[str, object] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value is False and f.default is False:
                continue  # as templates were before they had the field
            if f.name not in self.NUMBERS:
                result[f.name] = value
            elif self.NUMBERS[f.name] != 0:  # only whether it is there
                result[f.name] = value is not None
        return result

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """A template of this geometry, with made-up numbers.

        Raises:
            TypeError: templates have other fields today.
        """
        known = {name: _tuples(v) for name, v in value.items()}
        for name, number in cls.NUMBERS.items():
            known[name] = number if known.get(name, True) else None
        return cls(**known)


AnyTemplate = Template[Any, Any]


@dataclass(frozen=True)
class Operator:
    """One node with its template and its place in the graph, ready to be scheduled.

    ``scratch`` are the bytes of what its kernel has in DRAM for itself, by name.
    """

    node: Node
    template: AnyTemplate
    tensors: Mapping[str, str]
    constants: Mapping[str, Array]
    macs: int
    dram_bytes: int
    scratch: Mapping[str, int] = field(default_factory=dict)

    def with_kernel(self, sizes: Mapping[str, int]) -> Operator:
        """The operator with the bytes of its kernel's tensors known. What only the kernel has in
        DRAM, between its instructions, gets a name in the graph: ``NODE%STAGE``."""
        own = {key: f"{self.node.name}%{key}" for key in sizes if key not in self.tensors}
        scratch = {name: sizes[key] for key, name in own.items()}
        return replace(self, tensors={**self.tensors, **own}, scratch=scratch)


def template_of(node: Node, graph: Graph, config: Config) -> AnyTemplate:
    """The template of a node that was placed on the accelerator.

    Raises:
        GraphError: there is none for such a node.
    """
    if type(node) not in BY_NODE:
        raise GraphError(f"{node.name}: expected a node with a template, found {node.op}")
    for other in INSTEAD.get(type(node), ()):
        if (made := other.instead(node, graph, config)) is not None:
            return made
    return BY_NODE[type(node)].of(node, graph, config)


def operator_of(node: Node, graph: Graph, template: AnyTemplate, config: Config) -> Operator:
    """The accelerator operator of a node that was placed there, with its template.

    Its constants get names of their own: ``NODE%PLACEHOLDER``.
    """
    bound = template.bind(node, graph, config)
    names = {key: f"{node.name}%{key}" for key in bound.constants}
    return Operator(
        node,
        template,
        {**bound.tensors, **names},
        {names[key]: array for key, array in bound.constants.items()},
        bound.macs,
        bound.dram_bytes,
    )


def alike(tiles: Sequence[T]) -> Iterator[tuple[Places, T]]:
    """Places of the tiles that make the same loops, with these tiles as one.

    Such tiles are equal in all that isn't a number; the numbers of the one are columns.
    """
    names = [f.name for f in fields(tiles[0])] if tiles else []
    columns = {name: np.array([getattr(tile, name) for tile in tiles]) for name in names}
    numbers = [name for name in names if columns[name].dtype.kind == "i"]
    choices = [columns[name].astype(str) for name in names if name not in numbers]
    keys = np.array(["/".join(each) for each in zip(*choices, strict=True)] or [""] * len(tiles))
    for key in dict.fromkeys(keys.tolist()):
        places = np.flatnonzero(keys == key)
        of = {name: columns[name][places] for name in numbers}
        yield places, replace(tiles[int(places[0])], **of)


def _tile_at(place: int, groups: Sequence[tuple[Places, T]]) -> T:
    """The tile that stands at a place among those of some groups."""
    places, tile = next(group for group in groups if place in group[0])
    number = int(np.flatnonzero(places == place)[0])
    columns = {f.name: getattr(tile, f.name) for f in fields(tile)}
    numbers = {n: c[number].item() for n, c in columns.items() if isinstance(c, np.ndarray)}
    return replace(tile, **numbers)


def tile_text(tile: Tile) -> str:
    """A tile as the reports print it."""
    return " ".join(f"{f.name}={getattr(tile, f.name)}" for f in fields(tile))


def with_article(noun: str) -> str:
    """``a pool``, ``an addition``: a noun for errors."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def elements(graph: Graph, name: str) -> int:
    """Elements of a tensor without channel padding."""
    return int(np.prod(graph.tensors[name].shape))


def vectors_of(node: Node, graph: Graph, config: Config) -> int:
    """The vectors of a node's result, with the padding of its channels."""
    n, c, *image = graph.tensors[node.output].shape
    lanes = n * ceil_div(c, config.channel_block) * prod(image) * config.channel_block
    return int(lanes // config.block_out)


def without_blocks(node: Node, graph: Graph) -> str | None:
    """Reason for which a node's result has no channel blocks; None for images and vectors, which
    have.
    """
    rank = len(graph.tensors[node.output].shape)
    return None if rank in (2, 4) else f"a tensor of {rank} dimensions has no channel blocks"


def unlike_blocks(config: Config) -> str | None:
    """Reason for which a block of an image's pixels is no tile of weights; None where it is one."""
    if config.block_in == config.block_out:
        return None
    blocks = f"{config.block_in} and {config.block_out}"
    return f"pixels are no tiles of weights where blocks differ, {blocks}"


def one_scale(scale: float, config: Config) -> Array:
    """A row of constants: the same packed scale for all lanes."""
    return np.full((1, config.block_out), pack_scale(scale), np.int32)


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
