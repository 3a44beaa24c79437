"""Options as they are declared and given: to a command, spelled out, or to a function of the API.

``option`` makes a field of a class of options, as ``models.py`` has them. ``spelled`` in
``arguments.py`` makes a command's options of such a class, ``takes`` a function's keyword
arguments. ``require`` refuses an option where it would change nothing.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from inspect import Signature, cleandoc, signature
from math import inf, isfinite
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from vdla.support.errors import UserError


class UsageError(UserError):
    """An option whose value makes no sense."""


LEAST_GROUP = 8  # input channels of a group of weights of 4 bits
Default = Any  # a field's, of whatever type the field has: dataclasses take it for the value


@dataclass(frozen=True)
class Only:
    """Condition of an option: another one of some values; without values, if that is given.

    ``Only("device", "board")``, ``Only("check")``, ``Only("model", given=False)``.
    """

    other: str
    values: tuple[str, ...]
    given: bool

    def __init__(self, other: str, *values: str, given: bool = True) -> None:
        object.__setattr__(self, "other", other)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "given", given)

    @property
    def where(self) -> str:
        """The other option as a description names it: ``device sim or rtl``, ``no check``."""
        if self.values:
            return f"{self.other} {' or '.join(self.values)}"
        return self.other if self.given else f"no {self.other}"

    def refusal(self, option: str, actual: object) -> str | None:
        """Message for where the other option is ``actual``; None where this one counts."""
        other = f"--{self.other}"
        if self.values:
            wanted = f"{other} {' or '.join(self.values)}"
            return None if actual in self.values else f"{option}: expected {wanted}, found {actual}"
        if _is_given(actual) == self.given:
            return None
        if self.given:
            return f"{option}: expected {other}, found none"
        return f"{option}: expected no {other}, found both"


@dataclass(frozen=True)
class Spelling:
    """Spelling of an option in the command line, and where it counts.

    ``typed`` is the kind of what is typed, ``default`` stands there when nothing is, ``read`` turns
    it into the field's value, ``more`` is click's: help, metavar, limits. ``only`` says with which
    other options it counts; what ``compiles`` counts for a model, and not for a module.
    """

    names: tuple[str, ...]
    typed: object
    default: object
    read: Callable[[Any], object]
    more: Mapping[str, Any]
    only: Sequence[Only] = ()
    compiles: bool = False

    @property
    def name(self) -> str:
        """The option as messages name it: ``--config``."""
        return next(name for name in self.names if name.startswith("--"))


def option(
    default: object,
    *names: str,
    typed: object,
    shown: object = MISSING,
    read: Callable[[Any], object] = lambda value: value,
    only: Sequence[Only] = (),
    compiles: bool = False,
    **more: object,
) -> Default:
    """A field that the command line has, too.

    ``shown`` is its default there, when it is another; the rest is as ``Spelling`` has it.
    """
    shown = default if shown is MISSING else shown
    spelling = Spelling(names, typed, shown, read, more, only, compiles)
    return field(default=default, metadata={"spelling": spelling})


def python_only(default: object, about: str) -> Default:
    """A field that the command line doesn't have; ``about`` describes it to callers."""
    return field(default=default, metadata={"about": about})


def spelling(of: Field[Any]) -> Spelling | None:
    """Spelling of a field in the command line; None for one that only Python has."""
    result: Spelling | None = of.metadata.get("spelling")
    return result


def require(*chosen: Any, **others: object) -> None:
    """Refuses the options that would change nothing.

    Args:
        chosen: objects of options' classes; what they say of where they count is held against all
            of their fields.
        others: further options that there are, by name, as ``check=True``.

    Raises:
        UsageError: an option isn't as by default, and where it counts isn't here; names both.
    """
    result = {name: value for one in chosen for name, value in vars(one).items()} | others
    for one in chosen:
        for how in given(one):
            for only in how.only:
                if refusal := only.refusal(how.name, result.get(only.other)):
                    raise UsageError(refusal)


def given(options: Any) -> list[Spelling]:
    """The options of an object's that the command line has, too, and that aren't as by default."""
    return [
        how
        for each in fields(options)
        if (how := spelling(each)) and _differs(getattr(options, each.name), each.default)
    ]


