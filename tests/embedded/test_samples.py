"""The embedded prior on photographs that come with the package: a small crop, few steps, what a user gets."""

import io
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import leader
from leader import Prior, Restoration, Step, operators

SIDE = 64
Pixels = NDArray[np.float32]


@cache
def embedded() -> Prior:
    return leader.load_prior("embedded")


@cache
def photographs() -> tuple[Pixels, ...]:
    """Photographs of the package, whole, [H, W, 3] in [0, 1]; the first has edges that super-resolution can sharpen."""
    folder = resources.files("leader.samples") / "test"
    names = ("38b998cd50", "2ced80b8f1", "3a3c058d38", "5b325ab9d6")
    found = []
    for name in names:
        with resources.as_file(folder / f"BuddiesOfBudgie_{name}.png") as path, Image.open(path) as image:
            found.append((np.asarray(image.convert("RGB")) / 255).astype(np.float32))
    return tuple(found)


def middle(picture: Pixels) -> Pixels:
    top, left = (n // 2 - SIDE // 2 for n in picture.shape[:2])
    return picture[top : top + SIDE, left : left + SIDE].copy()


def tensor(picture: Pixels) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1)))[None]


def pixels(images: torch.Tensor) -> Pixels:
    array: Pixels = images[0].permute(1, 2, 0).numpy().astype(np.float32)
    return array


def psnr(a: Any, b: Any) -> float:
    return float(-10 * np.log10(np.mean((a - b) ** 2, dtype=np.float64)))


def thumbnail(number: int = 0) -> Pixels:
    """A quarter of each side of a photograph's middle, as a bicubic camera sees it."""
    return pixels(operators.BicubicSR((3, SIDE, SIDE), 4).A(tensor(middle(photographs()[number]))))


def restored(image: Pixels, task: str, steps: int, **options: Any) -> Restoration:
    return leader.restore(image, task, prior=embedded(), steps=steps, **options)


@pytest.fixture(scope="module")
def enlarged() -> tuple[Restoration, list[Step]]:
    """Super-resolution by 4 of a clean thumbnail in ten steps, and what was seen on the way."""
    seen: list[Step] = []
    return restored(thumbnail(), "sr-bicubic", 10, sigma=0.0, method="ddnm", on_step=seen.append), seen


def test_super_resolution_beats_bicubic(enlarged: tuple[Restoration, list[Step]]) -> None:
    """By 4.6 dB here (24.7 against 20.2); and the answer still explains the data."""
    result, truth = enlarged[0], middle(photographs()[0])
    small = thumbnail()
    channels = [Image.fromarray(small[..., c]).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for c in range(3)]
    bicubic = np.stack([np.asarray(channel) for channel in channels], -1).clip(0, 1)
    assert result.array.shape == truth.shape and result.picture.size == (SIDE, SIDE)
    assert psnr(result.array, truth) > psnr(bicubic, truth) + 3.5
    again = pixels(operators.BicubicSR((3, SIDE, SIDE), 4).A((result.result.images + 1) / 2))
    assert np.abs(again - small).max() < 1e-4
    assert np.allclose(result.array, np.clip((pixels(result.result.images) + 1) / 2, 0, 1), atol=1e-6)


def test_the_map_is_in_the_units_of_the_picture() -> None:
    """Half the calibrated error, root mean square over the channels; of the size of the error that was made."""
    result = leader.restore(thumbnail(), "sr-bicubic", prior=embedded(), sigma=0.0)
    assert result.trust is not None and result.trust.source == "calibrated"
    assert result.result.error_std is not None and result.uncertainty is not None
    wanted = np.sqrt((result.result.error_std[0].numpy() ** 2 / 4).mean(0))
    assert result.uncertainty.shape == (SIDE, SIDE)
    assert np.abs(result.uncertainty - wanted).max() < 1e-6
    assert result.summary()["mean_uncertainty"] == pytest.approx(float(wanted.mean()), rel=1e-5)
    made = float(np.sqrt(np.mean((result.array - middle(photographs()[0])) ** 2)))
    assert 0.5 < float(np.sqrt((result.uncertainty**2).mean())) / made < 2


