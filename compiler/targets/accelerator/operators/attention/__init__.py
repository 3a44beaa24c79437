"""Attention as one operator: scores, softmax, and what the shares take of the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.operators.attention.expression import expression
from vdla.compiler.targets.accelerator.operators.attention.schedule import schedule
from vdla.compiler.targets.accelerator.operators.attention.sizes import (
    AttentionSizes,
    AttentionTile,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    elements,
    one_scale,
    unlike_blocks,
)
from vdla.compiler.targets.accelerator.options.forwarding import no_forwarding
from vdla.compiler.targets.accelerator.options.reciprocals import no_reciprocals
from vdla.compiler.targets.accelerator.options.tables import no_tables
from vdla.isa.config import Config

__all__ = ["Attention"]


@dataclass(frozen=True)
class Attention(AttentionSizes, Held[QAttention, AttentionTile]):
    """See ``AttentionSizes``."""

    NAME = "attention"
    TILE = AttentionTile
    NOUN = "attention"
    NODES = (QAttention,)
    NUMBERS: ClassVar[Mapping[str, object]] = {
        "scored": (0, 0, 0), "factor": 0, "shift": 0, "shared": (0, 0, 0), "mixed": (0, 0, 0),
    }  # fmt: skip
    ZEROS = ("key_zero", "query_zero", "share_zero", "value_zero")

    @classmethod
    def refusal(
        cls, node: QAttention, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """A config may lack what its parts need, the way to INP, or room for a block of queries."""
        lacks = unlike_blocks(config), no_reciprocals(config), no_tables(config, "exponentials")
        if lack := next(filter(None, (*lacks, no_forwarding(config))), None):
            return lack
        template = cls.of(node, graph, config)
        if not template.has_room(config):
            return f"the buffers don't hold {template.wanted}"
        return None

    @classmethod
    def of(cls, node: QAttention, graph: Graph, config: Config) -> Attention:
        """The template of a node, with the numbers of its parts."""
        scores, shares, mixed = node.scores, node.shares, node.mixed
        heads, channels, _, keys = graph.tensors[scores.a].shape
        return cls(
            heads=heads,
            channels=channels,
            keys=keys,
            queries=graph.tensors[scores.b].shape[3],
            values=graph.tensors[mixed.b].shape[3],
            key_zero=scores.zeros[0],
            query_zero=scores.zeros[1],
            share_zero=mixed.zeros[0],
            value_zero=mixed.zeros[1],
            scored=scores.requant.limits,
            factor=shares.factor(keys),
            shift=shares.shift(keys),
            shared=shares.requant.limits,
            mixed=mixed.requant.limits,
        )

    def bind(self, node: QAttention, graph: Graph, config: Config) -> Binding:
        """Exponentials, unit vectors, which keys there are, one scale for all lanes, and ones."""
        scores, mixed, lanes = node.scores, node.mixed, config.channel_block
        _, blocks, _, _ = self.blocks(lanes)
        known = np.repeat(one_scale(1.0, config), blocks, axis=0)
        known.reshape(-1)[self.keys :] = 0
        constants: dict[str, Array] = {
            "table": node.shares.table,
            "units": np.eye(lanes, dtype=np.int8),
            "known": known,
            "scale": one_scale(scores.requant.scale[0], config),
            "out_scale": one_scale(mixed.requant.scale[0], config),
        }
        if self.query_zero or self.value_zero:
            constants["ones"] = np.ones((1, lanes, lanes), np.int8)
        if self.key_zero or self.share_zero:
            constants["one"] = np.ones((1, lanes), np.int8)
        tensors = {"keys": scores.a, "queries": scores.b, "values": mixed.b, "out": node.output}
        moved = sum(elements(graph, name) for name in tensors.values())
        pairs = self.heads * self.keys * self.queries
        return Binding(tensors, constants, pairs * (self.channels + self.values), moved)

    @property
    def wanted(self) -> str:
        """With how many keys there are."""
        return f"attention of a block of queries to {self.keys} keys of {self.channels} channels"

    def schedule(self, tile: AttentionTile, config: Config) -> Schedule:
        """One schedule over all parts."""
        return schedule(expression(self, config), tile, config)

    def sizes(
        self, config: Config, vthreads: int, only: AttentionTile | None = None
    ) -> Iterator[AttentionTile]:
        """A block of queries with the keys of two heads, and with those of one."""
        threads = min(vthreads, 2)
        values = self.heads_at_a_time(config.channel_block) if threads > 1 else 1
        for keys in (2, 1) if threads > 1 and self.heads > 1 else (1,):
            yield AttentionTile(keys, values, threads)

    def ranking(self, tiles: Sequence[AttentionTile], config: Config) -> Sequence[int]:
        """Most keys first."""
        return range(len(tiles))
