"""Noise of a picture: which entries it clipped, grain that is put back, and weak noise that is left where nothing is gained."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import leader
from leader.errors import UsageError
from leader.forensics import NotExamined
from leader.forensics.noise.estimate import NoiseEstimate
from leader.forensics.noise.shot import ShotNoise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.messages import Note
from leader.operators import AveragePoolSR, Blur, Denoising, WeightedPixels
from leader.pictures import Picture
from leader.presets.paths import find_path
from leader.priors.base import Prediction
from leader.problem import Problem
from leader.restoration.grain import add_grain, put_grain
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import Preparation, prepare, restore
from leader.restoration.restored import Restoration
from leader.restoration.whitening import Coloured
from leader.restoration.worth import GAINED, WEAK, expected_error, leaves_nothing_open
from tests.cheap_prior import CheapPrior, photograph
from tests.restoration.repeating import repeat

SIGMA = 0.15


def scene(height: int = 40, width: int = 56) -> NDArray[np.float64]:
    """Dark on the left, bright on the right, its channels apart."""
    across = np.linspace(0.0, 1.0, width)[None, :, None]
    return np.broadcast_to((across + np.array([-0.05, 0.0, 0.1])).clip(0, 1), (height, width, 3)).copy()


def noisy(bits: int = 8) -> NDArray[Any]:
    values = scene() + SIGMA * np.random.default_rng(2).standard_normal((40, 56, 3))
    top = 2**bits - 1
    stored: NDArray[Any] = (values.clip(0, 1) * top).round().astype(np.uint8 if bits == 8 else np.uint16)
    return stored


def masks(ready: Preparation) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Low and high as [H, W, C]."""
    censored = ready.problem.censored
    assert censored is not None
    low, high = (mask[0].permute(1, 2, 0).numpy() for mask in (censored.low, censored.high))
    return low, high


@pytest.mark.parametrize("bits", [8, 16])
def test_pixels_at_the_ends_of_a_file_are_limits_channel_by_channel(tmp_path: Path, bits: int) -> None:
    pixels = noisy(bits)
    if bits == 8:
        Image.fromarray(pixels).save(tmp_path / "noisy.png")
    given = tmp_path / "noisy.png" if bits == 8 else pixels
    low, high = masks(prepare(given, "denoise", sigma=SIGMA))
    assert np.array_equal(low, pixels == 0) and np.array_equal(high, pixels == 2**bits - 1)
    assert 0 < low.sum() != high.sum() > 0


def test_decimal_numbers_are_clipped_unless_some_lie_beyond() -> None:
    clipped = noisy().astype(np.float32) / 255
    low, _ = masks(prepare(clipped, "denoise", sigma=SIGMA))
    assert np.array_equal(low, clipped == 0)
    beyond = clipped.copy()
    beyond[3, 4, 1] = -0.1
    assert prepare(beyond, "denoise", sigma=SIGMA).problem.censored is None


@pytest.mark.parametrize("choices", [{"sigma": 0.004}, {"sigma": 0.0}, {"sigma": SIGMA, "clipped": False}])
def test_hardly_any_noise_or_no_wish_means_no_limits(choices: dict[str, Any]) -> None:
    assert prepare(noisy(), "denoise", **choices).problem.censored is None


def test_beyond_its_frame_a_blurred_picture_has_no_limits() -> None:
    pixels = noisy()
    ready = prepare(pixels, "deblur-gaussian", sigma=SIGMA, kernel="gaussian:1.2", kernel_doubt=0)
    low, high = masks(ready)
    window = ready.posed.window
    assert window is not None and low.shape != pixels.shape
    rows, columns = slice(window.top, window.top + window.height), slice(window.left, window.left + window.width)
    assert np.array_equal(low[rows, columns], pixels == 0) and low.sum() == (pixels == 0).sum()
    assert high.sum() == (pixels == 255).sum()


@pytest.mark.parametrize(("task", "options"), [("sr", {"factor": 2, "down": "box"}), ("inpaint", {"mask": "random:0.4"})])
def test_other_tasks_know_the_limits_of_their_measurement(task: str, options: dict[str, Any]) -> None:
    ready = prepare(noisy(), task, sigma=SIGMA, **options)
    low, _ = masks(ready)
    reached = ready.problem.operator.reached(ready.problem.y).expand_as(ready.problem.y)[0].permute(1, 2, 0).numpy()
    assert np.array_equal(low, (noisy() == 0) & reached)


