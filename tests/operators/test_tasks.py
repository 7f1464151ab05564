"""The registry of tasks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader.errors import LeaderError, UsageError
from leader.operators import (
    TASKS,
    AveragePoolSR,
    BicubicSR,
    Blur,
    SeparableBlur,
    build_task,
    gaussian_kernel,
    motion_kernel,
    random_mask,
)
from leader.operators.tasks import Option

SHAPE = (3, 16, 16)
NEEDED: dict[str, dict[str, Option]] = {
    "deblur": {"kernel": gaussian_kernel(1.0)},
    "inpaint": {"mask": random_mask(16, 16)},
    "jpeg": {"luma": torch.full((8, 8), 4.0), "chroma": torch.full((8, 8), 4.0)},
}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_builds_an_operator_that_works(name: str) -> None:
    operator = build_task(name, SHAPE, **NEEDED.get(name, {}))
    x = torch.rand(1, *SHAPE)
    y = operator.A(x)
    assert operator.pinv(y).shape == x.shape


@pytest.mark.parametrize(
    ("name", "options", "key", "kind"),
    [
        ("sr", {"factor": 2}, "sr-bicubic", BicubicSR),
        ("sr", {"down": "average"}, "sr-average", AveragePoolSR),
        ("deblur-gaussian", {}, "deblur-gaussian", SeparableBlur),
        ("deblur-gaussian", {"std": 1.5}, "deblur-gaussian", Blur),
        ("deblur-motion", {"seed": 2}, "deblur-motion", Blur),
        ("deblur-motion", {"kernel": motion_kernel(1)}, "deblur-motion", Blur),
        ("deblur", {"kernel": gaussian_kernel(1.0)}, "deblur", Blur),
    ],
)
def test_preset_keys(name: str, options: dict[str, Option], key: str, kind: type) -> None:
    operator = build_task(name, SHAPE, **options)
    assert operator.task == key and type(operator) is kind
    assert operator.truncated().task == key


def test_options_that_are_none_are_not_given() -> None:
    assert build_task("sr", SHAPE, factor=None, down=None).measurement_shape == (3, 4, 4)


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'inpaint'"):
        build_task("inpant", SHAPE)
    with pytest.raises(UsageError, match="did you mean 'factor'"):
        build_task("sr", SHAPE, facto=2)
    with pytest.raises(UsageError, match="has no options"):
        build_task("denoise", SHAPE, factor=2)
    with pytest.raises(UsageError, match="did you mean 'bicubic'"):
        build_task("sr", SHAPE, down="bicubc")
    with pytest.raises(LeaderError, match="needs a mask"):
        build_task("inpaint", SHAPE)
    with pytest.raises(LeaderError, match="needs the kernel"):
        build_task("deblur", SHAPE)
    with pytest.raises(UsageError, match="give std too"):
        build_task("deblur-gaussian", SHAPE, size=5)


def test_masks_by_share_and_by_hole() -> None:
    half = build_task("inpaint", (3, 40, 30), keep=0.3, seed=4)
    expected = torch.rand(40, 30, generator=torch.Generator().manual_seed(4)) < 0.3
    x = torch.ones(1, 3, 40, 30)
    assert torch.equal(half.A(x)[0, 1] > 0, expected)
    hole: Any = [2, 3, 10, 20]
    known = build_task("inpaint", (3, 40, 30), box=hole).A(x)[0, 0]
    assert float(known.sum()) == 40 * 30 - 200 and float(known[2:12, 3:23].sum()) == 0
    with pytest.raises(UsageError, match="one mask"):
        build_task("inpaint", (3, 40, 30), box=hole, keep=0.5)
    for wrong in (
        [2, 3, 10],
        [2, 3, 39, 20],
        [2, 11, 10, 20],
        [2, 3, 0, 20],
        [2, 3, 10.5, 20],
        [2, -1, 10, 20],
        [2, 3, 4, 5, 6],
    ):
        with pytest.raises(UsageError, match="hole"):
            build_task("inpaint", (3, 40, 30), box=wrong)  # type: ignore[arg-type]
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(UsageError, match="share"):
            build_task("inpaint", (3, 40, 30), keep=share)


def test_options_of_value_zero_are_options() -> None:
    shape = (1, 16, 16)
    zero, one = (build_task("deblur-motion", shape, seed=seed, size=9) for seed in (0, 1))
    default = build_task("deblur-motion", shape, size=9)
    assert isinstance(zero, Blur) and isinstance(one, Blur) and isinstance(default, Blur)
    assert torch.equal(zero.kernel, default.kernel) and not torch.equal(zero.kernel, one.kernel)
    straight, shaken = (build_task("deblur-motion", shape, seed=20, size=9, intensity=value) for value in (0.0, 0.5))
    assert isinstance(straight, Blur) and isinstance(shaken, Blur)
    assert not torch.equal(straight.kernel, shaken.kernel)


def test_selected_images_keep_the_task() -> None:
    kernels = torch.stack([motion_kernel(seed) for seed in range(2)])[:, None]
    operator = build_task("deblur-motion", SHAPE, kernel=kernels)
    assert operator.select(torch.tensor([1])).task == "deblur-motion"
