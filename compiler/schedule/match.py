"""Whether a block does what an intrinsic's behaviour says, and with which operands and params."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from vdla.compiler.tir.arith import Ranges, same, simplify
from vdla.compiler.tir.ir import (
    COMMUTATIVE,
    INT_RANGES,
    TRUE,
    ZERO,
    Binary,
    Buffer,
    BufferRef,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Not,
    Select,
    Var,
    const,
    is_int,
)
from vdla.compiler.tir.ir.intrin import Param, TensorIntrin
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import loads, substitute_expr, uses

ASSOCIATIVE = ("add", "mul", "min", "max", "and", "or")


@dataclass(frozen=True, slots=True)
class LoopInfo:
    """A loop inside the matched region: spatial or reduce."""

    var: Var
    extent: int
    kind: str

    def __str__(self) -> str:
        return f"{self.var.name} in {self.extent} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Region:
    """Statement to be matched, in loop variables: ``buffer[indices] = value`` after ``init``.

    Attributes:
        buffer: what is written.
        indices: where.
        value: what is written there; a reduction's reads the old element too.
        init: what the element starts from; None where it isn't a reduction.
        loops: the loops that the intrinsic is to take the place of.
        ranges: the inclusive bounds of the variables.
        values: the intervals that buffers' elements are known to lie in, by buffer name.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    init: Expr | None
    loops: tuple[LoopInfo, ...]
    ranges: Ranges
    values: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binding:
    """Operands and params of the behaviour that a match has bound so far; extended by copying."""

    operands: Mapping[Buffer, BufferRef] = field(default_factory=dict)
    params: Mapping[Param, Expr] = field(default_factory=dict)

    def with_operand(self, buffer: Buffer, ref: BufferRef) -> Binding:
        """The binding with one more operand, which lies at ``ref``."""
        return Binding({**self.operands, buffer: ref}, self.params)

    def with_param(self, param: Param, value: Expr) -> Binding:
        """The binding with the value of one more param."""
        return Binding(self.operands, {**self.params, param: value})


class Mismatch(Exception):
    """The region isn't what the intrinsic does; the message says what was expected and found.

    ``progress`` is how much of the behaviour had matched, to tell which intrinsic came closest.
    """

    def __init__(self, text: str, progress: tuple[int, int] = (-1, -1)) -> None:
        super().__init__(text)
        self.progress = progress


ANOTHER_KIND = (-2, 0)  # the progress of a reduction held against a plain store
OUT_OF_RANGE = (1 << 30, 0)  # the progress of a match that fails for its values alone


def match_intrinsic(intrin: TensorIntrin, region: Region) -> Binding:
    """The operands and params with which an intrinsic does what a region does.

    Raises:
        Mismatch: it doesn't, or not for all values that the region's buffers may hold.
    """
    if intrin.is_reduction != (region.init is not None):
        kinds = ("a plain store", "a reduction")
        raise Mismatch(
            f"expects {kinds[intrin.is_reduction]}, found {kinds[region.init is not None]}",
            ANOTHER_KIND,
        )
    reason: Mismatch | None = None
    for mapping in _loop_mappings(intrin, region):
        matcher = _Matcher(intrin, region, mapping)
        for each in matcher.matches():
            violated = _out_of_range(intrin, each, region)
            if violated is None:
                return each
            reason = reason or violated
        reason = reason or matcher.mismatch()
    raise reason or Mismatch(
        f"expects loops {_listed(intrin)}, found {', '.join(map(str, region.loops)) or 'none'}"
    )