def _is_given(value: object) -> bool:
    """Whether an option has a value; an array, which is neither true nor false, is one."""
    try:
        return bool(value)
    except ValueError:
        return True


def _differs(value: object, default: object) -> bool:
    """Whether an option has another value than its default; arrays have none for one."""
    result: object = _plain(value) != _plain(default)
    return result if isinstance(result, bool) else True


def _plain(value: object) -> object:
    """A value to compare: a list is as good as a tuple."""
    return tuple(value) if isinstance(value, list) else value


# What is typed ------------------------------------------------------------------------------------


def places(texts: Sequence[str]) -> dict[str, str]:
    """The values of ``--place``: a node's name to its device."""
    result: dict[str, str] = {}
    for text in texts:
        name, equals, device = text.rpartition("=")
        if not equals or not name.strip() or not device.strip():
            raise UsageError(f"--place: expected NODE=DEVICE, found {text!r}")
        result[name.strip()] = device.strip()
    return result


Size = tuple[int, ...] | tuple[tuple[int, ...], ...] | None


def sizes(texts: Sequence[str]) -> dict[str, Size]:
    """The values of ``--shape``: a name to its one size, or to several with commas between; a
    sequence's shapes with semicolons between, and "none" for an optional input that isn't there."""
    result: dict[str, Size] = {}
    for text in texts:
        name, equals, listed = text.rpartition("=")
        try:
            result[name.strip()] = None if listed.strip() == "none" else _sizes(listed)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise UsageError(f"--shape: expected NAME=N or INPUT=D0,D1,…, found {text!r}")
    return result


def _sizes(text: str) -> Size:
    """A shape, or the shapes of a sequence; one that ends with a semicolon may be of one."""
    if ";" not in text:
        return tuple(int(part) for part in text.split(","))
    shapes = (each.strip() for each in text.removesuffix(";").split(";"))
    return tuple(tuple(int(part) for part in each.split(",") if part) for each in shapes)


def weights(texts: Sequence[str]) -> dict[str, float]:
    """The values of ``--weight``: a model's name to a number above 0."""
    result: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            result[name.strip()] = float(number)
        except ValueError:
            name = ""
        if not name.strip() or not 0 < result[name.strip()] < inf:
            raise UsageError(f"--weight: expected MODEL=W with W above 0, found {text!r}")
    return result


def ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The values of ``--range``: a tensor's name to its least and its largest number."""
    result: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, listed = text.rpartition("=")
        try:
            low, high = map(float, listed.split(","))
        except ValueError:
            equals, low, high = "", 0.0, 0.0
        if not equals or not name.strip() or not -inf < low < high < inf:
            raise UsageError(f"--range: expected TENSOR=LOW,HIGH with LOW < HIGH, found {text!r}")
        result[name.strip()] = low, high
    return result


def chosen_by_ratio(option: str, texts: Sequence[str]) -> tuple[tuple[str, ...], float | None]:
    """The values of an option that chooses by name, all, or ``auto:DB``: names, and the ratio in dB
    below which others join."""
    names, below = list[str](), None
    for text in texts:
        word, colon, ratio = text.partition(":")
        if text == "all":
            below = inf
        elif word == "auto" and colon:
            try:
                below = float(ratio)
            except ValueError:
                expected = f"{option}: expected auto:DB, as auto:30"
                raise UsageError(f"{expected}, found {text!r}") from None
        else:
            names.append(text)
    return tuple(names), below


def group_of(text: str) -> tuple[str, int]:
    """The value of ``--weights``: a type, and behind a colon the input channels of a group of
    int4; 0 where a scale is for all of them."""
    kind, colon, size = text.partition(":")
    if not colon:
        return text, 0
    if kind != "int4" or not size.isdecimal() or int(size) < LEAST_GROUP:
        expected = f"int8, int4, or int4:N with groups of N >= {LEAST_GROUP} input channels"
        raise UsageError(f"--weights: expected {expected}, found {text!r}")
    return kind, int(size)


def reals(option: str, text: str) -> tuple[float, ...]:
    """The value of an option that lists finite numbers, with commas between them."""
    try:
        result = tuple(map(float, text.split(",")))
    except ValueError:
        result = ()
    if not result or not all(map(isfinite, result)):
        raise UsageError(f"{option}: expected numbers with commas between, found {text!r}")
    return result