def test_weighed_pixels_keep_their_limits() -> None:
    """Noise that grows with brightness: the entry of a pixel is that pixel, and its limit is weighed with it."""
    ready = prepare(noisy(), "denoise", sigma=Coloured(0.1, ShotNoise(0.02, 0.01, 0.01)))
    assert isinstance(ready.problem.operator, WeightedPixels)
    low, _ = masks(ready)
    assert np.array_equal(low, noisy() == 0)
    black = ready.problem.impute().y[ready.problem.censored.low]  # type: ignore[union-attr]
    assert bool((black < ready.problem.y[ready.problem.censored.low]).all())  # type: ignore[union-attr]


@pytest.mark.parametrize("clipped", [True, False])
def test_a_run_says_so_and_is_repeated_to_the_bit(clipped: bool) -> None:
    _, _, kept = repeat(noisy(), "denoise", sigma=SIGMA, clipped=clipped)
    assert kept["clipped"] == (int(((noisy() == 0) | (noisy() == 255)).sum()) if clipped else 0)


def test_runs_written_before_limits_were_known_are_repeated_without() -> None:
    kept = leader.restore(noisy(), "denoise", sigma=SIGMA, check=False).summary()
    del kept["clipped"]
    assert prepare(noisy(), **arguments_of(kept)).problem.censored is None


def test_a_right_answer_is_judged_as_if_nothing_had_been_clipped() -> None:
    """What is left of the measurement is as strong as the noise, and like it without pattern."""
    done = leader.restore(noisy(), "denoise", sigma=SIGMA)
    assert done.verdict is not None
    numbers = done.verdict.numbers
    assert numbers["residual"] == pytest.approx(SIGMA, rel=0.06)
    assert abs(numbers["correlation"] or 0) < 0.06


TASKS: dict[str, dict[str, Any]] = {
    "sr": {"factor": 2, "down": "box"},
    "deblur": {"kernel": "gaussian:1", "kernel_doubt": 0.1},
}


def grainy(channels: int = 3) -> torch.Tensor:
    """[C, 72, 96] far from black and white, with noise of 0.05."""
    noise = torch.randn(channels, 72, 96, generator=torch.Generator().manual_seed(3))
    return 0.4 + 0.2 * photograph(72, 96, channels) + 0.05 * noise


def run(task: str, image: torch.Tensor | None = None, **choices: Any) -> Restoration:
    image = grainy() if image is None else image
    words = {"prior": CheapPrior(), "method": "ddnm", "plugins": (), "steps": 3, **TASKS[task], **choices}
    return restore(image, task, check=False, **words)


@pytest.mark.parametrize("task", TASKS)
def test_kept_grain_has_the_estimated_level_at_the_size_of_the_result(task: str) -> None:
    plain, kept = run(task), run(task, grain="keep")
    assert kept.posed.examination is not None and not isinstance(kept.posed.examination.noise, NotExamined)
    estimate = kept.posed.examination.noise.white
    assert kept.posed.grain == estimate and estimate == pytest.approx(0.05, rel=0.1)
    difference = kept.array - plain.array
    assert difference.std() == pytest.approx(estimate, rel=0.03)  # 72 * 96 * 3 draws: 4 standard errors are 0.02
    neighbours = np.corrcoef(difference[:, 1:].ravel(), difference[:, :-1].ravel())[0, 1]
    assert abs(neighbours) < 0.04, "as fine as the pixels of the result"
    assert torch.equal(kept.result.images, plain.result.images), "nothing else of the run changes"


def test_grain_that_grows_with_brightness_is_that_of_the_pixels_given() -> None:
    seen: Any = SimpleNamespace(noise=NoiseEstimate(0.05, 0.0, 1e-3, shot=ShotNoise(0.02, 0.0, 1e-3)))
    dark = replace(run("sr", sigma=0.05).posed, examination=seen, given=Picture(np.full((8, 9, 3), 0.1, np.float32)))
    assert put_grain(replace(dark, sigma_from="estimated"), "keep", None).grain == pytest.approx(0.002**0.5)
    clean: Any = SimpleNamespace(noise=NoiseEstimate(5e-4, 0.0, 1e-3))
    assert put_grain(replace(dark, sigma_from="estimated", examination=clean), "keep", None).grain == 0, "that of rounding"


def test_a_given_level_is_the_grain_in_spite_of_doubts_about_the_kernel() -> None:
    kept = run("deblur", sigma=0.03, grain="keep")
    assert kept.posed.grain == 0.03 and kept.sigma != 0.03