def _out_of_range(intrin: TensorIntrin, binding: Binding, region: Region) -> Mismatch | None:
    """The first operand or param whose values the behaviour doesn't hold for."""
    for operand, ref in binding.operands.items():
        if (needed := intrin.laws.ranges.get(operand.name)) is None:
            continue
        known = region.values.get(ref.buffer.name, INT_RANGES[ref.buffer.dtype])
        if not _within(known, needed):
            name = ref.buffer.name
            return Mismatch(
                f"expects {operand.name} in {needed[0]}..{needed[1]}, found {name} in "
                f"{known[0]}..{known[1]}; clamp it, as te.max(te.min({name}[...], {needed[1]}), "
                f"{needed[0]}), or promise it, as te.placeholder(..., value_range={needed})",
                OUT_OF_RANGE,
            )
    constants = {p.name: int(v.value) for p, v in binding.params.items() if isinstance(v, Const)}
    for name, needed in intrin.laws.ranges.items():
        terms = name.split(" + ")
        if all(term in constants for term in terms):
            value = sum(constants[term] for term in terms)
            if not needed[0] <= value <= needed[1]:
                return Mismatch(
                    f"expects the constant {name} in {needed[0]}..{needed[1]}, found {value}",
                    OUT_OF_RANGE,
                )
    return None


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    """Whether one interval lies inside another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _listed(intrin: TensorIntrin) -> str:
    """The intrinsic's loops, for messages."""
    return ", ".join(f"{v.name} in {n} ({kind})" for v, n, kind in intrin.axes if n > 1) or "none"


def _loop_mappings(intrin: TensorIntrin, region: Region) -> Iterator[dict[Var, Expr]]:
    """Each way to lay the intrinsic's axes on the region's loops; loops of one step don't count."""
    axes = [(v, n, kind) for v, n, kind in intrin.axes if n > 1]
    single: dict[Var, Expr] = {v: ZERO for v, n, _ in intrin.axes if n == 1}
    if len(axes) != len(region.loops):
        return
    for order in permutations(region.loops):
        pairs = list(zip(axes, order, strict=True))
        if all(n == loop.extent and kind == loop.kind for (_, n, kind), loop in pairs):
            yield {**single, **{v: loop.var for (v, _, _), loop in pairs}}


