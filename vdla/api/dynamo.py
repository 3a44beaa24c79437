"""The back end ``vdla`` of ``torch.compile``: inference on this machine's processor.

    fast = torch.compile(module.eval(), backend="vdla")
    with torch.no_grad():
        y = fast(x)

PyTorch finds it by the entry point ``torch_dynamo_backends`` in pyproject.toml. Parameters are
constants of the compiled code: where one is changed, the next call compiles anew. Sizes that
PyTorch leaves open are compiled when they are first met. Nothing is differentiated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch

from vdla.api.functions import REMEMBERED, Compiled, compile_function

Key = tuple[object, ...]
Bound = dict[int, torch.Tensor | int | float | bool]  # known arguments, by their places


def backend(
    graph: torch.fx.GraphModule, example: Sequence[torch.Tensor]
) -> Callable[..., Sequence[object]]:
    """A function that computes a graph of ``torch.compile``."""
    fixed = [place for place, value in enumerate(example) if isinstance(value, torch.nn.Parameter)]
    ready: OrderedDict[Key, tuple[Compiled, Bound]] = OrderedDict()

    def call(*args: torch.Tensor) -> Sequence[object]:
        key = tuple(
            value._version if place in fixed else _kind(value) for place, value in enumerate(args)
        )
        if key not in ready:
            bound = {p: v for p, v in enumerate(args) if p in fixed or not _is_tensor(v)}
            module = _WithArguments(graph, bound)
            ready[key] = compile_function(module, _free(args, bound), device="cpu"), bound
            if len(ready) > REMEMBERED:
                ready.popitem(last=False)
        ready.move_to_end(key)
        compiled, bound = ready[key]
        result: Sequence[object] = compiled(*_free(args, bound))
        return result

    return call


class _WithArguments(torch.nn.Module):
    """A graph of which some arguments are known: parameters, sizes."""

    def __init__(self, graph: torch.fx.GraphModule, bound: Bound) -> None:
        super().__init__()
        self.graph, self.bound = graph, bound
        for place, value in bound.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(f"argument_{place}", value.detach())
        self.eval()

    def forward(self, *rest: torch.Tensor) -> Sequence[torch.Tensor]:
        """The graph's results, of the arguments that are not known."""
        free = iter(rest)
        places = range(len(rest) + len(self.bound))
        results: Sequence[torch.Tensor] = self.graph(
            *[self._value(p) if p in self.bound else next(free) for p in places]
        )
        return results

    def _value(self, place: int) -> torch.Tensor:
        return getattr(self, f"argument_{place}", self.bound[place])


def _free(args: Sequence[object], bound: Bound) -> tuple[object, ...]:
    """The arguments that are not known when a graph is compiled."""
    return tuple(value for place, value in enumerate(args) if place not in bound)


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _kind(value: torch.Tensor) -> object:
    """Kind of an argument that code is compiled for: a tensor's shape and dtype, or a number."""
    return (tuple(value.shape), value.dtype) if _is_tensor(value) else value
