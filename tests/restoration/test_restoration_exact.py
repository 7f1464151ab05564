"""Around a restoration, number by number: second levels, paths, work, borders, what degrading keeps, what a kept run says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader import operators
from leader.errors import LeaderError, UsageError
from leader.pictures import Picture
from leader.pictures.container import read_container
from leader.priors.gaussian import GaussianPrior, white
from leader.restoration import borders, ensemble, pose
from leader.restoration.degrade import degrade, degrade_file
from leader.restoration.restore import prepare
from leader.schedule import Schedule
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
    x = torch.rand(1, 1, 6, 5, generator=torch.Generator().manual_seed(1)).double()
    values = x[0, 0].numpy()
    around = sum(np.roll(values, shift, axis) for shift in (1, -1) for axis in (0, 1))
    np.testing.assert_allclose(borders._laplacian(x)[0, 0].numpy(), 4 * values - around, atol=1e-12)
    operator, place = borders.extended_blur((2, 32, 40), operators.gaussian_kernel(1.0, 7), "deblur-motion")
    assert operator.task == "deblur-motion" and operator.select(torch.tensor([0])).task == "deblur-motion"
    assert operator.image_shape == (2, 54, 64)  # 32 + 2 (3 + 8) and 40 + 2 (3 + 8), even and without large primes
    assert (place.top, place.left, place.height, place.width) == (11, 12, 32, 40)
    given = torch.rand(1, 2, 32, 40, generator=torch.Generator().manual_seed(2))
    assert torch.equal(place.crop(borders.extend(given, operator, place)), given)


def test_degrading_tells_what_it_clips_and_follows_its_seed(tmp_path: Path) -> None:
    dark = Picture(np.zeros((16, 16, 3), np.float32), np.full((16, 16), 0.5, np.float32))
    made = degrade(dark, "denoise", sigma=0.1, seed=3)
    assert len(made.notes) == 1 and 45 <= int(made.notes[0].split()[0]) <= 55 and "were clipped" in made.notes[0]
    again, other = degrade(dark, "denoise", sigma=0.1, seed=3), degrade(dark, "denoise", sigma=0.1, seed=4)
    assert np.array_equal(made.picture.pixels, again.picture.pixels)
    assert not np.array_equal(made.picture.pixels, other.picture.pixels)
    assert degrade(photograph(80, 80), "deblur-motion", seed=5).notes == ("The motion kernel is motion:5.",)
    degrade_file(dark, tmp_path / "kept.npz", "denoise", sigma=0.1)
    kept = read_container(tmp_path / "kept.npz")
    assert kept.alpha is not None and kept.alpha.mean() == pytest.approx(0.5) and kept.sigma == 0.1
    masked = degrade(photograph(16, 16), "inpaint", sigma=0.2, mask="random:0.5:2", exact=True).measurement
    assert bool((masked.y[:, :, masked.options["mask"] == 0] == 0).all())
    measured = degrade(photograph(16, 16), "cs", ratio=0.5, seed=9, exact=True).measurement
    assert measured.options["seed"] == 9 and measured.y.shape == (1, 3, 128)


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


@pytest.mark.parametrize("size", [(45, 3), (3, 45)])
def test_a_kernel_larger_than_the_picture_either_way_is_refused(size: tuple[int, int]) -> None:
    shape = (1, 20, 60) if size[0] > size[1] else (1, 60, 20)
    with pytest.raises(LeaderError, match="The kernel covers"):
        borders.extended_blur(shape, torch.ones(size), "deblur")
    _, window = borders.extended_blur((1, shape[2], shape[1]), torch.ones(size), "deblur")
    assert (window.height, window.width) == (shape[2], shape[1])


def test_a_picture_lies_in_the_middle_of_its_frame() -> None:
    operator, window = borders.extended_blur((1, 30, 50), torch.ones(3, 21), "deblur")
    _, height, width = operator.image_shape
    assert (window.top, window.left) == ((height - 30) // 2, (width - 50) // 2) and window.top != window.left


def test_a_container_is_known_by_every_name_of_its_task() -> None:
    content = degrade(photograph(16, 16), "sr", factor=2, exact=True).measurement
    for name in ("sr", "sr-bicubic", "sr-average", None):
        assert pose.pose_container(content, name, 0.0, {}).task == "sr"
    with pytest.raises(UsageError, match="found the task 'denoise'"):
        pose.pose_container(content, "denoise", 0.0, {})


def test_a_measurement_that_is_no_picture_is_shown_as_its_inverse_in_the_range_of_pictures() -> None:
    content = degrade(photograph(16, 16), "cs", ratio=1.0, exact=True).measurement
    shown = pose.pose_container(content, None, 0.0, {}).given.pixels
    assert np.allclose(shown, photograph(16, 16).permute(1, 2, 0).numpy(), atol=1e-4)


def test_containers_keep_the_bits_of_the_picture() -> None:
    pixels = np.full((16, 16, 3), 40_000, np.uint16)
    assert degrade(pixels, "denoise", exact=True).measurement.bits == 16
    assert degrade(pixels.astype(np.uint8), "denoise", exact=True).measurement.bits == 8
