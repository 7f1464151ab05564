"""Noise that is not white, on its way into the problem and back from a kept run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.forensics import Examination
from leader.forensics.noise.shot import ShotNoise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.operators import Blur, ColouredInpainting, Denoising, Inpainting, WeightedPixels, WhitenedBlur
from leader.pictures import Picture, read_picture, write_picture
from leader.problem import Problem
from leader.restoration.borders import extend
from leader.restoration.pose import pose_picture
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import prepare, restore
from leader.restoration.tasks import TASKS, Measured
from leader.restoration.whitening import Coloured, can_be_whitened, whiten_operator
from tests.cheap_prior import CheapPrior, photograph
from tests.restoration.repeating import repeat

PIXELS = np.full((8, 10, 3), 0.5, np.float32)
KERNEL: dict[str, Any] = {"kernel": "gaussian:1.5", "kernel_doubt": 0.0}


def slanted(height: int, width: int) -> Tensor:
    """A power [1, H, W] that grows with frequency."""
    rows, columns = torch.fft.fftfreq(height).double(), torch.fft.fftfreq(width).double()
    return torch.as_tensor(4e-4 * (rows[:, None] ** 2 + columns**2)[None])


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    noise = 0.03 * torch.randn(3, 48, 40, generator=torch.Generator().manual_seed(0))
    write_picture(tmp_path / "in.png", Picture((photograph(48, 40) + noise).permute(1, 2, 0).clamp(0, 1).numpy()))
    return tmp_path / "in.png"


@pytest.fixture
def doubting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task deblur is uncertain of its kernel."""
    plain = type(TASKS["deblur"]).measured

    def measured(self: Any, given: Examination, values: Any) -> Measured:
        found = plain(self, given, values)
        return replace(found, doubt_power=slanted(*found.operator.image_shape[1:]))

    monkeypatch.setattr(type(TASKS["deblur"]), "measured", measured)


@pytest.mark.parametrize("sigma", [0.02, 0.0, None])
def test_doubt_is_added_to_the_noise_by_frequency(picture: Path, doubting: None, sigma: float | None) -> None:
    """Also where the level is given; 0 counts as the rounding to 8 bits."""
    posed = pose_picture(read_picture(picture), "deblur", sigma, KERNEL)
    operator = posed.problem.operator
    assert isinstance(operator, WhitenedBlur) and operator.task == "deblur" and posed.noise is not None
    assert isinstance(posed.noise, NoiseSpectrum)
    level = posed.noise.level
    assert level == pytest.approx({0.02: 0.02, 0.0: 1 / 255 / 12**0.5}.get(sigma, level) if sigma is not None else level)
    half = operator.power.shape[-1]
    assert torch.allclose(operator.power, level**2 + slanted(*operator.image_shape[1:])[..., :half], rtol=1e-9)
    assert posed.sigma == operator.reference == float(posed.problem.sigma) / 2 > level
    assert posed.sigma_from == ("estimated" if sigma is None else "given")


def test_the_measurement_is_whitened_beyond_its_frame_too(picture: Path, doubting: None) -> None:
    posed = pose_picture(read_picture(picture), "deblur", 0.02, KERNEL)
    operator = posed.problem.operator
    assert isinstance(operator, WhitenedBlur) and posed.window is not None
    pixels = torch.from_numpy(read_picture(picture).pixels.transpose(2, 0, 1).copy())[None]
    whole = extend(pixels, Blur(operator.image_shape, operator.kernel), posed.window)
    expected = Problem(operator.whiten(whole), operator, operator.reference, in_range=False)
    assert torch.equal(posed.problem.y, expected.y)


def test_a_run_with_doubt_is_repeated(picture: Path, doubting: None) -> None:
    first, _, kept = repeat(picture, "deblur", sigma=0.02, steps=6, **KERNEL)
    assert kept["noise_spectrum"] == [[[pytest.approx(4e-4)]]] and kept["sigma"] > 0.02
    with pytest.raises(UsageError, match="saved at a path; found NoneType"):
        first.save(None)  # type: ignore[arg-type]
    # and another level of the same spectrum, as a second try has it, is another run
    other = restore(picture, **arguments_of({**kept, "sigma": 2 * kept["sigma"]}, CheapPrior()))
    assert not np.array_equal(other.array, first.array)