def block(option: str, text: str) -> tuple[int, int]:
    """Rows and columns of a block, as ``16x16``.

    Raises:
        UsageError: they aren't two numbers.
    """
    rows, _, columns = text.partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise UsageError(f"{option}: expected rows and columns, as 16x16, found {text!r}")
    return int(rows), int(columns)


def numbers(option: str, text: str, low: int, high: int | None = None) -> list[int]:
    """The value of an option that lists distinct numbers, with commas between them."""
    try:
        result = [int(part) for part in text.split(",")]
    except ValueError:
        result = []
    inside = all(low <= n and (high is None or n <= high) for n in result)
    if not result or not inside or len(set(result)) < len(result):
        span = f"from {low} to {high}" if high is not None else f"from {low} up"
        raise UsageError(f"{option}: expected distinct numbers {span}, found {text!r}")
    return result


# Functions that take options ----------------------------------------------------------------------

P = ParamSpec("P")
Model = TypeVar("Model", contravariant=True)
Options = TypeVar("Options")
Told = TypeVar("Told", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Taking(Protocol[Model, P, Told, Result]):
    """A function of a model that takes options as one object, or spelled out as arguments."""

    @overload
    def __call__(self, model: Model, options: Told, /) -> Result: ...
    @overload
    def __call__(self, model: Model, /, *args: P.args, **kwargs: P.kwargs) -> Result: ...


def takes(
    kind: Callable[P, Options],
) -> Callable[[Callable[[Model, Options], Result]], Taking[Model, P, Options, Result]]:
    """Lets callers of a function of a model and options give the options' fields instead."""

    def decorate(
        function: Callable[[Model, Options], Result],
    ) -> Taking[Model, P, Options, Result]:
        @wraps(function)
        def call(model: Model, *args: Any, **kwargs: object) -> Result:
            whole = len(args) == 1 and not kwargs and type(args[0]) is kind
            return function(model, args[0] if whole else options_of(name, kind, args, kwargs))

        name = function.__name__
        call.__doc__ = _documented(function.__doc__ or "", kind)
        first, *_ = signature(function).parameters.values()
        call.__signature__ = Signature([first, *signature(kind).parameters.values()])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _documented(text: str, kind: Callable[..., object]) -> str:
    """A function's docstring with a line for each option, before the errors that it raises."""
    about, heading, errors = cleandoc(text).partition("Raises:\n")
    lines = ["Args:", *(f"    {name}: {line}" for name, line in _described(kind))]
    return "\n".join([about.rstrip(), "", *lines, *(["", heading + errors] if heading else [])])


def _described(kind: Callable[..., object]) -> Iterator[tuple[str, str]]:
    """(name, description) of each option of a class."""
    for each in fields(kind):  # type: ignore[arg-type]
        how = spelling(each)
        text = each.metadata.get("about", "") if how is None else how.more.get("help", "")
        counts = "" if how is None else " and ".join(only.where for only in how.only)
        yield each.name, f"{text} Only with {counts}." if counts else text


def options_of(
    name: str, kind: Callable[..., Options], args: Sequence[object], kwargs: Mapping[str, object]
) -> Options:
    """Options from a call's arguments.

    Raises:
        UsageError: one that there isn't, or twice the same; says which there are.
    """
    taken = signature(kind)
    known = list(taken.parameters)
    for word in kwargs:
        if word not in known:
            close = get_close_matches(word, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{name}: expected options of {', '.join(known)}, found {word}{hint}")
    try:
        taken.bind(*args, **kwargs)
    except TypeError as error:
        text = f"{name}: expected options of {', '.join(known)}, each once, found {error}"
        raise UsageError(text) from None
    return kind(*args, **kwargs)


def read(kind: type[Options], typed: dict[str, object]) -> Options:
    """Options of a class from what was typed, by field; it is taken out of ``typed``.

    Raises:
        UsageError: a text that makes no sense; names the option.
    """
    spelled = {f.name: s for f in fields(kind) if (s := spelling(f))}  # type: ignore[arg-type]
    return kind(**{name: each.read(typed.pop(name)) for name, each in spelled.items()})
