"""Around a restoration, number by number: second levels, paths, work, borders, what degrading keeps, what a kept run says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader import Grid, Problem, Sampler, operators
from leader.errors import LeaderError, UsageError
from leader.pictures import Picture
from leader.pictures.container import read_container
from leader.priors.gaussian import GaussianPrior, white
from leader.restoration import borders, ensemble, memory, pose
from leader.restoration.arguments import as_kernel, as_mask, as_picture
from leader.restoration.degrade import degrade, degrade_file
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import prepare
from leader.restoration.tasks import find_task
from leader.restoration.tasks.base import Measured
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
    assert asked == [("gaussian", "denoise", pytest.approx(0.1), "standard", "natural")]
    assert plan.settings["steps"] == 50 and plan.settings["method"]["eta"] == 0.25
    monkeypatch.setattr(ensemble, "find_path", find)
    ensemble.ensemble(ready().problem, 1, prior=GaussianPrior(white((3, 16, 24), 0.5), Schedule.linear(1e-3, 0.2, 8)))
    assert asked[-1] == ("gaussian", "denoise", pytest.approx(0.1), "standard", "natural")


def test_the_work_ahead_is_that_of_every_time_visited() -> None:
    times = Grid((500, 500, 200, 400, 0, -1))
    work = ready(method="ddnm", settings={"grid": times}, plugins=()).work()
    assert work == [(500, 384.0), (500, 384.0), (400, 384.0), (0, 384.0)]


def test_the_mean_uncertainty_is_in_units_of_the_picture() -> None:
    restored = ready().run(check=False)
    spread = restored.result.posterior_std
    assert spread is not None
    expected = float((spread[0].square().mean(0).sqrt() / 2).mean())
    assert restored.summary()["mean_uncertainty"] == pytest.approx(expected)


def test_the_mean_of_runs_and_its_error() -> None:
    """Two images, three runs each, by NumPy: means and spreads of the right ones, e^2 - s^2 (1 - 1/n) for the error."""
    generator = torch.Generator().manual_seed(0)
    problem = Problem.internal(torch.zeros(2, 1, 4, 4), operators.Denoising((1, 4, 4)), 0.2)
    result = Sampler(CheapPrior(), "ddnm", (), 2).run(problem)
    images = torch.randn(6, 1, 4, 4, generator=generator) * 0.1
    errors = torch.rand(6, 1, 4, 4, generator=generator) + 0.5
    found = ensemble.joined(replace(result, images=images, error_std=errors), 3, list("abcdef"))  # type: ignore[arg-type]
    runs, single = images.numpy().reshape(2, 3, 1, 4, 4), (errors.numpy() ** 2).reshape(2, 3, 1, 4, 4).mean(1)
    spread = runs.std(1, ddof=1)
    np.testing.assert_allclose(found.mean.numpy(), runs.mean(1), atol=1e-6)
    np.testing.assert_allclose(found.spread.numpy(), spread, atol=1e-6)
    assert found.error_std is not None
    np.testing.assert_allclose(found.error_std.numpy(), np.sqrt(single - spread**2 * (2 / 3)), rtol=1e-4)
    assert list(map(str, found.trust)) == ["a", "d"]


def test_an_ensemble_repeats_each_image_in_a_row_and_shows_its_steps() -> None:
    problem = Problem.internal(
        torch.stack([torch.full((1, 4, 4), v) for v in (-0.8, 0.8)]), operators.Denoising((1, 4, 4)), 0.1
    )
    steps: list[Any] = []
    found = ensemble.ensemble(problem, 2, sampler=Sampler(CheapPrior(), "ddnm", (), 5), on_step=steps.append)
    brightness = found.runs.images.mean((1, 2, 3))
    assert bool((brightness[:2] < 0).all()) and bool((brightness[2:] > 0).all()) and len(steps) == 5
    assert float(found.mean[0].mean()) < -0.2 and float(found.mean[1].mean()) > 0.2


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


def test_doubt_of_the_operator_joins_the_noise() -> None:
    picture = as_picture(photograph(48, 48) + 0.05 * torch.randn(3, 48, 48, generator=torch.Generator().manual_seed(0)))
    plain, task = Measured(operators.Denoising((3, 48, 48)), picture.pixels, picture), find_task("denoise")
    level, spectrum, white = pose._noise(plain, None, task, [], True)
    assert spectrum is None and white
    assert pose._noise(replace(plain, doubt=0.04), None, task, [], True)[0] == pytest.approx(math.hypot(level, 0.04))
    assert pose._noise(replace(plain, sigma=0.3, doubt=0.04), None, task, [], True)[0] == 0.3
    assert pose._noise(replace(plain, sigma=0.3, doubt=0.04), 0.0, task, [], True)[0] == 0.0


@pytest.mark.parametrize(
    ("name", "level", "bits", "used"),
    [("denoise", 0.0045, 8, 0.0), ("denoise", 0.0075, 8, 1.0), ("denoise", 0.0045, 16, 1.0), ("sr", 0.0045, 8, 1.0)],
)
def test_noise_that_nobody_sees_is_not_taken_away(name: str, level: float, bits: int, used: float) -> None:
    """1.5 grey levels, found in 8 bits, and only where taking noise away is all that is asked for."""
    flat = 0.5 + level * np.random.default_rng(0).standard_normal((64, 64, 3))
    pixels = np.round((2**bits - 1) * flat).astype(np.float32) / (2**bits - 1)
    given, notes = Measured(operators.Denoising((3, 64, 64)), pixels, Picture(pixels, bits=bits)), list[str]()
    found, shape, white = pose._noise(given, None, find_task(name), notes)
    assert found == pytest.approx(used * level, rel=0.1) and shape is None and white
    assert any("left as it is" in note for note in notes) is (used == 0)
    assert pose._noise(given, level, find_task(name), [])[0] == level, "what was given is used"


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


def test_the_memory_of_a_picture() -> None:
    assert memory.memory_needed((3, 1000, 2000)) == (250 << 20) + 240 * 2_000_000
    assert memory.memory_needed((1, 1000, 2000)) == (250 << 20) + 144 * 2_000_000


def test_words_for_kernels_and_masks() -> None:
    assert torch.equal(as_mask("random:0.5:7", (8, 8)), operators.random_mask(8, 8, 0.5, 7))
    assert not torch.equal(as_mask("random:0.5:7", (8, 8)), as_mask("random:0.5", (8, 8)))
    with pytest.raises(UsageError, match="pixels wide"):
        as_kernel("gaussian:129")
    see_through = as_picture(np.concatenate([np.zeros((8, 8, 3)), np.full((8, 8, 1), 0.25)], 2).astype(np.float32))
    assert see_through.alpha is not None and float(see_through.alpha.max()) == 0.25 and see_through.pixels.shape == (8, 8, 3)


def test_a_kept_run_says_everything() -> None:
    prior = CheapPrior()
    run = prepare(
        photograph(16, 16),
        "denoise",
        sigma=0.1,
        prior=prior,
        method="ddnm",
        plugins=(),
        steps=5,
        seed=7,
        ids=[4, 6],
        average=2,
        threads=1,
        settings={"estimator": "hutchinson", "probes": 2, "trust_time": 50},
    ).run(check=False)
    again = arguments_of(run.summary(), prior)
    assert (again["seed"], again["ids"], again["average"], again["threads"], again["steps"]) == (7, (4, 6), 2, 1, 5)
    assert (again["settings"]["probes"], again["settings"]["trust_time"]) == (2, 50)
    summary = run.summary()
    summary["settings"]["grid_labels"] = [[9, 8, 7, 6, 5, 4]] * 2
    assert arguments_of(summary, prior)["settings"]["grid"].labels == (9, 8, 7, 6, 5, 4)


@pytest.mark.parametrize(
    ("name", "value"), [("sigma", 10**400), ("sigma", math.inf), ("noise_spectrum", [[[10**400]]]), ("noise_spectrum", [[]])]
)
def test_numbers_beyond_all_floats_in_a_kept_run_are_told(name: str, value: Any) -> None:
    prior = CheapPrior()
    summary = ready(prior=prior).run(check=False).summary()
    with pytest.raises(LeaderError):
        arguments_of({**summary, name: value}, prior)
