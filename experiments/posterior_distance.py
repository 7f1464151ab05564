"""How far each method is from the exact posterior, where that is known: prints the tables of
docs/posterior-distance.md.

Independent pixels N(0, 0.4^2), half of them observed with noise 0.1 ([-1, 1] units). Pixels are then
independent draws of one law, measured or not, and a method that is affine in noise and data is described by
two numbers for each: the spread it leaves, over the exact one, and how strongly it answers to y, over the
exact posterior mean. No clamps; the default settings.

The last tables are of correlated pixels and four cameras, each method by itself and with the data step in the metric of Sigma
(`ucdc`). There mean and spread are compared over a whole picture, whose pixels stand for draws.

    python experiments/posterior_distance.py
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from leader import methods, operators
from leader.methods import Method
from leader.plugins import UCDC, Plugin
from leader.priors.gaussian import GaussianPrior, stationary, white
from leader.problem import Problem
from leader.sampler import Sampler
from leader.uncertainty.covariance import image_covariance

PRIOR_STD = 0.4
SIGMA = 0.1
SIDE = 256
METHODS: tuple[tuple[str, Method], ...] = (
    ("DDNM+", methods.DDNM()),
    ("DDRM", methods.DDRM()),
    ("DDPG", methods.DDPG()),
    ("IDPG", methods.IDPG()),
    ("DiffPIR", methods.DiffPIR(clamp=False)),
    ("ProjDiff", methods.ProjDiff()),
    ("ProjDiff, simple", methods.ProjDiff(form="simple")),
    ("PiGDM", methods.PiGDM()),
    ("PiGDM, score of the true variance", methods.PiGDM(variance=PRIOR_STD**2, weights="score")),
    ("DAPS", methods.DAPS()),
    ("RED-diff", methods.REDDiff()),
    ("RePaint", methods.RePaint(clamp=False)),
    ("MCG", methods.MCG(clamp=False)),
    ("DCDP", methods.DCDP()),
)

COMPONENTWISE = ("ddnm", "ddrm", "diffpir", "projdiff")
"""A component of singular value s and noise sigma is to these what a pixel and noise sigma / s is."""


def exact(sigma: float = SIGMA) -> tuple[float, float]:
    """Posterior std of a measured pixel, and its posterior mean per unit of y."""
    precision = 1 / PRIOR_STD**2 + 1 / sigma**2
    return math.sqrt(1 / precision), 1 / sigma**2 / precision


def output(
    method: Method, steps: int, level: float, side: int = SIDE, sigma: float = SIGMA, grid: str | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measured and unmeasured pixels of the answer to y = `level` everywhere it is measured; the same noise
    each time.
    """
    shape = (1, side, side)
    mask = (torch.arange(side)[:, None] + torch.arange(side)) % 2 == 0
    prior = GaussianPrior(white(shape, PRIOR_STD))
    y = level * mask.double().expand(1, *shape)
    sampler = Sampler(prior, method, (), steps, grid=grid, estimator=None, use_presets=False)
    answer = sampler.run(Problem.internal(y, operators.Inpainting(shape, mask.double()), sigma), seed=0).images[0, 0]
    return answer[mask], answer[~mask]


def spreads(method: Method, steps: int, side: int = SIDE) -> tuple[float, float]:
    """Std over exact std, measured and unmeasured."""
    std, _ = exact()
    seen, unseen = output(method, steps, 0.0, side)
    return float(seen.std()) / std, float(unseen.std()) / PRIOR_STD


def response(method: Method, steps: int) -> float:
    """d(answer)/dy over d(posterior mean)/dy, exact for affine methods: the noise cancels."""
    _, gain = exact()
    return float((output(method, steps, 1.0)[0] - output(method, steps, 0.0)[0]).mean()) / gain


def badly_measured(method: Method, sigma: float, grid: str | None, side: int = 128) -> tuple[float, float]:
    """Answer to y over the exact one, and root mean square error over the posterior's std, T = 100, at noise `sigma`."""
    std, gain = exact(sigma)
    still, moved = (output(method, 100, level, side, sigma, grid)[0] for level in (0.0, 1.0))
    answer = float((moved - still).mean())
    error = (1 - answer) ** 2 * PRIOR_STD**2 + answer**2 * sigma**2 + float(still.var())
    return answer / gain, math.sqrt(error) / std


SHAPE = (1, 64, 128)
CAMERAS: dict[str, operators.LinearOperator] = {
    "half of the pixels": operators.Inpainting(SHAPE, operators.random_mask(64, 128, 0.5, seed=1)),
    "SR x4": operators.BicubicSR(SHAPE, 4),
    "Gaussian blur": operators.Blur(SHAPE, operators.gaussian_kernel(1.5)),
    "CS 25 %": operators.WalshHadamard(SHAPE, 0.25, seed=1),
}
EXACT = UCDC(iterations=200, visible=2e-3, floor=1e-3)
"""Solves that leave 0.002 standard deviations."""
TAKING = ("ddnm", "ddrm", "projdiff", "repaint", "mcg")
"""They take the measured components from noisy data themselves."""
WITH_DATA_STEP: tuple[tuple[str, Method], ...] = (
    *(entry for entry in METHODS if "," not in entry[0]),
    ("PIRP", methods.PIRP()),
    ("SITCOM, T = 20", methods.SITCOM(clamp=False)),
)


@cache
def correlated_prior() -> GaussianPrior:
    """Pixels that hang together as in photographs."""
    return GaussianPrior(stationary(SHAPE, PRIOR_STD))


