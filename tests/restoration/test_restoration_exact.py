"""Around a restoration, number by number: second levels, paths, work, borders, what degrading keeps, what a kept run says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler, operators
from leader.errors import LeaderError, UsageError
from leader.operators.cg import conjugate_gradients
from leader.pictures.container import read_container
from leader.priors.base import Prediction
from leader.priors.gaussian import GaussianPrior, white
from leader.restoration import borders, ensemble, pose
from leader.restoration.arguments import as_picture
from leader.restoration.borders import _trimmed, extended_blur
from leader.restoration.degrade import degrade, degrade_file
from leader.restoration.restore import prepare, restore
from leader.schedule import Schedule
from leader.trust.referee import Referee, attach
from tests.cheap_prior import CheapPrior, photograph


def ready(**choices: Any) -> Any:
    given = {"task": "denoise", "sigma": 0.1, "prior": CheapPrior(), "steps": 4, **choices}
    return prepare(photograph(16, 24), **given)


def test_another_noise_level_is_planned_anew() -> None:
    first = ready(method="ddnm")
    again = first.with_sigma(0.25, "Louder.")
    assert again.problem.sigma.tolist() == [0.5] and again.sigma == 0.25 and again.notes[-1] == "Louder."
    assert again.plan is not first.plan and torch.equal(again.problem.y, first.problem.y)


def test_a_path_is_that_of_the_noise_for_0_to_1_and_no_longer_than_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    from leader.presets.paths import RunPath
    from leader.restoration import choice as module

    asked: list[tuple[Any, ...]] = []

    def find(*which: Any) -> RunPath:
        asked.append(which)
        return RunPath("ddnm", 500, "here", settings={"eta": 0.5})

    monkeypatch.setattr(module, "find_path", find)
    short = GaussianPrior(white((3, 16, 24), 0.5), Schedule.linear(1e-3, 0.2, 50))
    plan = prepare(photograph(16, 24), "denoise", sigma=0.1, prior=short, settings={"eta": 0.25}).plan
    assert asked == [("gaussian", "denoise", pytest.approx(0.1), "standard", "natural", 1.0)]
    assert plan.settings["steps"] == 50 and plan.settings["method"]["eta"] == 0.25
    ensemble.ensemble(ready().problem, 1, prior=GaussianPrior(white((3, 16, 24), 0.5), Schedule.linear(1e-3, 0.2, 8)))
    assert asked[-1] == ("gaussian", "denoise", pytest.approx(0.1), "standard", "natural", 1.0)


def test_a_picture_is_continued_and_kept() -> None:
    y = torch.rand(1, 2, 9, 7, generator=torch.Generator().manual_seed(0))
    window = borders.Window(3, 2, 9, 7)
    expected = np.pad(y.numpy(), ((0, 0), (0, 0), (3, 4), (2, 5)), mode="symmetric")
    np.testing.assert_array_equal(borders._reflected(y, (16, 14), window).numpy(), expected)
    operator, place = borders.extended_blur((2, 32, 40), operators.gaussian_kernel(1.0, 7), "deblur-motion")
    assert operator.task == "deblur-motion" and operator.select(torch.tensor([0])).task == "deblur-motion"
    assert operator.image_shape == (2, 54, 64)  # 32 + 2 (3 + 8) and 40 + 2 (3 + 8), even and without large primes
    assert (place.top, place.left, place.height, place.width) == (11, 12, 32, 40)
    assert [borders.fast_length(length) for length in (45, 46, 97)] == [48, 48, 100]
    given = torch.rand(1, 2, 32, 40, generator=torch.Generator().manual_seed(2))
    found = borders.extend(given, operator, place)
    assert torch.equal(place.crop(found), given)
    inside = torch.zeros(1, 1, 54, 64, dtype=torch.float64)
    place.crop(inside).fill_(1)

    def normal(x: torch.Tensor) -> torch.Tensor:  # in pixels
        around = sum(x.roll(shift, axis) for shift in (1, -1) for axis in (2, 3))
        return operator.AT(inside * operator.A(x)) + borders.SMOOTHNESS * (4 * x - around)

    start = borders._reflected(given, (54, 64), place).double()
    right = operator.AT(inside * start) - normal(start)
    x = start + conjugate_gradients(normal, right, tolerance=1e-4, iterations=borders.ITERATIONS)[0]
    outside = (1 - inside) * (found - operator.A(x))
    assert outside.abs().max() < 1e-3 < (found - start).abs().max()


@pytest.mark.parametrize(("kind", "bits"), [(np.uint8, 8), (np.uint16, 16)])
def test_degrading_tells_what_it_clips_and_containers_keep_it_all(tmp_path: Path, kind: Any, bits: int) -> None:
    alpha = np.full((16, 16, 1), 40, kind)
    dark = np.concatenate([np.zeros((16, 16, 3), kind), alpha], 2)
    hardly = torch.full((3, 64, 64), 0.5).index_fill(1, torch.tensor(0), 1.0)
    assert degrade(hardly, "denoise", sigma=0.05).notes == ()
    made = degrade(dark, "denoise", sigma=0.1, seed=3)
    assert len(made.notes) == 1 and 45 <= int(made.notes[0].split()[0]) <= 55 and "were clipped" in made.notes[0]
    degrade_file(dark, tmp_path / "kept.npz", "denoise", sigma=0.1)
    kept = read_container(tmp_path / "kept.npz")
    assert kept.alpha is not None and kept.alpha.mean() == pytest.approx(40 / (2**bits - 1))
    assert (kept.sigma, kept.bits) == (0.1, bits)


def test_only_known_pixels_tell_the_noise() -> None:
    """The lower half is unknown and loud; the mask is what keeps it out."""
    generator = np.random.default_rng(0)
    pixels = 0.5 + 0.03 * generator.standard_normal((64, 64, 3))
    pixels[32:] += 0.2 * generator.standard_normal((32, 64, 3))
    mask = np.ones((64, 64))
    mask[32:] = 0
    found = prepare(pixels.clip(0, 1).astype(np.float32), "inpaint", mask=mask, prior=CheapPrior(), steps=2)
    assert found.sigma == pytest.approx(0.03, rel=0.1) and found.sigma_from == "estimated"
    dotted = np.ones((64, 64))
    dotted[2::5, 2::5] = 0  # no 5 x 5 pixels are known together
    with pytest.raises(LeaderError, match="5 x 5 known pixels"):
        prepare(pixels.clip(0, 1).astype(np.float32), "inpaint", mask=dotted, prior=CheapPrior(), steps=2)


@pytest.mark.parametrize(
    ("task", "level", "kind", "used"),
    [
        *(("denoise", 0.0045, np.uint8, 0.0), ("denoise", 0.03, np.uint8, 1.0), ("sr", 0.0045, np.uint8, 1.0)),
    ],
)
def test_noise_below_what_anybody_sees_is_left_in_8_bits(task: str, level: float, kind: Any, used: float) -> None:
    """And only where removing noise is all that is asked for."""
    flat = 0.5 + level * np.random.default_rng(0).standard_normal((64, 64, 3))
    pixels = np.round(np.iinfo(kind).max * flat).astype(kind)
    options: dict[str, Any] = {"down": "average"} if task == "sr" else {}
    found = prepare(pixels, task, prior=CheapPrior(), steps=2, **options)
    assert found.sigma == pytest.approx(used * level, rel=0.1) and any("left as it is" in note for note in found.notes) is (
        used == 0
    )
    assert prepare(pixels, task, sigma=level, prior=CheapPrior(), steps=2).sigma == level, "what was given is used"


def test_a_container_is_known_by_every_name_of_its_task() -> None:
    content = degrade(photograph(16, 16), "sr", factor=2, exact=True).measurement
    assert content.bits == 16, "as fine as what was given"
    for name in ("sr", "sr-bicubic", "sr-average", None):
        assert pose.pose_container(content, name, 0.0, {}).task == "sr"
    with pytest.raises(UsageError, match="found the task 'denoise'"):
        pose.pose_container(content, "denoise", 0.0, {})


def test_a_measurement_that_is_no_picture_is_shown_as_its_inverse_in_the_range_of_pictures() -> None:
    content = degrade(photograph(16, 16), "cs", ratio=1.0, exact=True).measurement
    shown = pose.pose_container(content, None, 0.0, {}).given.pixels
    assert np.allclose(shown, photograph(16, 16).permute(1, 2, 0).numpy(), atol=1e-4)


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


def test_a_blurred_picture_is_cropped_to_its_frame_with_its_map(tmp_path: Path) -> None:
    prior = CheapPrior()
    Referee().save(tmp_path / "w.referee")
    attach(prior, tmp_path / "w.referee")
    ready = prepare(photograph(20, 28), "deblur", sigma=0.05, kernel=np.ones((3, 7)), prior=prior, steps=3)
    height, width = ready.problem.image_shape[1:]
    assert height >= 20 + 2 * 1 and width >= 28 + 2 * 3 and ready.posed.window is not None
    assert ready.size == (28, 20)
    restored = ready.run()
    direct = ready.sampler.run(ready.problem, 0)
    assert torch.equal(restored.result.images, ready.posed.window.crop(direct.images))
    assert restored.uncertainty is not None and restored.uncertainty.shape == (20, 28) == restored.array.shape[:2]
    for spread in (restored.result.posterior_std, restored.result.error_std):
        assert spread is not None and spread.shape[-2:] == (20, 28)


@pytest.mark.parametrize(("height", "width"), [(45, 3), (3, 45)])
def test_a_kernel_does_not_wrap_into_the_picture_and_is_not_larger(height: int, width: int) -> None:
    kernel, shape = torch.ones(height, width), (1, 20, 60) if height > width else (1, 60, 20)
    with pytest.raises(LeaderError, match="The kernel covers"):
        extended_blur(shape, kernel, "deblur")
    operator, window = extended_blur((1, shape[2], shape[1]), kernel, "deblur")
    assert (window.height, window.width) == (shape[2], shape[1])
    assert window.left >= width // 2 and operator.image_shape[2] - window.left - window.width >= width // 2
    assert window.top >= height // 2 and operator.image_shape[1] - window.top - window.height >= height // 2


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
