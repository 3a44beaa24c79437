"""Samples for the quantizer: arrays, folders of images, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.models.calibration import Arrays, Pixels, samples_of

FIRST, LAST = {"x": (2, 3, 6, 8)}, {"x": ("batch", 6, 8, 3)}


@pytest.fixture
def folder(tmp_path):
    """Five images of other sizes than the model's, one in a folder within."""
    rng = np.random.default_rng(0)
    (tmp_path / "more").mkdir()
    for name in ("a.png", "b.JPG", "c.bmp", "more/d.png", "more/e.ppm"):
        array = rng.integers(0, 256, (12, 20, 3)).astype(np.uint8)
        Image.fromarray(array).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def test_a_folder_of_images_in_batches_of_either_layout(folder):
    first = samples_of(folder, FIRST, Pixels(), "model")
    assert len(first) == 3
    assert [each["x"].shape for each in first] == [(2, 3, 6, 8)] * 3
    assert first.portions == [[0, 1], [2, 3], [3, 4]]  # the last repeats some
    assert first.samples == 5
    np.testing.assert_array_equal(first[2]["x"][0], first[1]["x"][1])
    last = samples_of(folder, LAST, Pixels(), "model")
    assert len(last) == 5
    np.testing.assert_array_equal(last[0]["x"][0].transpose(2, 0, 1), first[0]["x"][0])
    assert 0 <= first[0]["x"].min() < first[0]["x"].max() <= 1


def test_pixels_become_what_the_network_was_trained_on(folder):
    mean, std = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)
    plain = samples_of(folder, LAST, Pixels((0.0,), (1.0,)), "model")[0]["x"]
    reduced = samples_of(folder, LAST, Pixels(mean, std), "model")[0]["x"]
    np.testing.assert_allclose(reduced, (plain - mean) / std, rtol=1e-5, atol=1e-6)


def test_an_image_is_cut_around_its_middle(tmp_path):
    array = np.zeros((10, 30), np.uint8)
    array[:, 10:20] = 200
    Image.fromarray(array).save(tmp_path / "bar.png")
    sample = samples_of(tmp_path, {"x": (1, 1, 10, 10)}, Pixels((0.0,), (1.0,)), "model")[0]["x"]
    np.testing.assert_array_equal(sample, np.full((1, 1, 10, 10), 200))


def refusal(*args):
    with pytest.raises(ModelError) as caught:
        list(samples_of(*args))
    return str(caught.value)


def test_folders_that_do_not_fit_are_refused(folder, tmp_path_factory):
    empty, pixels = tmp_path_factory.mktemp("empty"), Pixels()
    assert refusal(empty, FIRST, pixels, "m") == (
        f"{empty}: expected images (.png, .jpg, .jpeg, .bmp, .webp, .ppm), found none"
    )
    assert refusal(folder, {**FIRST, "y": (1,)}, pixels, "m") == (
        "m: expected one input, for a folder of images, found x, y"
    )
    for shape in ((1, 16, 6, 8), (1, 3), (1, 3, "height", 8)):
        assert refusal(folder, {"x": shape}, pixels, "m") == (
            "m: expected input x of images, [N, C, H, W] or [N, H, W, C], for a folder, "
            f"found {list(shape)}"
        )
    assert refusal(folder, FIRST, Pixels((1.0, 2.0)), "m") == (
        "m: expected 1 or 3 numbers for the mean and the std of a pixel, found 2"
    )
    (folder / "a.png").write_bytes(b"\x89PNG\r\n")
    assert refusal(folder, FIRST, pixels, "m").startswith(
        f"{folder / 'a.png'}: expected an image, found "
    )


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_samples_that_are_no_numbers_are_refused(number):
    array = np.zeros((4, 3), np.float32)
    array[2, 1] = number
    with pytest.raises(ModelError) as caught:
        Arrays({"x": array}, {"x": (1, 3)}, "samples.npz")
    assert str(caught.value) == (
        "samples.npz: expected finite numbers in x, found others in sample 2"
    )
