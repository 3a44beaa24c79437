"""Attention of queries to keys, and what it takes of the values, as one operator."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.graph.ops.fused import Fused
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax


@dataclass(frozen=True, kw_only=True)
class QAttention(Fused):
    """``scores → shares → exchange → mixed``: a :class:`QMatMul` of keys and queries, the
    :class:`QSoftmax` of each query's scores, their :class:`QTransposeImage`, and the
    :class:`QMatMul` of shares and values. Numbers are those of its parts, bit for bit.
    """

    @property
    def op(self) -> str:
        """Attention."""
        return type(self).__name__

    @property
    def scores(self) -> QMatMul:
        """The product of keys, ``a``, and queries, ``b``."""
        part = self.parts[0]
        assert isinstance(part, QMatMul)
        return part

    @property
    def shares(self) -> QSoftmax:
        """The softmax of the scores."""
        part = self.parts[1]
        assert isinstance(part, QSoftmax)
        return part

    @property
    def mixed(self) -> QMatMul:
        """The product of shares, ``a``, and values, ``b``."""
        part = self.parts[-1]
        assert isinstance(part, QMatMul)
        return part