@dataclass(frozen=True)
class Truth:
    """A measurement, the mean of its posterior [1, C, H, W] and the posterior's root mean square deviation."""

    problem: Problem
    mean: Tensor
    std: float


@cache
def truth(camera: str) -> Truth:
    generator, operator = torch.Generator().manual_seed(0), CAMERAS[camera]
    y = operator.A(correlated_prior().sample(1, generator))
    y = y + SIGMA * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    found = image_covariance(correlated_prior(), torch.zeros(1, *SHAPE, dtype=torch.float64))
    assert found is not None
    before, covariance = found
    posterior = covariance.given(operator, SIGMA)
    probes = torch.randint(0, 2, (8, *SHAPE), generator=generator).double() * 2 - 1
    problem = Problem.internal(y, operator, SIGMA)
    return Truth(problem, posterior.mean(problem.y, before), float(posterior.diagonal(probes).mean().sqrt()))


def mean_and_spread(method: Method, plugins: tuple[Plugin, ...], camera: str, steps: int) -> tuple[float, float]:
    """How far the mean of the answers lies from the posterior's, and their spread: root mean squares over the exact spread.

    The mean of a method that is affine in its noise is its answer to no noise at all; PIRP and SITCOM are nearly so.
    """
    exact = truth(camera)
    sampler = Sampler(correlated_prior(), method, plugins, steps, use_presets=False)
    mean = sampler.run(exact.problem, noise=no_noise).images
    answer = sampler.run(exact.problem, seed=1).images
    error, spread = (float(gap.square().mean().sqrt()) / exact.std for gap in (mean - exact.mean, answer - mean))
    return error, spread


def no_noise(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
    return torch.zeros(len(ids), *shape)


def cells(method: Method, plugins: tuple[Plugin, ...], steps: int) -> str:
    found = (mean_and_spread(method, plugins, camera, steps) for camera in CAMERAS)
    return " | ".join(f"{mean:.2f} / {spread:.2f}" for mean, spread in found)


def print_metrics() -> None:
    """Every method with a data step, by itself and in the metric of Sigma, and the host `posterior`."""
    head = " | ".join(CAMERAS)
    print(f"\n| error of the mean / spread, T = 100 | {head} |")
    print("| --- |" + " --- |" * len(CAMERAS))
    for name, method in WITH_DATA_STEP:
        steps = 20 if isinstance(method, methods.SITCOM) else 100  # as published: many calls a step
        print(f"| {name} | {cells(method, (), steps)} |", flush=True)
        print(f"| {name}, ucdc | {cells(method, (UCDC(),), steps)} |", flush=True)
        if method.name in TAKING:
            print(f"| {name}, ucdc, only unmeasured | {cells(method, (UCDC(only_unmeasured=True),), steps)} |", flush=True)
    print(f"\n| posterior | {head} |")
    print("| --- |" + " --- |" * len(CAMERAS))
    for steps, eta, plugin in (
        (20, 1.0, UCDC()),
        (100, 1.0, UCDC()),
        (400, 1.0, UCDC()),
        (100, 0.0, UCDC()),
        (100, 1.0, EXACT),
    ):
        name = f"eta {eta:g}, T = {steps}" + (", exact solves" if plugin is EXACT else "")
        print(f"| {name} | {cells(methods.Posterior(eta=eta), (plugin,), steps)} |", flush=True)


def main() -> None:
    error = 1 / math.sqrt(SIDE * SIDE)  # of a std from n normal draws: 1 / sqrt(2 n), n = side^2 / 2
    print(f"Standard error of the std ratios: {100 * error:.1f} %.\n")
    print("| method | std, measured | std, unmeasured | answer to y | T = 20: std, measured | std, unmeasured |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, method in METHODS:
        seen, unseen = spreads(method, 100)
        few = spreads(method, 20)
        row = f"{seen:.3f} | {unseen:.2f} | {response(method, 100):.2f} | {few[0]:.3f} | {few[1]:.2f}"
        print(f"| {name} | {row} |", flush=True)
    noises = (0.1, 0.4, 1.0, 3.0, 10.0)
    print("\n| answer to y / error, noise | " + " | ".join(f"{sigma:g}" for sigma in noises) + " |")
    print("| --- |" + " --- |" * len(noises))
    for name, method, grid in (
        *((name, method, None) for name, method in METHODS if method.name in COMPONENTWISE),
        ("DDNM+, quadratic grid", methods.DDNM(), "quadratic"),
    ):
        numbers = (badly_measured(method, sigma, grid) for sigma in noises)
        print(f"| {name} | " + " | ".join(f"{answer:.2f} / {error:.2f}" for answer, error in numbers) + " |", flush=True)
    print("\n| DDIM, eta 0, no data | T = 20 | T = 100 | T = 1000 |")
    print("| --- | --- | --- | --- |")
    print("| std over prior std | " + " | ".join(f"{spreads(methods.DDIM(), T)[1]:.3f}" for T in (20, 100, 1000)) + " |")
    print("\n| DPS, scale 0.3, T = 1000 | 1k pixels | 16k pixels | 49k pixels |")
    print("| --- | --- | --- | --- |")
    rows = [spreads(methods.DPS(scale=0.3, clamp=False, variance="small"), 1000, side) for side in (32, 128, 222)]
    print("| std, measured | " + " | ".join(f"{row[0]:.2f}" for row in rows) + " |")
    print("| std, unmeasured | " + " | ".join(f"{row[1]:.2f}" for row in rows) + " |")
    print_metrics()


if __name__ == "__main__":
    main()
