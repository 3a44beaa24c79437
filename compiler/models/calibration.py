"""Samples that a quantizer sees: arrays, an .npz, a folder of images, or random numbers.

    samples = samples_of("images/", {"image": (1, 3, 224, 224)}, pixels=Pixels())
    len(samples), samples[0]["image"]        # batches as large as the model takes

Images are read when they are asked for, so a folder may be of any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.shapes import Open
from vdla.compiler.graph.types import Array

RANDOM_SAMPLES = 8
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm")  # ends of images' names
CHANNELS = (1, 3)  # of images, gray or red, green and blue

Batch = dict[str, Array]
FLOATS: Mapping[str, str] = MappingProxyType({})  # element types of inputs that have floats alone
Calibration = str | Path | Mapping[str, Array]


@dataclass(frozen=True)
class Pixels:
    """Numbers that pixels of 0 to 255 become: less ``mean``, over ``std``; one for each channel, or
    one for all."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)


class Samples(Sequence[Batch]):
    """Batches of samples, as large as the model takes.

    ``portions`` are the samples of each batch, by their places: the last batch repeats some to be
    full.
    """

    portions: Sequence[Sequence[int]]

    def __len__(self) -> int:
        return len(self.portions)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len({place for portion in self.portions for place in portion})


def samples_of(
    calibration: Calibration,
    inputs: Mapping[str, Open],
    pixels: Pixels,
    where: str,
    kinds: Mapping[str, str] = FLOATS,
) -> Samples:
    """Samples for a model's inputs.

    Args:
        calibration: one array per input, samples along the first axis; an .npz of such; a folder of
            images.
        inputs: shapes, with None or a name for a size that stays open.
        pixels: what an image's pixels become.
        where: the model, which opens errors about its inputs.
        kinds: element types of inputs, float32 where it has none.

    Raises:
        ModelError: they can't be read, don't fit the inputs, or hold NaN or infinity.
    """
    if not isinstance(calibration, str | Path):
        return Arrays(calibration, inputs, "calibration", kinds)
    path = Path(calibration)
    if path.is_dir():
        for name, kind in kinds.items():
            if kind != "float32":
                raise ModelError(where, f"an .npz of {kind} for input {name}", "a folder of images")
        return Images(path, inputs, pixels, where)
    return Arrays(_read_arrays(path), inputs, str(path), kinds)


class Part(Samples):
    """Some batches of samples, by their places."""

    def __init__(self, base: Samples, places: Sequence[int]) -> None:
        self.base, self.places = base, places
        self.portions = [base.portions[place] for place in places]

    def __getitem__(self, index: int) -> Batch:  # type: ignore[override]
        return self.base[self.places[index]]


def held_back(samples: Samples, every: int) -> tuple[Samples, Samples]:
    """Samples in two parts: most of them, and every so many-th batch, held back so that what was
    made by the others is measured on them. Of too few batches both are all."""
    places = range(len(samples))
    held = places[every - 1 :: every]
    if not held:
        return samples, samples
    return Part(samples, [place for place in places if place not in held]), Part(samples, held)


def _portions(count: int, batch: int) -> list[list[int]]:
    """Places of the samples of each batch."""
    starts = (min(start, max(count - batch, 0)) for start in range(0, count, batch))
    return [[place % count for place in range(start, start + batch)] for start in starts]