def test_broken_spectra_of_kept_runs_are_refused(picture: Path) -> None:
    summary = restore(picture, "denoise", sigma=0.02, steps=2, prior=CheapPrior()).summary()
    lines: list[Any] = [[0.01, 0.0], [0.0, 0.0, 0.001], "abc", [None, 0.0, 0.1], 3, [1, 0.0, 0.001]]
    tables: list[Any] = ["no table", [[[-1.0]]], [[1.0]], [[[1.0, 2.0]]], 7, [[["x"]]]]
    for wrong in (*({"shot_noise": line} for line in lines), *({"noise_spectrum": table} for table in tables)):
        with pytest.raises(LeaderError, match="noise_spectrum or shot_noise"):
            arguments_of({**summary, **wrong}, CheapPrior())
    with pytest.raises(LeaderError, match="cannot be whitened"):
        pose_picture(read_picture(picture), "sr", Coloured(0.02, NoiseSpectrum.white(0.02)), {})


def test_what_can_be_whitened() -> None:
    shape = (3, 8, 10)
    spectrum = NoiseSpectrum(np.array([[[1.0, 4.0], [4.0, 9.0]]]))
    denoising = whiten_operator(Denoising(shape), spectrum, None, PIXELS)
    assert isinstance(denoising, WhitenedBlur) and denoising.task == "denoise" and denoising.kernel.shape == (1, 1, 1, 1)
    assert torch.allclose(denoising.power, torch.from_numpy(spectrum.on(8, 10))[..., :6])
    blur = Blur(shape, torch.rand(3, 3), rcond=1e-2)
    blur.task = "deblur-motion"
    found = whiten_operator(blur, NoiseSpectrum.white(0.1), None, PIXELS)
    assert (
        isinstance(found, WhitenedBlur)
        and torch.allclose(found.kernel, blur.kernel)
        and (found.task, found.rcond) == ("deblur-motion", 1e-2)
    )
    assert can_be_whitened(blur) and not can_be_whitened(found)
    assert not can_be_whitened(Blur(shape, torch.rand(2, 1, 3, 3)))
    holes = Inpainting(shape, torch.ones(8, 10))
    assert can_be_whitened(holes, spectrum) and not can_be_whitened(holes)
    assert not can_be_whitened(Inpainting(shape, torch.ones(2, 1, 8, 10)), spectrum)


def blotched(side: int = 112) -> Picture:
    """A smooth picture with noise that is blurred in its colours."""
    generator = np.random.default_rng(0)
    white = generator.standard_normal((side, side, 3))
    smooth = np.fft.ifft2(np.fft.fft2(white, axes=(0, 1)) * np.exp(-80 * _squares(side))[..., None], axes=(0, 1)).real
    noise = 0.01 * white.mean(2, keepdims=True) + 0.06 * (smooth - smooth.mean(2, keepdims=True)) / smooth.std()
    return Picture((photograph(side, side).permute(1, 2, 0).numpy() + noise).clip(0, 1).astype(np.float32))


def _squares(side: int) -> Any:
    frequency = np.fft.fftfreq(side)
    return frequency[:, None] ** 2 + frequency**2


def counted(side: int = 128) -> Picture:
    """A smooth picture of counted light, 60 at white."""
    clean = photograph(side, side).permute(1, 2, 0).numpy()
    return Picture((np.random.default_rng(0).poisson(60 * clean) / 60).clip(0, 1).astype(np.float32))


