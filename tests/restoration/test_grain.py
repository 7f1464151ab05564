"""Grain that is put back: its level, its seed, what it leaves alone, and that a kept run repeats it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import UsageError
from leader.forensics import NotExamined
from leader.restoration.grain import add_grain
from leader.restoration.restore import restore
from leader.restoration.restored import Restoration
from tests.cheap_prior import CheapPrior, photograph
from tests.restoration.repeating import repeat

TASKS: dict[str, dict[str, Any]] = {
    "sr": {"factor": 2, "down": "box"},
    "deblur": {"kernel": "gaussian:1", "kernel_doubt": 0.1},
}


def noisy(channels: int = 3) -> torch.Tensor:
    """[C, 72, 96] far from black and white, with noise of 0.05."""
    noise = torch.randn(channels, 72, 96, generator=torch.Generator().manual_seed(3))
    return 0.4 + 0.2 * photograph(72, 96, channels) + 0.05 * noise


def run(task: str, image: torch.Tensor | None = None, **choices: Any) -> Restoration:
    image = noisy() if image is None else image
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
    grey = run("sr", noisy(1).expand(3, -1, -1), sigma=0.05, grain="keep")
    without = run("sr", noisy(1).expand(3, -1, -1), sigma=0.05)
    difference = grey.array - without.array
    assert np.abs(difference - difference[..., :1]).max() < 1e-6 < difference.std()


def test_grain_is_told_and_repeated(tmp_path: Path) -> None:
    kept, _, summary = repeat(noisy(), "sr", grain="keep", seed=4, method="ddnm", plugins=(), steps=3, **TASKS["sr"])
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
        restore(noisy(), "denoise", sigma=0.05, grain="keep", prior=CheapPrior(), steps=3)