def test_ten_uniform_steps_are_no_path_that_was_calibrated() -> None:
    """Intervals may cover too little there, which is said."""
    result = restored(thumbnail(1), "sr-bicubic", 10, sigma=0.0, method="ddnm")
    assert result.trust is not None and result.trust.source == "other paths" and result.uncertainty is not None
    assert any("more late steps" in note for note in result.notes)


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_the_default_path_of_strong_noise_does_not_warn_against_itself(noise: float) -> None:
    """Its four or five calls stay far from the times that the referee looks at; it was calibrated on them."""
    clean = middle(photographs()[1])
    noisy = np.clip(clean + noise * np.random.default_rng(5).normal(size=clean.shape), 0, 1)
    given = Image.fromarray((255 * noisy).round().astype(np.uint8))
    result = leader.restore(given, "denoise", prior=embedded(), sigma=noise)
    assert result.trust is not None and result.trust.source == "calibrated" and result.uncertainty is not None
    assert float((np.abs(result.array - clean) <= 1.645 * result.uncertainty[..., None]).mean()) > 0.75
    chosen = leader.restore(given, "denoise", prior=embedded(), sigma=noise, method="ddnm", steps=3)
    assert chosen.trust is not None and chosen.trust.source == "other paths"


@pytest.mark.parametrize(("quality", "least"), [(10, 0.91), (75, 0.87)])
def test_nine_of_ten_errors_of_a_jpeg_lie_within_the_map_whatever_its_quality(quality: int, least: float) -> None:
    """94 and 92 % here; factors that are a quarter too small or a third too large leave these limits."""
    covered = []
    for number, look in enumerate(("natural", "faithful", "natural", "faithful")):
        clean, buffer = middle(photographs()[number]), io.BytesIO()
        Image.fromarray((255 * clean).round().astype(np.uint8)).save(buffer, "JPEG", quality=quality)
        result = leader.restore(Image.open(buffer), "jpeg", prior=embedded(), look=look, check=False)
        assert result.trust is not None and result.trust.source == "calibrated" and result.uncertainty is not None
        covered.append(float((np.abs(result.array - clean) <= 1.645 * result.uncertainty[..., None]).mean()))
    assert least < float(np.mean(covered)) < 0.96, covered


def test_the_head_predicts_the_size_of_the_error() -> None:
    """Squared error over predicted variance, of photographs that are noised to time 60: 0.93; half or twice is wrong."""
    errors, variances = [], []
    for seed, photograph in enumerate(photographs()):
        x = 2 * tensor(middle(photograph)) - 1
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
        abar = embedded().schedule.abar(60).float()
        with torch.no_grad():
            answer = embedded().predict(abar.sqrt() * x + (1 - abar).sqrt() * noise, torch.tensor([60]))
        assert answer.variance is not None
        errors.append(float((answer.x0 - x).square().mean()))
        variances.append(float(answer.variance.mean()))
    assert 0.65 < sum(errors) / sum(variances) < 1.5


def test_deblurring_sharpens() -> None:
    """A Gaussian blur of 1.5 pixels with more scene beyond the border: 27.3 dB from 21.5."""
    whole = tensor(photographs()[0])
    height, width = photographs()[0].shape[:2]
    blurred = pixels(operators.Blur((3, height, width), operators.gaussian_kernel(1.5)).A(whole))
    noise = np.random.default_rng(0).standard_normal((SIDE, SIDE, 3)).astype(np.float32)
    given, truth = middle(blurred) + 0.01 * noise, middle(photographs()[0])
    result = restored(given, "deblur-gaussian", 8, kernel="gaussian:1.5", kernel_doubt=0)
    assert result.sigma_from == "estimated" and result.sigma == pytest.approx(0.01, rel=0.1)
    assert psnr(result.array, truth) > psnr(given, truth) + 4
    assert result.uncertainty is not None and result.uncertainty.shape == (SIDE, SIDE), "cropped like the picture"


def test_inpainting_fills_the_holes() -> None:
    """Half of the pixels: 25.0 dB, where their mean colour in the holes gives 12.3; known pixels stay."""
    truth = middle(photographs()[0])
    known = np.random.default_rng(0).random((SIDE, SIDE)) < 0.5
    given = truth * known[..., None]
    result = restored(given, "inpaint", 8, mask=known.astype(np.float32), sigma=0.0)
    filled = np.where(known[..., None], truth, truth[known].mean(0))
    assert psnr(result.array, truth) > psnr(filled, truth) + 10
    assert np.abs(result.array - truth)[known].max() < 1e-5
