"""Small problems with exact answers: a prior whose Sigma_t differs from pixel to pixel and from image to image, operators that
do not keep white white, and draws of a generator that is not the package's.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from leader import Prediction, Prior, Problem, Schedule, operators
from leader.censoring import Censored
from leader.operators import LinearOperator
from tests.oracle.dense import Array, Part, World

CROOKED = torch.tensor([[0.1, 0.2, 0.0], [0.3, 0.9, 0.1], [0.0, 0.2, 0.1], [0.2, 0.0, 0.4]], dtype=torch.float64)
IDS = (7, 3)
"""Names of the two images: neither 0, 1 nor in order."""


@cache
def parts(shape: tuple[int, int, int]) -> tuple[Part, Part]:
    """Two correlated Gaussians: quiet on the left and lively on the right (variances beyond 1), and a calmer, darker one."""
    _, height, width = shape
    c, i, j = (axis.ravel() for axis in np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"))
    near = np.exp(-((i[:, None] - i) ** 2 + (j[:, None] - j) ** 2) / 4.5) * np.where(c[:, None] == c, 1.0, 0.6)
    near = 0.9 * near + 0.1 * np.eye(len(c))
    lively = 0.1 + 1.1 * (j / (width - 1)) ** 2 + 0.05 * c
    calm = 0.12 + 0.25 * (i / (height - 1))
    return (
        Part(0.6, 0.3 * np.cos(i + c), lively[:, None] * near * lively),
        Part(0.4, -0.4 + 0.1 * np.sin(j - c), calm[:, None] * near * calm),
    )


class DensePrior(Prior):
    """A mixture of Gaussians with full covariances, differentiable, in the precision of what it is asked."""

    name = "dense"
    source = "exact"

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__(Schedule.linear())
        self.parts = [(np.log(p.weight), torch.from_numpy(p.mean), torch.from_numpy(p.cov)) for p in parts(shape)]
        self._inverses: dict[int, list[tuple[Tensor, float]]] = {}

    def _at(self, t: int) -> list[tuple[Tensor, float]]:
        """Per component the inverse of Cov[x_t] and its log determinant."""
        if t not in self._inverses:
            a = float(self.schedule.abar(t))
            totals = [a * cov + (1 - a) * torch.eye(len(cov), dtype=torch.float64) for _, _, cov in self.parts]
            self._inverses[t] = [(torch.linalg.inv(total), float(torch.logdet(total))) for total in totals]
        return self._inverses[t]

    def _one(self, x: Tensor, t: int) -> tuple[Tensor, Tensor]:
        a = float(self.schedule.abar(t))
        logs, means, spreads = [], [], []
        for (weight, mean, cov), (inverse, volume) in zip(self.parts, self._at(t)):
            gap = x - a**0.5 * mean
            means.append(mean + a**0.5 * cov @ (inverse @ gap))
            spreads.append((cov - a * cov @ inverse @ cov).diagonal())
            logs.append(weight - 0.5 * (gap @ inverse @ gap + volume))
        chance = torch.softmax(torch.stack(logs), 0)[:, None]
        stack = torch.stack(means)
        x0 = (chance * stack).sum(0)
        return x0, (chance * (torch.stack(spreads) + (stack - x0) ** 2)).sum(0)

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        answers = [self._one(row.double().reshape(-1), int(time)) for row, time in zip(x, t)]
        x0, variance = (torch.stack(rows).reshape(x.shape).to(x.dtype) for rows in zip(*answers))
        abar = self.schedule.abar(t).reshape(-1, 1, 1, 1)
        return Prediction(x0, (x - abar.sqrt().to(x) * x0) / (1 - abar).sqrt().to(x), variance)


class ForeignNoise:
    """Draws of NumPy's generator, by image, position and name; remembers what was asked for."""

    def __init__(self, salt: int = 0) -> None:
        self.salt = salt
        self.asked: set[tuple[int, int, str]] = set()

    def one(self, image: int, position: int, name: str, shape: Sequence[int]) -> Array:
        self.asked.add((image, position, name))
        return np.random.default_rng([self.salt, image, position, zlib.crc32(name.encode())]).standard_normal(tuple(shape))

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        return torch.from_numpy(np.stack([self.one(i, p, name, shape) for i, p in zip(ids, positions)]))