def test_remove_is_the_default_to_the_bit(tmp_path: Path) -> None:
    for name, grain in (("a", None), ("b", "remove")):
        run("sr", sigma=0.05, grain=grain).save(tmp_path / f"{name}.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert run("sr", sigma=0.05).posed.grain == 0


def test_seed_and_id_choose_the_grain() -> None:
    flat = np.full((40, 56, 3), 0.5, np.float32)
    first = add_grain(flat, 0.1, 5, 2, grey=False)
    assert np.array_equal(first, add_grain(flat, 0.1, 5, 2, grey=False))
    for other in ((6, 2), (5, 3)):
        assert abs(np.corrcoef(first.ravel(), add_grain(flat, 0.1, *other, grey=False).ravel())[0, 1]) < 0.06
    third, plain = run("sr", sigma=0.05, seed=5, ids=3, grain=0.1), run("sr", sigma=0.05, seed=5, ids=3)
    assert np.array_equal(third.array, add_grain(plain.array, 0.1, 5, 3, grey=False))


def test_a_picture_without_colour_stays_so() -> None:
    grey = run("sr", grainy(1).expand(3, -1, -1), sigma=0.05, grain="keep")
    without = run("sr", grainy(1).expand(3, -1, -1), sigma=0.05)
    difference = grey.array - without.array
    assert np.abs(difference - difference[..., :1]).max() < 1e-6 < difference.std()


def test_grain_is_told_and_repeated(tmp_path: Path) -> None:
    kept, _, summary = repeat(grainy(), "sr", grain="keep", seed=4, method="ddnm", plugins=(), steps=3, **TASKS["sr"])
    assert summary["grain"] == kept.posed.grain and any("Grain of 0.049 is put back" in note for note in kept.notes)
    kept.save(tmp_path / "grainy.png")
    with Image.open(tmp_path / "grainy.png") as file:
        assert any(f'"grain":{kept.posed.grain:.6g}' in str(text) for text in file.info.values())


def test_no_noise_no_grain() -> None:
    for choices in ({"sigma": 0.0}, {}):  # what was estimated is not more than rounding
        clean = run("sr", torch.full((3, 72, 96), 0.4), grain="keep", **choices)
        assert clean.posed.grain == 0 and "no grain is put back" in clean.notes[-1]


@pytest.mark.parametrize("wrong", ["kept", -0.1, 2.0, True])
def test_other_words_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="grain is keep, remove or a noise level"):
        run("sr", grain=wrong)


def test_noise_that_was_to_be_removed_is_not_put_back() -> None:
    with pytest.raises(UsageError, match=r"Grain is kept by the tasks .*sr.*; found the task 'denoise'"):
        restore(grainy(), "denoise", sigma=0.05, grain="keep", prior=CheapPrior(), steps=3)


class Modest(CheapPrior):
    """Expects errors of this size, for [0, 1] images, more on the right, whatever it is asked; None: has no opinion."""

    def __init__(self, error: float | None) -> None:
        super().__init__()
        self.error, self.seen = error, list[Tensor]()

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        self.seen.append(x)
        variance = None if self.error is None else (2 * self.error) ** 2 * torch.linspace(0, 2, x.shape[-1]).expand_as(x)
        return replace(super()._predict(x, t), variance=variance)


def faint(sigma: float) -> NDArray[np.float32]:
    drawn = 0.5 + sigma * np.random.default_rng(0).standard_normal((64, 64, 3))
    return (np.round(255 * drawn) / 255).astype(np.float32)


@pytest.mark.parametrize("sigma", [0.008, 0.02])
def test_the_error_is_that_of_the_posterior_at_the_noise_of_the_picture(sigma: float) -> None:
    """x0 ~ N(0, 0.25), noise of s: p s^2 / (p + s^2), at the time whose noise is nearest, a few per cent beside it."""
    prior = CheapPrior()
    problem = Problem(torch.from_numpy(faint(sigma)).permute(2, 0, 1)[None], Denoising((3, 64, 64)), sigma)
    s = float(prior.schedule.log_noise[prior.schedule.nearest(2 * sigma)]) / 2
    exact = (0.25 / (0.25 * np.exp(-2 * s) + 1)) ** 0.5 / 2
    assert expected_error(prior, problem) == pytest.approx(exact, rel=1e-5)
    assert exact == pytest.approx(sigma, rel=0.15)
    assert expected_error(Modest(None), problem) is None


def test_the_picture_is_asked_about_as_a_state_of_that_time() -> None:
    prior, picture = Modest(0.1), torch.from_numpy(faint(0.02)).permute(2, 0, 1)[None]
    expected_error(prior, Problem(picture, Denoising((3, 64, 64)), 0.02))
    abar = float(prior.schedule.abar(torch.tensor([prior.schedule.nearest(0.04)])))
    torch.testing.assert_close(prior.seen[0], (2 * picture - 1) * abar**0.5)