def test_coloured_noise_is_whitened_where_it_can_be() -> None:
    posed = pose_picture(blotched(), "denoise", None, {})
    assert isinstance(posed.problem.operator, WhitenedBlur) and len(posed.problem.operator.power) == 3
    assert posed.sigma_from == "estimated" and posed.notes[-1].startswith("The noise is not white: from ")
    assert posed.notes[-1].endswith("takes this into account.")
    assert isinstance(posed.noise, NoiseSpectrum)
    enlarged = pose_picture(blotched(), "sr", None, {"factor": 2})
    assert enlarged.noise is None and enlarged.sigma == pytest.approx(posed.noise.level, rel=0.02)
    assert enlarged.notes[-1].endswith(f"it counts as white noise of {enlarged.sigma:.2g}.")
    for task, kind, options in (("denoise", Denoising, {}), ("deblur", Blur, KERNEL)):
        given = pose_picture(blotched(), task, 0.05, options)
        assert type(given.problem.operator) is kind and given.sigma == 0.05 and given.noise is None


def test_noise_of_counted_light_is_weighed_pixel_by_pixel() -> None:
    posed = pose_picture(counted(), "denoise", None, {})
    operator = posed.problem.operator
    assert isinstance(operator, WeightedPixels) and isinstance(posed.noise, ShotNoise)
    assert posed.noise.gain == pytest.approx(1 / 60, rel=0.15) and "grows with brightness" in posed.notes[-1]
    weights = operator.spectrum[0].permute(1, 2, 0).numpy()
    expected: Any = operator.reference / posed.noise.map(counted().pixels)
    np.testing.assert_allclose(weights, expected, rtol=1e-9)
    blurred = pose_picture(counted(), "deblur", None, KERNEL)
    assert type(blurred.problem.operator) is Blur and "counts as white noise" in blurred.notes[-1]


@pytest.mark.parametrize("make", [blotched, counted])
def test_runs_with_such_noise_are_repeated_to_the_bit(make: Any) -> None:
    _, again, kept = repeat(make(), "denoise", steps=5)
    assert (kept["noise_spectrum"] is None) != (kept["shot_noise"] is None)
    assert all(again.summary()[name] == kept[name] for name in ("sigma", "noise_spectrum", "shot_noise", "settings"))


def test_doubt_of_all_frequencies_is_added_to_the_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = pose_picture(blotched(), "denoise", None, {})
    measured = type(TASKS["denoise"]).measured
    monkeypatch.setattr(type(TASKS["denoise"]), "measured", lambda *given: replace(measured(*given), doubt=0.02), raising=False)
    doubted = pose_picture(blotched(), "denoise", None, {})
    assert isinstance(plain.noise, NoiseSpectrum) and isinstance(doubted.noise, NoiseSpectrum)
    np.testing.assert_allclose(doubted.noise.table, plain.noise.table + 4e-4, rtol=1e-12)


def test_coloured_noise_around_holes_enters_the_inverse(tmp_path: Path) -> None:
    """Found beside the holes, told, solved with DiffPIR, and repeated from its summary to the bit."""
    draw = np.random.default_rng(0)
    smooth = ndimage.gaussian_filter(draw.standard_normal((192, 192, 3)), (12, 12, 0))
    noise = ndimage.gaussian_filter(draw.standard_normal((192, 192, 3)), (1.5, 1.5, 0))
    pixels = (0.5 + smooth / smooth.std() / 12 + 0.06 * noise / noise.std()).clip(0, 1).astype(np.float32)
    mask = np.ones((192, 192), np.float32)
    mask[60:80, 70:120] = 0
    Image.fromarray((255 * pixels).round().astype(np.uint8)).save(tmp_path / "in.png")
    arguments: dict[str, Any] = {"mask": torch.from_numpy(mask), "quality": "draft", "steps": 2, "threads": 1}
    ready = prepare(tmp_path / "in.png", "inpaint", prior=CheapPrior(), **arguments)
    operator = ready.problem.operator
    assert isinstance(operator, ColouredInpainting) and operator.reference == pytest.approx(0.06, rel=0.2)
    assert ready.sigma == operator.reference and any("into account" in note for note in ready.notes)
    repeat(tmp_path / "in.png", "inpaint", **arguments)
