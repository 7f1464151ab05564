"""The door of Problem: what it refuses, what it converts, and what of a measurement never enters."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import LeaderError, Problem
from leader.noise import SeededNoise
from leader.operators import (
    AveragePoolSR,
    BicubicSR,
    Blur,
    Composition,
    Denoising,
    FromFunctions,
    Inpainting,
    LinearOperator,
    SeparableBlur,
    paper_gaussian_taps,
    random_mask,
)
from tests.methods.contexts import operators

SHAPE = (3, 16, 16)
MASK = random_mask(16, 16, 0.5, seed=3)


def picture(count: int = 2, seed: int = 0) -> Tensor:
    return torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(seed))


def smooth(count: int = 1) -> Tensor:
    """Large bright and dark areas, so that no operator averages their range away."""
    rows = torch.linspace(0, 1, 16)[:, None].expand(16, 16)
    return rows.expand(count, *SHAPE).clone()


def kinds() -> dict[str, LinearOperator]:
    made = operators(SHAPE)
    lobes = torch.tensor([[0.0, -0.2, 0.0], [-0.2, 1.8, -0.2], [0.0, -0.2, 0.0]])
    made["sharpening blur"] = Blur(SHAPE, lobes)
    made["composition"] = Composition(AveragePoolSR(SHAPE, 4), Blur(SHAPE, lobes))
    made["tripled"] = FromFunctions(SHAPE, lambda x: 3 * x, lambda y: 3 * y)
    made["lost taps"] = SeparableBlur(SHAPE, [1.0] + [0.0] * 16)  # looks 8 pixels away: some rows see nothing
    return made


# What is refused


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.rand(3, 16, 16), r"lacks the leading batch axis; use y\[None\]"),
        (torch.rand(1, 3, 16, 15), r"yields measurements \[3, 16, 16\]; found \[3, 16, 15\]"),
        (torch.rand(1, 1, 16, 16), r"found \[1, 16, 16\]"),
        (torch.tensor(0.5), r"found \[\]"),
        (torch.zeros(0, *SHAPE), "empty"),
        (torch.zeros(1, *SHAPE, dtype=torch.uint8), "found uint8: divide bytes by 255"),
        (torch.zeros(1, *SHAPE, dtype=torch.int64), "found int64"),
        (torch.zeros(1, *SHAPE, dtype=torch.bool), "found bool"),
        (torch.zeros(1, *SHAPE, dtype=torch.float16), "found float16"),
        (torch.zeros(1, *SHAPE, dtype=torch.complex64), "found complex64"),
        (torch.zeros(1, *SHAPE, device="meta"), "'meta' and has no values"),
        (torch.zeros(1, *SHAPE).to_sparse(), "sparse"),
        (np.zeros((1, *SHAPE), np.float32), "found ndarray"),
    ],
)
@pytest.mark.parametrize("make", [Problem, Problem.internal])
def test_other_kinds_of_measurements_are_refused(make: Callable[..., Problem], y: Tensor, message: str) -> None:
    with pytest.raises(LeaderError, match=message):
        make(y, Denoising(SHAPE))


MASKS = torch.stack([random_mask(16, 16, 0.5, seed) for seed in range(3)])[:, None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda sigma=sigma: Problem(picture(), Denoising(SHAPE), sigma), "noise level")
            for sigma in (-0.1, math.nan, math.inf, "0.1", torch.zeros(3), torch.zeros(2, 2), [0.1, 0.1, 0.1])
        ),
        *(
            (lambda second=second: Problem(picture(), Denoising(SHAPE), torch.tensor([0.1, second])), "one number or one per")
            for second in (math.nan, math.inf, -0.1)
        ),
        (lambda: Problem(picture(), Denoising(SHAPE), torch.tensor([0.1, 0.0])), "cannot share a batch"),
        # its own range would excuse all bytes up to 151
        (lambda: Problem(100 * picture(), Denoising(SHAPE), 25.0), r"noise level of 25 hides any image.*divide by 255"),
        (lambda: Problem(0.05 * picture(), FromFunctions(SHAPE, lambda x: 0.1 * x), 0.51), "hides any image"),  # A(1) = 0.1
        (lambda: Problem(picture(), "denoise"), "found str"),  # type: ignore[arg-type]
        # one image would otherwise be repeated three times without a word
        *(
            (lambda n=n: Problem(picture(n), Inpainting(SHAPE, MASKS)), f"for 3 images; the measurement holds {n}")
            for n in (1, 2)
        ),
        (lambda: Problem(picture(3), Blur(SHAPE, torch.ones(2, 1, 3, 3))), "for 2 images; the measurement holds 3"),
        (lambda: FromFunctions(SHAPE, lambda x: x[..., :8], lambda y: y), "AT returned shape"),
        (lambda: Problem.simulate(255 * picture(), Denoising(SHAPE), 0.05), "divide by 255"),
        (lambda: Problem.simulate(2 * picture() - 1, Denoising(SHAPE), 0.05), r"use \(x \+ 1\) / 2"),
        (lambda: Problem.simulate(picture()[0], Denoising(SHAPE), 0.05), "shape"),
        (lambda: Problem.simulate(picture()[:, :1], Denoising(SHAPE), 0.05), "was built for images"),
        (lambda: Problem.simulate(picture().byte(), Denoising(SHAPE), 0.05), "found uint8"),
    ],
)
def test_wrong_noise_operators_and_images_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(LeaderError, match=message):
        make()


def test_one_value_is_looked_at_and_what_fits_is_taken() -> None:
    for value in (math.nan, math.inf):
        y = picture()
        y[1, 2, 3, 4] = value
        with pytest.raises(LeaderError, match="NaN"):
            Problem(y, Denoising(SHAPE), 0.1)
    assert Problem(picture(3), Inpainting(SHAPE, MASKS)).batch == 3
    for sigma in (1e-12, 1e-3):
        assert not Problem(picture(), Denoising(SHAPE), sigma).noise_free, "little noise is not none"
    assert Problem(picture(), Denoising(SHAPE), 0.0).noise_free
    assert Problem(0.05 * picture(), FromFunctions(SHAPE, lambda x: 0.1 * x), 0.49).batch == 2, "not yet too loud"


# Ranges


@pytest.mark.parametrize("name", kinds())
def test_bytes_are_refused_with_a_hint_and_real_data_never(name: str) -> None:
    operator = kinds()[name]
    for sigma in (0.0, 0.05):
        with pytest.raises(LeaderError, match="divide by 255"):
            Problem(operator.A(255 * smooth()), operator, sigma)
    extreme = (picture() > 0.5).float()
    for x in (picture(), extreme, torch.zeros_like(extreme), torch.ones_like(extreme)):
        for sigma in (0.0, 0.01, 0.5):
            Problem.simulate(x, operator, sigma)


@pytest.mark.parametrize(
    "name", ["denoise", "inpaint", "sr-bicubic", "sr-average", "blur", "separable", "colourise", "tripled"]
)
def test_internal_images_are_refused_with_a_hint(name: str) -> None:
    operator = kinds()[name]
    with pytest.raises(LeaderError, match=r"\[-1, 1\], so use Problem.internal"):
        Problem(operator.A(2 * smooth() - 1), operator, 0.02)


@pytest.mark.parametrize("sign", [-1, 1])
def test_six_sigma_is_the_limit(sign: int) -> None:
    sigma, y = 0.05, torch.full((2, *SHAPE), 0.5)
    y[1, 0, 3, 3] = 0.5 + sign * (0.5 + 6 * sigma)
    Problem(y, Denoising(SHAPE), sigma)
    y[1, 0, 3, 3] += sign * 0.02
    with pytest.raises(LeaderError, match=r"noise of 0\.05 does not explain"):
        Problem(y, Denoising(SHAPE), sigma)
    Problem(y, Denoising(SHAPE), torch.tensor([sigma, 2 * sigma]))  # every image has the limits of its own noise
    with pytest.raises(LeaderError, match="does not explain"):
        Problem(y, Denoising(SHAPE), torch.tensor([2 * sigma, sigma]))


# Units


def test_ranges_are_converted_once() -> None:
    operator = SeparableBlur(SHAPE, paper_gaussian_taps())  # zero boundary: A(1) is not 1
    x = picture()
    problem = Problem(operator.A(x), operator, 0.05)
    assert torch.allclose(problem.y, operator.A(2 * x - 1), atol=1e-6)
    assert problem.sigma.tolist() == pytest.approx([0.1, 0.1])
    changed = problem.to_dtype(torch.float64)
    assert changed.y.dtype == changed.sigma.dtype == torch.float64 == problem.sigma.dtype


def test_replace_exchanges_a_field_and_converts_nothing() -> None:
    problem = Problem(picture(), Denoising(SHAPE), 0.05)
    other = dataclasses.replace(problem, sigma=torch.tensor(0.3, dtype=torch.float64))
    assert torch.equal(other.y, problem.y) and other.sigma.tolist() == [0.3, 0.3]
    assert torch.equal(dataclasses.replace(other, y=-problem.y).y, -problem.y)
    with pytest.raises(LeaderError, match="units"):
        dataclasses.replace(problem, units="bytes")


# Simulation


def test_simulated_noise_is_that_of_the_seed_and_the_image_at_its_own_level() -> None:
    operator, x, sigmas = BicubicSR(SHAPE, 2), picture(), torch.tensor([0.05, 0.2], dtype=torch.float64)
    noise = SeededNoise(3)([4, 7], [0, 0], "measurement", (3, 8, 8))
    expected = Problem(operator.A(x) + sigmas.reshape(2, 1, 1, 1).float() * noise, operator, sigmas)
    found = Problem.simulate(x, operator, sigmas, seed=3, ids=[4, 7])
    assert torch.equal(found.y, expected.y) and found.sigma.tolist() == pytest.approx([0.1, 0.4])
    assert torch.equal(Problem.simulate(x, operator, 0.05).y, Problem.simulate(x, operator, 0.05, seed=0, ids=[0, 1]).y)


# What A cannot reach


@pytest.mark.parametrize("make", [Problem, Problem.internal])
def test_masked_entries_are_zero(make: Callable[..., Problem]) -> None:
    masks = torch.stack([MASK, 1 - MASK])[:, None]
    cases: list[LinearOperator] = [Inpainting(SHAPE, MASK), Inpainting(SHAPE, masks), operators(SHAPE)["functions"]]
    for operator in cases:
        y = picture()
        seen = operator.A(torch.ones(2, *SHAPE)) > 0
        problem = make(y, operator, 0.1)
        expected = 2 * y - 1 if make is Problem else y
        assert torch.equal(problem.y, torch.where(seen, expected, 0))


# Operators that others wrote


class Twice(LinearOperator):
    """A x = 2 x; how often it was asked, and an adjoint that may be wrong."""

    def __init__(self, factor: float) -> None:
        super().__init__(SHAPE)
        self.factor, self.asked = factor, 0

    def A(self, x: Tensor) -> Tensor:
        return 2 * x

    def AT(self, y: Tensor) -> Tensor:
        self.asked += 1
        return self.factor * y


def shifted(x: Tensor) -> Tensor:
    return torch.roll(x, 3, -1)


def test_wrong_adjoints_are_refused_alike() -> None:
    wrong: list[Callable[[], object]] = [
        lambda: FromFunctions(SHAPE, lambda x: 2 * x, lambda y: y),
        lambda: FromFunctions(SHAPE, shifted, shifted),
        lambda: FromFunctions(SHAPE, lambda x: x + 1, lambda y: y),
        # <x, x> is <x, AT x> here, whatever x: the error is antisymmetric
        lambda: FromFunctions(SHAPE, lambda x: x, lambda y: y + 0.05 * (torch.roll(y, 1, -1) - torch.roll(y, -1, -1))),
        lambda: Problem(picture(), Twice(1.0)),
        lambda: Problem(picture(), Twice(1.99 * 1.05)),
        lambda: Problem(picture(), Composition(Denoising(SHAPE), Twice(1.0))),
        lambda: Problem.internal(picture(), Twice(-2.0)),
    ]
    for make in wrong:
        with pytest.raises(LeaderError, match="AT is not the adjoint of A"):
            make()


def test_an_operator_is_tried_once() -> None:
    operator = Twice(2.0)
    Problem(picture(), operator)
    asked = operator.asked
    Problem.internal(picture(), operator)
    assert asked > 0 and operator.asked <= asked


def test_an_operator_of_which_the_norm_alone_is_known_has_its_limit_there() -> None:
    """|y - A(1/2)| <= 1.25 norm sqrt(pixels) / 2, sqrt(entries) + 6 of the noise, and rounding."""
    operator = FromFunctions((1, 4, 9), lambda x: 0.5 * x, lambda y: 0.5 * y)
    limit = 1.25 * 0.5 * 6 / 2 + (6 + 6) * 0.1 + 6 / 255
    for share in (0.99, 1.01):  # a power iteration finds this norm to far less
        y = torch.full((1, 1, 4, 9), 0.25 + share * limit / 6)
        if share < 1:
            Problem(y, operator, 0.1)
        else:
            with pytest.raises(LeaderError, match="does not explain the rest"):
                Problem(y, operator, 0.1)
