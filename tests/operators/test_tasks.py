"""The registry of tasks."""

from typing import Any

import pytest
import torch

from leader.operators import (
    AveragePoolSR,
    BicubicSR,
    Blur,
    Colourisation,
    Denoising,
    Inpainting,
    Jpeg,
    ReflectedBlur,
    ReleasedBlur,
    ReleasedColourisation,
    SeparableBlur,
    WalshHadamard,
    build_task,
    gaussian_kernel,
    motion_kernel,
    random_mask,
)

CASES: list[tuple[str, dict[str, Any], str, type]] = [
    ("sr", {"factor": 2}, "sr-bicubic", BicubicSR),
    ("sr", {"factor": None, "down": None}, "sr-bicubic", BicubicSR),
    ("sr", {"down": "average"}, "sr-average", AveragePoolSR),
    ("sr-average", {}, "sr-average", AveragePoolSR),
    ("deblur-gaussian", {}, "deblur-gaussian", SeparableBlur),
    ("deblur-gaussian", {"std": 1.5}, "deblur-gaussian", Blur),
    ("deblur-gaussian", {"std": 1.0, "size": 9, "boundary": "reflected"}, "deblur-gaussian", ReflectedBlur),
    ("deblur-gaussian", {"form": "published"}, "deblur-gaussian", ReleasedBlur),
    ("deblur-motion", {"seed": 2}, "deblur-motion", Blur),
    ("deblur-motion", {"kernel": motion_kernel(1)}, "deblur-motion", Blur),
    ("deblur-motion", {"seed": 3, "size": 15, "boundary": "reflected"}, "deblur-motion", ReflectedBlur),
    ("deblur", {"kernel": gaussian_kernel(1.0)}, "deblur", Blur),
    ("deblur", {"kernel": motion_kernel(1, 15), "boundary": "reflected"}, "deblur", ReflectedBlur),
    ("inpaint", {"mask": random_mask(16, 24)}, "inpaint", Inpainting),
    ("cs", {}, "cs", WalshHadamard),
    ("colourise", {}, "colourise", Colourisation),
    ("colourise", {"form": "published"}, "colourise", ReleasedColourisation),
    ("denoise", {}, "denoise", Denoising),
    ("jpeg", {"luma": torch.full((8, 8), 4.0), "chroma": torch.full((8, 8), 4.0), "sampling": "4:4:4"}, "jpeg", Jpeg),
]


@pytest.mark.parametrize(("name", "options", "key", "kind"), CASES)
def test_every_task_builds_an_operator_that_works(name: str, options: dict[str, Any], key: str, kind: type) -> None:
    shape = (3, 16, 24) if name != "cs" else (3, 16, 32)
    operator = build_task(name, shape, **options)
    assert operator.task == key and type(operator) is kind
    assert operator.truncated().task == operator.select(torch.tensor([0])).task == key
    x = torch.rand(1, *shape)
    assert operator.pinv(operator.A(x)).shape == x.shape


def test_jpegs_chroma_is_subsampled_unless_told_otherwise() -> None:
    luma = torch.full((8, 8), 4.0)
    assert build_task("jpeg", (3, 16, 16), luma=luma, chroma=luma).measurement_shape == (256 + 64 + 64,)
    assert build_task("jpeg", (3, 16, 16), luma=luma, chroma=luma, sampling="4:4:4").measurement_shape == (3 * 256,)


def test_masks_by_share_and_by_hole() -> None:
    half = build_task("inpaint", (3, 40, 30), keep=0.3, seed=4)
    expected = torch.rand(40, 30, generator=torch.Generator().manual_seed(4)) < 0.3
    x = torch.ones(1, 3, 40, 30)
    assert torch.equal(half.A(x)[0, 1] > 0, expected)
    hole: Any = [2, 3, 10, 20]
    known = build_task("inpaint", (3, 40, 30), box=hole).A(x)[0, 0]
    assert float(known.sum()) == 40 * 30 - 200 and float(known[2:12, 3:23].sum()) == 0


def test_options_of_value_zero_are_options() -> None:
    shape = (1, 16, 16)
    zero, one = (build_task("deblur-motion", shape, seed=seed, size=9) for seed in (0, 1))
    default = build_task("deblur-motion", shape, size=9)
    assert isinstance(zero, Blur) and isinstance(one, Blur) and isinstance(default, Blur)
    assert torch.equal(zero.kernel, default.kernel) and not torch.equal(zero.kernel, one.kernel)
    straight, shaken = (build_task("deblur-motion", shape, seed=20, size=9, intensity=value) for value in (0.0, 0.5))
    assert isinstance(straight, Blur) and isinstance(shaken, Blur)
    assert not torch.equal(straight.kernel, shaken.kernel)
