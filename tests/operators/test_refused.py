"""What operators, kernels, masks and tasks refuse, each in one sentence that names what was found."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from leader.errors import LeaderError
from leader.operators import (
    AveragePoolSR,
    Blur,
    ColouredInpainting,
    Colourisation,
    Composition,
    Denoising,
    FromFunctions,
    Inpainting,
    Jpeg,
    ReflectedBlur,
    ReleasedBlur,
    SeparableBlur,
    SeparableOperator,
    WalshHadamard,
    WeightedPixels,
    WhitenedBlur,
    box_mask,
    build_task,
    disk_kernel,
    gaussian_kernel,
    line_kernel,
    load_kernel,
    motion_kernel,
    random_mask,
)
from leader.operators.pillow_resize import MixedSR

SHAPE = (3, 5, 7)
MASK = (torch.arange(35).reshape(5, 7) % 6 > 1).float()
LUMA = torch.full((8, 8), 4.0)
FLAT = torch.ones(1, 5, 7)


def spoiled(table: torch.Tensor, value: float) -> torch.Tensor:
    changed = table.clone()
    changed[..., 3, 5] = value
    return changed


ONE = torch.ones(1, 1)
REFUSED: list[tuple[str, Callable[[Any], object], tuple[Any, ...]]] = [
    ("each positive", Denoising, ((3, 0, 7), (3, 7))),
    (r"built for images \[3, 5, 7\]; found \[3, 7, 5\]", Denoising(SHAPE).A, (torch.zeros(1, 3, 7, 5),)),
    (r"built for images \[3, 5, 7\]; found \[3, 7, 5\]", Denoising(SHAPE), (torch.zeros(1, 3, 7, 5),)),
    ("yields measurements", Denoising(SHAPE).check_measurement, (torch.zeros(1, 3, 7, 5),)),
    (r"The mask has shape \[4, 4\]; expected \[5, 7\]", lambda mask: Inpainting(SHAPE, mask), (torch.ones(4, 4),)),
    ("only 0", lambda value: Inpainting(SHAPE, torch.full((5, 7), value)), (0.5, math.nan)),
    (
        "no pixel observed",
        lambda mask: Inpainting(SHAPE, mask),
        (torch.zeros(5, 7), torch.stack([torch.ones(1, 5, 7), torch.zeros(1, 5, 7)])),
    ),
    ("one mask for all images; found 2", lambda mask: ColouredInpainting(SHAPE, mask, FLAT), (MASK.expand(2, 1, 5, 7),)),
    (
        "does not lie inside",
        lambda place: box_mask(10, 12, *place),
        ((8, 3, 4, 5), (2, 9, 4, 5), (-1, 3, 4, 5), (2, -1, 4, 5), (2, 3, 0, 5), (2, 3, 4, 0)),
    ),
    ("missing fraction", lambda missing: random_mask(4, 5, missing), (1.0, -0.1)),
    ("3 channels", Colourisation, ((1, 4, 5),)),
    ("A blur kernel has shape", lambda kernel: Blur(SHAPE, kernel), (torch.ones(2, 3, 5, 5), torch.ones(0, 1, 5, 5))),
    ("sums to 0", load_kernel, (np.zeros((3, 3)),)),
    ("sums to -3", load_kernel, (np.array([[-1.0, -2.0]]),)),
    ("positive sum", load_kernel, (np.array([[1.0, -1.0]]),)),
    ("NaN or infinite", load_kernel, (np.array([[1.0, np.nan]]),)),
    ("table of numbers", load_kernel, (np.ones(3), np.ones((0, 3)))),
    *(("positive", make, (0.0, -1.0, math.nan, math.inf)) for make in (gaussian_kernel, disk_kernel, line_kernel)),
    ("at least one tap", lambda size: gaussian_kernel(1.0, size), (0,)),
    (">= 0; found -1", motion_kernel, (-1,)),
    ("size >= 3 and intensity in", lambda given: motion_kernel(1, *given), ((2, 0.5), (9, 1.5), (9, -0.1))),
    ("finite numbers, not all zero", lambda taps: SeparableBlur((1, 8, 8), taps), ([], [0.0, 0.0], [math.nan, 1.0])),
    ("did you mean 'symmetric'", lambda boundary: SeparableBlur((1, 8, 8), [1.0], boundary=boundary), ("symetric",)),
    ("finite, non-zero matrices", lambda table: SeparableOperator((1, 2, 2), table, torch.eye(2)), (torch.zeros(2, 2),)),
    ("act on images of 3 x 2", lambda shape: SeparableOperator(shape, torch.eye(3), torch.eye(2)), ((1, 2, 3),)),
    ("larger image", lambda kernel: ReflectedBlur((1, 8, 8), kernel), (torch.ones(17, 3),)),
    ("at least two, found 1", lambda taps: ReleasedBlur((1, 8, 8), taps), ([1.0],)),
    ("a noise level above 0", lambda level: WhitenedBlur(SHAPE, ONE, FLAT, reference=level), (0.0, -0.1, math.inf, math.nan)),
    ("takes one kernel", lambda kernel: WhitenedBlur(SHAPE, kernel, FLAT), (torch.ones(1, 1, 1, 1),)),
    ("must have shape", lambda shape: WhitenedBlur(SHAPE, ONE, torch.ones(shape)), ((1, 7, 5), (2, 5, 7), (5, 7))),
    ("finite and above 0", lambda value: WhitenedBlur(SHAPE, ONE, spoiled(FLAT, value)), (0.0, math.nan)),
    ("opposite frequencies", lambda power: WhitenedBlur(SHAPE, ONE, power), (torch.arange(1.0, 36.0).reshape(1, 5, 7),)),
    ("the same shape", lambda noise: WeightedPixels(SHAPE, noise), (torch.ones(1, 5, 7),)),
    ("greater than 0", lambda value: WeightedPixels(SHAPE, spoiled(torch.ones(SHAPE), value)), (0.0, math.nan)),
    (
        "measured coefficients must be",
        lambda wrong: WalshHadamard((1, 8, 8), indices=torch.tensor(wrong)),
        ([0, 0], [64], [-1], [0.5]),
    ),
    (
        "shares that sum to 100",
        lambda text: MixedSR((1, 8, 8), 2, None, text),
        (
            *("box", "box:100+", "box:40+lanczos:50", "box:40+box:60", "bicubic:40+box:60"),
            *("box:-10+lanczos:110", "box:4.5+lanczos:95.5"),
        ),
    ),
    (
        r"factor must be a number from 1|cannot become one of",
        lambda options: build_task("sr", (3, 8, 16), down="lanczos", **options),
        ({"factor": 0}, {"factor": 9}, {"factor": math.nan}, {"small": (9, 4)}, {"small": 4}),
    ),
    ("powers of two; found", WalshHadamard, ((3, 8, 12), (3, 12, 8), (3, 0, 8), (3, 8, 0))),
    (r"must lie in \(0, 1\]", lambda ratio: WalshHadamard((3, 8, 8), ratio=ratio), (0, 1.1)),
    ("did you mean 'random'", lambda order: WalshHadamard((3, 8, 8), order=order), ("randm",)),
    ("whole units of 16 x 16 pixels; found 24 x 16", lambda shape: Jpeg(shape, LUMA, LUMA, (2, 2)), ((3, 16, 24),)),
    ("whole units of 16 x 8 pixels; found 8 x 16", lambda shape: Jpeg(shape, LUMA, LUMA, (1, 2)), ((3, 16, 8),)),
    ("a table for grey images and two for colour", lambda given: Jpeg(*given), (((3, 8, 8), LUMA), ((1, 8, 8), LUMA, LUMA))),
    ("8 x 8 positive steps", lambda value: Jpeg((1, 16, 16), spoiled(LUMA, value)), (0.0, -1.0, math.inf)),
    ("64 flags for measured coefficients", lambda flags: Jpeg((1, 8, 8), LUMA, measured=flags), (torch.ones(3) > 0,)),
    ("64 doubts", lambda doubt: Jpeg((1, 8, 8), LUMA, doubt=doubt), (-torch.ones(64), torch.ones(3))),
    ("level of JPEG must be positive", lambda level: Jpeg((1, 8, 8), LUMA, level=level), (0.0, math.inf)),
    (
        r"yields \[1, 3, 3\]; the outer one takes \[1, 6, 6\]",
        lambda operator: Composition(operator, operator),
        (AveragePoolSR((1, 6, 6), 2),),
    ),
    ("Operators to add", lambda other: Denoising(SHAPE) + other, (Colourisation((3, 8, 8)),)),
    (
        "tensor with the same batch axis",
        lambda function: FromFunctions(SHAPE, function, lambda y: y),
        (lambda x: None, lambda x: x.numpy(), lambda x: x[0], lambda x: x.sum()),
    ),
    ("not the adjoint", lambda function: FromFunctions(SHAPE, function), (lambda x: x**3 + 1,)),
    *(
        (message, lambda given: build_task(*given[:2], **given[2]), ((name, (3, 40, 32), options),))
        for message, name, options in (
            ("did you mean 'inpaint'", "inpant", {}),
            ("did you mean 'factor'", "sr", {"facto": 2}),
            ("has no options; found 'factor'", "denoise", {"factor": 2}),
            ("did you mean 'bicubic'", "sr", {"down": "bicubc"}),
            ("means down = average; found bicubic", "sr-average", {"down": "bicubic"}),
            ("needs a mask", "inpaint", {}),
            ("one mask", "inpaint", {"box": (2, 3, 10, 20), "keep": 0.5}),
            *(("hole", "inpaint", {"box": box}) for box in ([2, 3, 10], [2, 3, 39, 20], [2, 13, 10, 20], [2, 3, 0, 20])),
            *(("hole", "inpaint", {"box": box}) for box in ([2, 3, 1.5, 20], [2, -1, 10, 20], [2, 3, 4, 5, 6])),
            *(("share of known pixels", "inpaint", {"keep": share}) for share in (0.0, 1.0, -0.5)),
            ("needs the kernel", "deblur", {}),
            ("give std too", "deblur-gaussian", {"size": 5}),
            ("five taps; leave out", "deblur-gaussian", {"std": 1.0, "form": "published"}),
            ("five taps have a zero boundary", "deblur-gaussian", {"boundary": "reflected"}),
            ("Unknown form 'origina'", "colourise", {"form": "origina"}),
            ("did you mean 'circular'", "deblur", {"kernel": torch.ones(3, 3), "boundary": "circlar"}),
            ("needs the quantisation table", "jpeg", {}),
            ("sampling of chroma", "jpeg", {"luma": LUMA, "chroma": LUMA, "sampling": "4:2:1"}),
        )
    ),
]


@pytest.mark.parametrize(("message", "make", "arguments"), REFUSED, ids=[message for message, _, _ in REFUSED])
def test_it_is_refused(message: str, make: Callable[[Any], object], arguments: tuple[Any, ...]) -> None:
    for argument in arguments:
        with pytest.raises(LeaderError, match=message) as caught:
            make(argument)
        assert str(caught.value).endswith((".", "?")) and "\n" not in str(caught.value)