@pytest.mark.parametrize(("share", "left"), [(0.95, False), (1.05, True)])
def test_weak_noise_is_left_where_the_answer_would_be_as_far_off(share: float, left: bool) -> None:
    found = prepare(faint(0.01), "denoise", prior=Modest(0.001), steps=4).sigma
    ready = prepare(faint(0.01), "denoise", prior=Modest(share * GAINED * found), steps=4)
    assert found == pytest.approx(0.01, rel=0.1) and ready.sigma == (0 if left else found)
    assert float(ready.problem.sigma) == pytest.approx(2 * ready.sigma) and ready.sigma_from == "estimated"
    assert any("left as it is" in note for note in ready.notes) is left
    if left:
        restored = ready.run()
        assert np.abs(restored.array - faint(0.01)).max() < 1e-6


def test_nobody_asks_where_noise_shows_or_was_given_or_there_is_no_opinion() -> None:
    strong, loud = prepare(faint(WEAK * 1.2), "denoise", prior=Modest(1.0), steps=4), faint(0.01)
    assert strong.sigma == pytest.approx(1.2 * WEAK, rel=0.1)
    assert prepare(loud, "denoise", sigma=0.01, prior=Modest(1.0), steps=4).sigma == 0.01
    assert prepare(loud, "denoise", prior=Modest(None), steps=4).sigma == pytest.approx(0.01, rel=0.1)
    assert prepare(loud, "sr", factor=2, prior=Modest(1.0), steps=4).sigma > 0.009


def test_a_picture_that_nothing_happened_to_leaves_nothing_open() -> None:
    picture, shape = torch.rand(1, 3, 16, 16), (3, 16, 16)
    one, three = torch.ones(1, 1), torch.ones(3, 3)
    for operator in (Denoising(shape), Blur(shape, one)):
        assert leaves_nothing_open(Problem(picture, operator, 0.0)) and not leaves_nothing_open(
            Problem(picture, operator, 1e-3)
        )
    assert not leaves_nothing_open(Problem(picture, Blur(shape, three), 0.0))
    assert not leaves_nothing_open(Problem(picture, AveragePoolSR((3, 32, 32), 2), 0.0))
    two = picture.expand(2, -1, -1, -1)
    assert leaves_nothing_open(Problem(two, Blur(shape, one.expand(2, 1, 1, 1)), 0.0))


@pytest.mark.parametrize(("quality", "look"), [(None, None), ("best", "faithful")])
def test_it_costs_one_call(quality: str | None, look: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader.restoration.choice.find_path", lambda *asked: replace(find_path(*asked), average=3))

    def ready(**more: Any) -> Preparation:
        return prepare(faint(0.01), "denoise", prior=CheapPrior(), quality=quality, look=look, **more)

    known = ready(sigma=0)
    assert len(known.work()) == 1 and known.average == 1
    restored = known.run()
    assert repr(restored).endswith("sigma 0, 1 network call>")
    assert restored.result.ledger.total.calls == 1 and np.abs(restored.array - faint(0.01)).max() < 1e-6
    assert ready(sigma=0.02).average == 3 and len(ready(sigma=0.02).work()) > 1
    assert len(ready(sigma=0, steps=4).work()) == 4
    assert len(prepare(faint(0.01), "denoise", sigma=0, method="ddrm", prior=CheapPrior()).work()) == 100


def test_the_verdict_knows_the_white_noise_of_a_picture_whose_noise_somebody_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measured(pixels: Any, *others: Any) -> NoiseEstimate:
        asked.append((pixels.shape, *others))
        return NoiseEstimate(white=0.012, compression=0.5, rounding=0.001)

    given, estimated = (prepare(faint(0.02), "denoise", sigma=sigma, prior=CheapPrior(), steps=2) for sigma in (0.02, None))
    monkeypatch.setattr("leader.forensics.examination.noise_behind", measured)
    assert given._noise() == given._noise() == 0.012
    assert asked == [(given.given.pixels.shape, None, given.given.bits, None)], "once"
    assert estimated._noise() is None and len(asked) == 1


def test_what_looks_like_noise_of_all_colours_is_detail_in_a_thumbnail() -> None:
    """Denoising removes it, enlarging says how to."""
    grain = 0.08 * np.random.default_rng(4).standard_normal((64, 56, 1))
    noisy = Picture((np.round(255 * (0.5 * scene(64, 56) + 0.25 + grain)) / 255).astype(np.float32))
    removed, enlarged = prepare(noisy, "denoise", prior=CheapPrior()), prepare(noisy, "sr", factor=2, prior=CheapPrior())
    assert isinstance(removed.posed.noise, NoiseSpectrum) and removed.posed.noise.level > 0.06
    assert enlarged.posed.noise is None and enlarged.sigma < 0.04
    told = [note for note in enlarged.notes if isinstance(note, Note) and note.code == "grey noise"]
    assert len(told) == 1 and told[0].remedy is not None and told[0].remedy.options == {"sigma": pytest.approx(0.08, rel=0.2)}
    assert not any(isinstance(note, Note) and note.code == "grey noise" for note in removed.notes)