class _Matcher:
    """Unifies an intrinsic's behaviour with a region, its axes laid on the region's loops.

    The methods that yield bindings go through every way to match, because a commutative operand
    that fits alone may not fit with the rest. The mismatch that came latest is kept for the
    message.
    """

    def __init__(self, intrin: TensorIntrin, region: Region, mapping: Mapping[Var, Expr]) -> None:
        self.intrin = intrin
        self.region = region
        self.mapping = mapping
        self.inner = {loop.var for loop in region.loops}
        self.blame: tuple[tuple[int, int], str] = ((-1, -1), "")
        self.depth = 0

    def pattern(self, expr: Expr) -> Expr:
        """A part of the behaviour in the region's loop variables."""
        return simplify(substitute_expr(expr, self.mapping), self.region.ranges)

    def matches(self) -> Iterator[Binding]:
        """Every way in which the region is the behaviour."""
        intrin, region = self.intrin, self.region
        target = Load(intrin.output, tuple(self.pattern(i) for i in intrin.indices))
        written = Load(region.buffer, region.indices)
        for start in self.load(target, written, Binding()):
            for bound in self.unify(self.pattern(intrin.update), region.value, start):
                if intrin.init is None or region.init is None:
                    yield self.complete(bound)
                    continue
                for final in self.unify(self.pattern(intrin.init), region.init, bound):
                    yield self.complete(final)

    def complete(self, bound: Binding) -> Binding:
        """Params that the match had no need of are zero."""
        for param in self.intrin.params:
            if param not in bound.params:
                bound = bound.with_param(param, const(0, param.dtype))
        return bound

    def mismatch(self) -> Mismatch:
        """Difference between the region and the behaviour, by the latest mismatch."""
        parts = [f"expects {self.intrin.output.name}[...] = {show(self.intrin.update)}"]
        if self.intrin.init is not None:
            parts[0] += f" from {show(self.intrin.init)}"
        parts.append(f"found {self.region.buffer.name}[...] = {show(self.region.value)}")
        if self.region.init is not None:
            parts[1] += f" from {show(self.region.init)}"
        return Mismatch(f"{', '.join(parts)}: {self.blame[1]}", self.blame[0])

    def fail(self, expected: Expr | str, actual: Expr | str, env: Binding) -> None:
        """Remembers the mismatch that came after most had matched, and deepest in the tree."""
        matched = sum(value is not TRUE for value in env.params.values())  # by something there
        progress = (len(env.operands) + matched, self.depth)
        if progress > self.blame[0]:
            want, have = (x if isinstance(x, str) else show(x) for x in (expected, actual))
            self.blame = (progress, f"expected {want}, found {have}")

    # --- unification ---

    def unify(self, p: Expr, t: Expr, env: Binding) -> Iterator[Binding]:
        """Every way to make the pattern ``p`` equal to ``t``."""
        self.depth += 1
        hit = False
        for each in self.ways(p, t, env):
            hit = True
            self.depth -= 1
            yield each
            self.depth += 1
        if not hit and p.dtype != t.dtype:
            self.fail(f"{show(p)} of {p.dtype}", f"{show(t)} of {t.dtype}", env)
        elif not hit:
            self.fail(p, t, env)
        self.depth -= 1

    def ways(self, p: Expr, t: Expr, env: Binding) -> Iterator[Binding]:
        """Every way to unify a pattern with an expression; failures are not kept."""
        if p.dtype != t.dtype:
            return
        match p:
            case Param():
                yield from self.param(p, t, env)
            case Const() | Var():
                if p == t:
                    yield env
            case Load():
                if isinstance(t, Load):
                    yield from self.load(p, t, env)
            case Binary(op, _, _) if op in ASSOCIATIVE:
                yield from self.flat(op, _operands(op, p), _operands(op, t), env)
            case Select():
                yield from self.select(p, t, env)
            case _:
                yield from self.children(p, t, env)

    def param(self, p: Param, t: Expr, env: Binding) -> Iterator[Binding]:
        """A param takes any value that its kind allows, and the same one wherever it stands."""
        if p in env.params:
            if same(env.params[p], t, self.region.ranges):
                yield env
        elif isinstance(t, Const) or (p.kind == "expr" and not uses(t, self.inner)):
            yield env.with_param(p, t)

    def flat(
        self, op: str, ps: Sequence[Expr], ts: Sequence[Expr], env: Binding
    ) -> Iterator[Binding]:
        """Operands in any order; a param without a partner takes the neutral element."""
        if not ps:
            if not ts:
                yield env
            return
        ordered = sorted(ps, key=lambda e: isinstance(e, Param))
        p, rest = ordered[0], ordered[1:]
        for n, t in enumerate(ts):
            for each in self.unify(p, t, env):
                yield from self.flat(op, rest, [*ts[:n], *ts[n + 1 :]], each)
        if isinstance(p, Param) and p not in env.params and len(ts) <= len(rest):
            neutral = _neutral_element(op, p.dtype)
            if neutral is not None:
                yield from self.flat(op, rest, ts, env.with_param(p, neutral))

    def select(self, p: Select, t: Expr, env: Binding) -> Iterator[Binding]:
        """A behaviour's condition that is a param matches no condition too: it is then true."""
        if isinstance(t, Select):
            yield from self.children(p, t, env)
            return
        cond = p.cond
        if isinstance(cond, Param) and cond.kind == "expr" and cond not in env.params:
            yield from self.unify(p.a, t, env.with_param(cond, TRUE))

    def children(self, p: Expr, t: Expr, env: Binding) -> Iterator[Binding]:
        """Node against node of one kind, operand against operand."""
        match p, t:
            case Binary(op, a, b), Binary(other, c, d) if op == other:
                yield from self.sequence((a, b), (c, d), env)
                if op in COMMUTATIVE:
                    yield from self.sequence((a, b), (d, c), env)
            case (Not(a), Not(b)) | (Cast(a, _), Cast(b, _)):
                yield from self.unify(a, b, env)
            case Select(a, b, c), Select(d, e, f):
                yield from self.sequence((a, b, c), (d, e, f), env)
            case Call(op, args, _), Call(other, given, _) if op == other:
                yield from self.sequence(args, given, env)

    def sequence(self, ps: Sequence[Expr], ts: Sequence[Expr], env: Binding) -> Iterator[Binding]:
        """Several patterns against as many expressions, all with the same binding."""
        if not ps:
            yield env
            return
        for each in self.unify(ps[0], ts[0], env):
            yield from self.sequence(ps[1:], ts[1:], each)

    # --- operands ---

    def load(self, p: Load, t: Load, env: Binding) -> Iterator[Binding]:
        """The pattern's operand as a window of the target's innermost dimensions.

        Where data is the index, as in ``table[y[l] & 255]``, the window is the whole dimension, and
        the two indices have to be alike.
        """
        lead = len(t.indices) - len(p.indices)
        axes = [n for n, index in enumerate(p.indices) if any(True for _ in loads(index))]
        if not axes or lead < 0:
            yield from self.operand(p, t, env)
            return
        wanted, actual = [p.indices[n] for n in axes], [t.indices[lead + n] for n in axes]
        start, place = _without(p, axes), _without(t, [lead + n for n in axes])
        for each in self.sequence(wanted, actual, env):
            yield from self.operand(start, place, each)

    def operand(self, p: Load, t: Load, env: Binding) -> Iterator[Binding]:
        """The pattern's operand at the place that the two indices' difference says."""
        ref = self.window(p, t, env)
        if ref is None:
            return
        known = env.operands.get(p.buffer)
        if known is None:
            yield env.with_operand(p.buffer, ref)
        elif known.buffer is ref.buffer and all(
            same(a, b, self.region.ranges) for a, b in zip(known.indices, ref.indices, strict=True)
        ):
            yield env
        else:
            self.fail(f"{p.buffer.name} at one place, {_place(known)}", _place(ref), env)

    def window(self, p: Load, t: Load, env: Binding) -> BufferRef | None:
        """Reference to the operand's first element; None where the target isn't such an operand."""
        scope = self.intrin.scopes.get(p.buffer.name)
        shape, rank = p.buffer.shape, len(p.buffer.shape)
        lead = len(t.indices) - rank
        if t.buffer.dtype != p.buffer.dtype:
            self.fail(
                f"{p.buffer.name} of {p.buffer.dtype}", f"{t.buffer.name} of {t.buffer.dtype}", env
            )
            return None
        if scope is not None and t.buffer.scope != scope:
            self.fail(
                f"{p.buffer.name} in scope {scope}", f"{t.buffer.name} in {t.buffer.scope}", env
            )
            return None
        if lead < 0 or t.buffer.shape[lead:][1:] != shape[1:] or t.buffer.shape[lead:] < shape[:1]:
            self.fail(
                f"{p.buffer.name} of innermost dimensions {list(shape)}",
                f"{t.buffer.name} of {list(t.buffer.shape)}",
                env,
            )
            return None
        ranges = self.region.ranges
        offsets = (*(ZERO for _ in range(lead)), *p.indices)
        base = tuple(simplify(i - o, ranges) for i, o in zip(t.indices, offsets, strict=True))
        if any(uses(i, self.inner) for i in base):
            self.fail(p, t, env)
            return None
        return BufferRef(t.buffer, base)


def _without(load: Load, axes: Sequence[int]) -> Load:
    """A load with zeros for the indices along some axes."""
    indices = (ZERO if n in axes else index for n, index in enumerate(load.indices))
    return Load(load.buffer, tuple(indices))


def _place(ref: BufferRef) -> str:
    """The text of a position, for messages."""
    return show(Load(ref.buffer, ref.indices))


def _operands(op: str, expr: Expr) -> list[Expr]:
    """The operands of an associative operator, nested ones flattened."""
    if isinstance(expr, Binary) and expr.op == op:
        return _operands(op, expr.a) + _operands(op, expr.b)
    return [expr]


def _neutral_element(op: str, dtype: str) -> Const | None:
    """Constant with which an operator leaves another operand as it is; None where there is no such
    value.
    """
    if op in ("min", "max"):
        if not is_int(dtype):
            return None
        low, high = INT_RANGES[dtype]
        return const(high if op == "min" else low, dtype)
    value = {"add": 0, "mul": 1, "and": 1, "or": 0}[op]
    return const(bool(value) if dtype == "bool" else value, dtype)