class Random(Samples):
    """Standard normal numbers, the same every time: good for speed, poor for accuracy."""

    def __init__(self, inputs: Mapping[str, tuple[int, ...]]) -> None:
        self.portions = [[place] for place in range(RANDOM_SAMPLES)]
        rng = np.random.default_rng(0)
        self.batches = [
            {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
            for _ in self.portions
        ]

    def __getitem__(self, index: int) -> Batch:  # type: ignore[override]
        return self.batches[index]


# Arrays -----------------------------------------------------------------------------------------


class Arrays(Samples):
    """Samples of arrays that have all of them along their first axes, by the names of the inputs.

    Raises:
        ModelError: an array is missing, doesn't fit its input, has another number of samples than
            the first, or holds NaN or infinity.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        inputs: Mapping[str, Open],
        where: str,
        kinds: Mapping[str, str] = FLOATS,
    ) -> None:
        own = {name: _fitting(arrays, name, inputs[name], where) for name in inputs}
        self.arrays = {n: _as_kind(a, kinds.get(n, "float32"), n, where) for n, a in own.items()}
        sizes = {name: _batch(shape) for name, shape in inputs.items()}
        portions = {name: _portions(len(a), sizes[name]) for name, a in self.arrays.items()}
        first = next(iter(portions), "")
        for name, each in portions.items():
            if len(each) != len(portions[first]):
                raise ModelError(where, f"{len(portions[first])} batches of {name}", len(each))
        self.portions, self._of = portions[first], portions

    def __getitem__(self, index: int) -> Batch:  # type: ignore[override]
        return {name: array[self._of[name][index]] for name, array in self.arrays.items()}


def _fitting(arrays: Mapping[str, Array], name: str, shape: Open, where: str) -> Array:
    """An input's array of numbers, all of them finite."""
    if name not in arrays:
        raise ModelError(where, f"an array called {name}", ", ".join(arrays) or "nothing")
    array = np.asarray(arrays[name])  # bytes, where the zip's entry is no array
    if array.dtype.kind not in "biuf":
        raise ModelError(where, f"{name} to be an array of numbers", array.dtype)
    _check_shape(array, name, shape, where)
    if not np.isfinite(array).all():
        first = int(np.argmin(np.isfinite(array).reshape(len(array), -1).all(1)))
        raise ModelError(where, f"finite numbers in {name}", f"others in sample {first}")
    return array


def _as_kind(array: Array, kind: str, name: str, where: str) -> Array:
    """An array as an input has its elements."""
    result = np.asarray(array, kind)
    if result.dtype.kind == "i" and (result != array).any():
        raise ModelError(where, f"whole numbers in {name}, which is {kind}", "others")
    return result


def _batch(shape: Open) -> int:
    """Samples that an input takes at a time."""
    return shape[0] if shape and isinstance(shape[0], int) else 1


def _check_shape(array: Array, name: str, shape: Open, where: str) -> None:
    """Raises ModelError unless an array has samples for an input, and one batch at least."""
    batch, rest = _batch(shape), shape[1:]
    fits = len(rest) == array.ndim - 1 and all(
        not isinstance(want, int) or want == got
        for want, got in zip(rest, array.shape[1:], strict=True)
    )
    if not fits or len(array) < batch:
        sizes = ", ".join(("samples", *("?" if v is None else str(v) for v in rest)))
        many = f" and at least {batch} samples, the model's batch" if batch > 1 else ""
        raise ModelError(where, f"{name} of shape [{sizes}]{many}", list(array.shape))


def _read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz."""
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ModelError(str(path), "an .npz of calibration samples", "no file") from None
    except Exception as error:  # zipfile, numpy and pickle each raise their own
        raise ModelError(str(path), "an .npz of calibration samples", error) from None


# Images -----------------------------------------------------------------------------------------


class Images(Samples):
    """The images of a folder, in the order of their names, each cut to the input's
    proportions around its middle and resized.

    Raises:
        ModelError: the model's inputs aren't one of images, or the folder has none.
    """

    def __init__(
        self, folder: Path, inputs: Mapping[str, Open], pixels: Pixels, where: str
    ) -> None:
        self.files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES)
        if not self.files:
            raise ModelError(str(folder), f"images ({', '.join(PICTURES)})", "none")
        if len(inputs) != 1:
            raise ModelError(where, "one input, for a folder of images", ", ".join(inputs))
        (self.name, shape), self.pixels = next(iter(inputs.items())), pixels
        form = _image_form(shape)
        if form is None:
            expected = f"input {self.name} of images, [N, C, H, W] or [N, H, W, C], for a folder"
            raise ModelError(where, expected, list(shape))
        batch, self.channels, self.size, self.first = form
        self.portions = _portions(len(self.files), batch)
        for numbers in (pixels.mean, pixels.std):
            if len(numbers) not in (1, self.channels):
                expected = f"1 or {self.channels} numbers for the mean and the std of a pixel"
                raise ModelError(where, expected, len(numbers))

    def __getitem__(self, index: int) -> Batch:  # type: ignore[override]
        files = [self.files[place] for place in self.portions[index]]
        return {self.name: np.stack([self._read(path) for path in files])}

    def _read(self, path: Path) -> Array:
        from PIL import Image, ImageOps

        try:
            with Image.open(path) as image:
                colours = image.convert("RGB" if self.channels == 3 else "L")
                fitted = ImageOps.fit(colours, self.size, Image.Resampling.BILINEAR)
                array = np.asarray(fitted, np.float32).reshape(*self.size[::-1], self.channels)
        except Exception as error:  # Pillow raises its own, and what its decoders do
            raise ModelError(str(path), "an image", first_line(error)) from None
        mean, std = (np.asarray(v, np.float32) for v in (self.pixels.mean, self.pixels.std))
        result = (array - mean) / std
        return np.ascontiguousarray(result.transpose(2, 0, 1)) if self.first else result


def _image_form(shape: Open) -> tuple[int, int, tuple[int, int], bool] | None:
    """(batch, channels, (width, height), whether channels come first) of a shape of images; None
    where it is none."""
    if len(shape) != 4:
        return None
    sizes = [size if isinstance(size, int) else 0 for size in shape]
    first = sizes[1] in CHANNELS
    channels, height, width = sizes[1:] if first else (sizes[3], *sizes[1:3])
    if channels not in CHANNELS or not height or not width:
        return None
    return sizes[0] or 1, channels, (width, height), first
