"""A restoration by its numbers: units and axes of picture and map, noise levels, seeds, margins, masks, repeated runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler, operators
from leader.priors.base import Prediction
from leader.restoration.arguments import as_picture
from leader.restoration.borders import _trimmed, extended_blur
from leader.restoration.degrade import degrade
from leader.restoration.restore import prepare, restore
from tests.cheap_prior import CheapPrior, photograph


class Striped(CheapPrior):
    """Its variance differs between channels and rows."""

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        answer = super()._predict(x, t)
        assert answer.variance is not None
        scale = torch.arange(1, x.shape[1] + 1).reshape(-1, 1, 1) / 4 * torch.linspace(0.2, 1, x.shape[2])[:, None]
        return Prediction(answer.x0, answer.eps, answer.variance * scale.to(x))


def unit(x: Tensor) -> Any:
    """[1, C, H, W] in [-1, 1] as pixels [H, W, C] in [0, 1]."""
    return np.moveaxis(x[0].numpy(), 0, 2) / 2 + 0.5


def test_picture_and_map_are_those_of_a_direct_run() -> None:
    """Square, so that a transposition shows; the map in units of [0, 1], channels joined by root mean square."""
    image = photograph(32, 32)
    restored = restore(image, "denoise", sigma=0.1, prior=Striped(), steps=4, seed=5)
    problem = Problem(image[None], operators.Denoising((3, 32, 32)), 0.1)
    direct = Sampler(Striped(), plugins=("ucpm", "satp"), steps=4).run(problem, 5)
    assert np.allclose(restored.array, np.clip(unit(direct.images), 0, 1), atol=1e-6)
    assert restored.uncertainty is not None and direct.posterior_std is not None
    spread = direct.posterior_std[0].double().numpy() / 2
    after = spread**2 * 0.1**2 / (spread**2 + 0.1**2)  # every pixel is measured once more, with noise of 0.1
    assert np.allclose(restored.uncertainty, np.sqrt(after.mean(0)), rtol=1e-5)
    assert not np.allclose(restored.uncertainty, spread.mean(0), rtol=1e-2), "the channels must differ"


def test_a_blurred_picture_is_cropped_to_its_frame_with_its_map() -> None:
    kernel = np.ones((3, 7))
    ready = prepare(photograph(20, 28), "deblur", sigma=0.05, kernel=kernel, prior=CheapPrior(), steps=3)
    height, width = ready.problem.image_shape[1:]
    assert height >= 20 + 2 * 1 and width >= 28 + 2 * 3 and ready.posed.window is not None
    restored = ready.run()
    direct = ready.sampler.run(ready.problem, 0)
    assert torch.equal(restored.result.images, ready.posed.window.crop(direct.images))
    assert restored.uncertainty is not None and restored.uncertainty.shape == (20, 28) == restored.array.shape[:2]
    assert restored.result.posterior_std is not None and restored.result.posterior_std.shape[-2:] == (20, 28)


def test_a_wide_kernel_does_not_wrap_into_the_picture() -> None:
    kernel = torch.zeros(3, 21, dtype=torch.float64)
    kernel[1] = 1 / 21
    operator, window = extended_blur((1, 16, 30), kernel, "deblur")
    assert window.left >= 10 and operator.image_shape[2] - window.left - 30 >= 10
    assert window.top >= 1 and operator.image_shape[1] - window.top - 16 >= 1


def test_trimming_keeps_the_centre_of_a_lopsided_kernel() -> None:
    kernel = torch.zeros(7, 9)
    kernel[2, 1] = kernel[3, 4] = 1
    trimmed = _trimmed(kernel)
    assert trimmed.shape == (3, 7) and trimmed[0, 0] == 1 and trimmed[1, 3] == 1, "rows 2 to 4, columns 1 to 7"
    assert torch.equal(_trimmed(kernel.flip(0, 1)), trimmed.flip(0, 1)), "whichever side has fewer rows that are zero"


@pytest.mark.parametrize("bits", [8, 16])
def test_an_estimate_is_at_least_the_noise_of_rounding(bits: int) -> None:
    flat = np.full((64, 64, 3), 100, np.uint8 if bits == 8 else np.uint16)
    assert as_picture(flat).bits == bits and as_picture(flat).pixels.flat[0] == pytest.approx(100 / (2**bits - 1))
    known = prepare(flat, "sr", factor=2, down="bicubic", prior=CheapPrior())  # a guessed kernel would add its doubt
    assert known.sigma == pytest.approx(1 / (2**bits - 1) / np.sqrt(12))


def test_the_callers_noise_wins_over_the_containers(tmp_path: Path) -> None:
    degrade(photograph(16, 16), "denoise", sigma=0.05, exact=True).save(tmp_path / "m.npz")
    given = prepare(tmp_path / "m.npz", sigma=0.2, prior=CheapPrior())
    assert (given.sigma, given.sigma_from) == (0.2, "given") and float(given.problem.sigma[0]) == pytest.approx(0.4)
    assert prepare(tmp_path / "m.npz", prior=CheapPrior()).sigma == 0.05