def operator(name: str) -> LinearOperator:
    """Small operators; "cs", "blur" and "holes" do not map the white image to ones; "circular" cuts off what it blurs most."""
    uneven = torch.ones(2, 1, 8, 8)
    uneven[0, 0, 2:6, 3:7] = 0
    uneven[1, 0, :, ::3] = 0
    makers: dict[str, Callable[[], LinearOperator]] = {
        "cs": lambda: operators.WalshHadamard((3, 4, 4), 0.5, seed=1),
        "blur": lambda: operators.SeparableBlur((1, 8, 8), operators.gaussian_taps(0.8), rcond_1d=1e-6),
        "holes": lambda: operators.Inpainting((1, 8, 8), uneven),
        "sr": lambda: operators.BicubicSR((1, 6, 8), 2),
        "circular": lambda: operators.Blur((1, 8, 6), CROOKED, rcond=0.15),
    }
    return makers[name]()


@dataclass(frozen=True)
class Scene:
    """A problem of two images, as the package takes it and as NumPy sees it."""

    problem: Problem
    prior: DensePrior
    worlds: tuple[World, ...]
    shape: tuple[int, int, int]
    image_like: bool


def scene(
    name: str, sigmas: tuple[float, float] = (0.0, 0.0), calm_first: bool = False, seed: int = 5, clipped: bool = False
) -> Scene:
    """y = A x + sigma z of two [0, 1] images, one from either component; sigmas quoted for [0, 1].

    SATP takes the calm image faster than the lively one; `calm_first`: the first of the two is the first to leave;
    `clipped`: y as a file holds it, censored at 0 and 1.
    """
    op = operator(name)
    shape = op.image_shape
    size = int(np.prod(shape))
    rng = np.random.default_rng(seed)
    draws = [rng.multivariate_normal(part.mean, part.cov) for part in parts(shape)]
    draws = draws[::-1] if calm_first else draws
    pictures = (np.clip(np.stack(draws), -1, 1) + 1) / 2
    clean = op.A(torch.from_numpy(pictures).reshape(-1, *shape))
    noise = torch.from_numpy(rng.standard_normal(tuple(clean.shape))) * (clean != 0)
    y = clean + torch.tensor(sigmas, dtype=torch.float64).reshape(-1, *[1] * (clean.ndim - 1)) * noise
    y = y.clamp(0, 1) if clipped else y
    censored = Censored.at_limits(y) if clipped else None
    prior = DensePrior(shape)
    eye = torch.eye(size, dtype=torch.float64).reshape(size, *shape)
    worlds = []
    for row, sigma in enumerate(sigmas):
        A = op.select(torch.tensor([row])).A(eye).reshape(size, -1).T.numpy()
        seen = np.abs(A).sum(1) > 0
        worlds.append(
            World(
                A=A,
                y=2 * y[row].reshape(-1).numpy() - A @ np.ones(size),  # of the [-1, 1] image 2 x - 1
                sigma=2 * sigma,
                parts=parts(shape),
                abar=np.append(prior.schedule.abar_table.numpy(), 1.0),
                shape=shape,
                limits=None
                if censored is None
                else tuple(m[row].ravel().numpy() & seen for m in (censored.low, censored.high)),
                rcond=op.rcond if name == "circular" else 1e-9,  # the others cut nothing off
            )
        )
    problem = Problem(
        y, op, torch.tensor(sigmas, dtype=torch.float64) if sigmas[0] != sigmas[1] else sigmas[0], censored=censored
    )
    return Scene(problem, prior, tuple(worlds), shape, tuple(y.shape[1:]) == shape)
