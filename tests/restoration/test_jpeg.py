"""The task jpeg from file to picture: what is read, what is refused, what belongs to every run of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.operators import Jpeg
from leader.pictures import from_pil, read_picture
from leader.plan import Plan
from leader.plugins.cells import Cells
from leader.restoration.degrade import degrade, degrade_file
from leader.restoration.pose import pose_picture
from leader.restoration.restore import prepare, restore
from tests.cheap_prior import CheapPrior
from tests.forensics.fields import peppered
from tests.forensics.jpegs import jpeg, photograph, unit
from tests.restoration.repeating import repeat


def truth(side: int = 96) -> torch.Tensor:
    """[1, 3, H, W] in [0, 1]."""
    return torch.from_numpy(unit(photograph(3, side=side))).float().permute(2, 0, 1)[None]


@pytest.mark.parametrize(("subsampling", "size"), [(0, (96, 96)), (1, (96, 96)), (2, (96, 96)), (2, (75, 90)), (0, (61, 50))])
def test_the_measurement_is_that_of_the_true_picture_but_for_rounding(subsampling: int, size: tuple[int, int]) -> None:
    """y - A x of the picture before its compression has the level that the problem says, and x lies in the cells."""
    image = photograph(3, side=96).crop((0, 0, *size))
    posed = pose_picture(restore_input(image, 40, subsampling), "jpeg", None, {})
    operator = posed.problem.operator
    assert isinstance(operator, Jpeg)
    x = np.pad(unit(image), [(0, operator.image_shape[1] - size[1]), (0, operator.image_shape[2] - size[0]), (0, 0)], "edge")
    x_internal = 2 * torch.from_numpy(x).float().permute(2, 0, 1)[None] - 1
    reached = operator.reached(posed.problem.y)
    left = posed.problem.residual(x_internal)[0, reached]
    assert 0.6 <= float(left.square().mean().sqrt()) / float(posed.problem.sigma[0]) <= 1.3
    moved = operator.confine(x_internal, posed.problem.y) - x_internal
    assert float(moved.square().mean().sqrt()) <= 0.01
    assert posed.sigma_from == "estimated" and posed.sigma == operator.level
    assert (posed.window is None) == (size == (96, 96))


def restore_input(image: Image.Image, quality: int, subsampling: int) -> Any:
    return from_pil(jpeg(image, quality, subsampling))


def test_every_run_holds_the_cells_whatever_method_is_given() -> None:
    file = restore_input(photograph(3, side=64), 30, 2)
    choices: list[dict[str, Any]] = [{}, {"method": "ddnm"}, {"method": "dps"}, {"plugins": ()}, {"plugins": "ucpm"}]
    for choice in choices:
        ready = prepare(file, "jpeg", prior=CheapPrior(), steps=3, **choice)
        assert [item.name for item in ready.plan.plugins].count("cells") == 1
    given = prepare(file, "jpeg", prior=CheapPrior(), steps=3, method="ddnm", plugins=Cells(begin=2.0))
    assert [item.name for item in given.plan.plugins] == ["cells"]
    restored = restore(file, "jpeg", prior=CheapPrior(), steps=3, method="ddnm", check=False)
    problem, image = given.problem, restored.result.images
    operator = problem.operator
    assert isinstance(operator, Jpeg)
    assert torch.allclose(operator.confine(image, problem.y), image, atol=1e-5)
    other = prepare(file, "denoise", prior=CheapPrior(), steps=3)
    assert "cells" not in [item.name for item in other.plan.plugins]


def test_the_last_answer_is_held_in_the_inner_part_of_the_cells_and_no_other() -> None:
    """DiffPIR's last evaluation has no data step; a data step's answer may lie anywhere in the cells."""
    file = restore_input(photograph(3, side=64), 30, 2)
    ready = prepare(file, "jpeg", prior=CheapPrior())
    problem, cells = ready.problem, next(item for item in ready.plan.plugins if isinstance(item, Cells))
    operator = problem.operator
    assert isinstance(operator, Jpeg) and cells.inner == 0.5
    image = ready.run(check=False).result.images
    assert torch.allclose(operator.confine(image, problem.y, 0.5), image, atol=1e-5)
    x0 = operator.decoded(problem.y) + 0.2 * torch.randn(problem.batch, *problem.image_shape, generator=torch.manual_seed(1))
    inner, whole = (cells.settle(before, x0, ready.sampler.prior, problem) for before in (x0, x0 + 1e-3))
    assert torch.equal(inner, operator.confine(x0, problem.y, 0.5)) and torch.equal(whole, operator.confine(x0, problem.y))
    assert not torch.allclose(inner, whole, atol=1e-3)
    faithful = prepare(file, "jpeg", prior=CheapPrior(), look="faithful")
    assert next(item for item in faithful.plan.plugins if isinstance(item, Cells)).inner > cells.inner
    with pytest.raises(LeaderError, match=r"'inner' of the plug-in 'cells' must be in \[0, 1\]"):
        Cells(inner=1.2)


def test_the_answer_is_the_mean_of_two_runs_with_opposite_noise() -> None:
    file = restore_input(photograph(3, side=64), 30, 2)
    ready = prepare(file, "jpeg", prior=CheapPrior())
    sigma, schedule = float(ready.problem.sigma[0]), CheapPrior().schedule
    assert ready.average == 2 and ready.plan.grid.visits == 6
    assert [ready.plan.grid.times[i] for i in (0, 5)] == [schedule.nearest(share * sigma) for share in (5, 0.7)]
    states = {}
    runs = ready.sampler.iterate(ready.problem.select(torch.tensor([0, 0])), ids=[4, 5], plan=doubled(ready.plan))
    for step in runs:
        states[int(step.t[0])] = step
    first = states[ready.plan.grid.times[0]]
    level = schedule.level(first.u, first.x0)
    noise = first.state.x - level.signal * first.x0_hat
    assert torch.allclose(noise[0], -noise[1], atol=1e-5)
    assert float(noise.std()) == pytest.approx(float(level.noise[0]), rel=0.05)


def doubled(plan: Plan) -> Plan:
    return replace(plan, grids=plan.grids * 2)


@pytest.mark.parametrize("choices", [{"method": "ddnm", "steps": 3}, {}])
def test_the_repeat_gives_the_same_bits(choices: dict[str, Any]) -> None:
    first, *_ = repeat(restore_input(photograph(3, side=75), 30, 2), "jpeg", **choices)
    assert first.array.shape == (75, 75, 3)


def test_a_png_of_a_jpeg_and_a_crop_of_it(tmp_path: Path) -> None:
    decoded = jpeg(photograph(3), 30, 2).convert("RGB")
    decoded.save(tmp_path / "whole.png")
    decoded.crop((5, 11, 180, 170)).save(tmp_path / "part.png")
    whole, part = (prepare(tmp_path / name, "jpeg", prior=CheapPrior()) for name in ("whole.png", "part.png"))
    assert (
        "quality 30, 4:2:0, as its pixels show" in whole.notes[-1] and "quality 30, 4:2:0, as its pixels show" in part.notes[-1]
    )
    assert whole.posed.window is None and part.posed.window is not None
    assert part.run(check=False).picture.size == (175, 159)


def test_what_has_no_history_is_refused() -> None:
    with pytest.raises(LeaderError, match="no trace of JPEG"):
        prepare(photograph(3, noise=4, side=96), "jpeg", prior=CheapPrior())
    with pytest.raises(UsageError, match="no use for a kernel"):
        prepare(restore_input(photograph(3, side=64), 30, 2), "jpeg", kernel="gaussian:1", prior=CheapPrior())
    with pytest.raises(UsageError, match="read from the picture"):
        pose_picture(restore_input(photograph(3, side=64), 30, 2), "jpeg", None, {"quality": 30})


def test_no_jpeg_switches_the_care_off() -> None:
    file = restore_input(photograph(3), 20, 2)
    careful = pose_picture(file, "denoise", None, {})
    careless = pose_picture(file, "denoise", None, {}, jpeg=False)
    assert careless.sigma < 0.7 * careful.sigma
    assert prepare(file, "denoise", prior=CheapPrior(), jpeg=False).sigma == careless.sigma
    with pytest.raises(UsageError, match="another task"):
        prepare(file, "jpeg", prior=CheapPrior(), jpeg=False)


def test_degrading(tmp_path: Path) -> None:
    made = degrade(truth(), "jpeg", quality=30)
    assert made.picture.history is not None and made.picture.history.quality == 30
    np.testing.assert_array_equal(made.picture.pixels, unit(jpeg(photograph(3, side=96), 30, 2)).astype(np.float32))
    for name in ("blocky.jpg", "blocky.png"):
        degrade_file(truth(), tmp_path / name, "jpeg", quality=30)
        again = read_picture(tmp_path / name)
        assert float(np.abs(again.pixels - made.picture.pixels).mean()) <= 0.5 / 255
        notes = prepare(tmp_path / name, "jpeg", prior=CheapPrior()).notes
        assert "a JPEG of quality 30, 4:2:0" in notes[-1]
    assert "quality 75" in degrade(truth(), "jpeg").notes[0]
    with pytest.raises(UsageError, match="lives in pictures"):
        degrade_file(truth(), tmp_path / "blocky.npz", "jpeg", quality=30)
    for wrong in (0, 101, 7.5, "30", True):
        with pytest.raises(UsageError, match="whole number from 1 to 100"):
            degrade(truth(), "jpeg", quality=wrong)


def test_grey_pictures() -> None:
    file = restore_input(photograph(3, side=64, grey=True), 30, 0)
    restored = restore(file, "jpeg", prior=CheapPrior(), check=False)
    assert restored.array.shape == (64, 64, 1) and "grey" in restored.notes[0]


def test_salt_and_pepper_behind_strong_compression_becomes_medians_with_their_error() -> None:
    clean = np.asarray(photograph(6).crop((0, 0, 160, 160)))
    for quality, task in ((40, "denoise"), (90, "inpaint")):
        file = jpeg(Image.fromarray(peppered(clean, 0.05, 0)[0]), quality)
        posed = pose_picture(from_pil(file), "inpaint", None, {"mask": "auto"})
        assert posed.problem.operator.task == task
        if task == "denoise":
            error = float(np.sqrt(((posed.given.pixels - clean / 255) ** 2).mean()))
            assert posed.sigma == pytest.approx(error, rel=0.2)
