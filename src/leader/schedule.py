"""The noise schedule and the times a sampler visits: numbers only.

A schedule is the table abar_t = prod (1 - beta_s), kept in float64. A time of -1 means abar = 1, the clean image.
A grid lists the times in visiting order and ends in -1; a move upward in it is time travel (re-noising).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from leader.errors import LeaderError, unknown_name

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Level:
    """Signal and noise of x_t = sqrt(abar) x_0 + sqrt(1 - abar) z at one time per image.

    `abar` is float64 [B, 1, 1, 1] on the CPU (not every device has float64); the factors are computed there and handed out
    on the device and in the dtype of the images.
    """

    abar: Tensor
    dtype: torch.dtype = torch.float32
    device: torch.device = CPU

    def cast(self, value: Tensor) -> Tensor:
        """A float64 coefficient on the device and in the dtype of the images."""
        return value.to(self.device, self.dtype)

    @property
    def signal(self) -> Tensor:
        """sqrt(abar)."""
        return self.cast(self.abar.sqrt())

    @property
    def noise(self) -> Tensor:
        """sqrt(1 - abar)."""
        return self.cast((1 - self.abar).sqrt())

    @property
    def sigma(self) -> Tensor:
        """s_t = sqrt((1 - abar) / abar): the noise of the rescaled state x_t / sqrt(abar)."""
        return self.cast(((1 - self.abar) / self.abar).sqrt())


class Schedule:
    """A table of betas (float64, [T]) and what follows from it."""

    def __init__(self, betas: Tensor) -> None:
        table = betas.detach().to("cpu", torch.float64)
        if table.ndim != 1 or not bool(((table > 0) & (table < 1)).all()):
            raise LeaderError("A schedule needs a 1-D table of betas strictly between 0 and 1.")
        self.betas = table
        self.abar_table = torch.cumprod(1 - table, 0)

    @classmethod
    def linear(cls, start: float = 1e-4, end: float = 2e-2, steps: int = 1000) -> Schedule:
        """The linear-beta schedule of DDPM."""
        return cls(torch.linspace(start, end, steps, dtype=torch.float64))

    @classmethod
    def scaled_linear(cls, start: float = 1e-4, end: float = 2e-2, steps: int = 1000) -> Schedule:
        """Betas linear in their square root, as latent diffusion models use."""
        return cls(torch.linspace(math.sqrt(start), math.sqrt(end), steps, dtype=torch.float64) ** 2)

    @classmethod
    def cosine(cls, steps: int = 1000, offset: float = 0.008, largest: float = 0.999) -> Schedule:
        """The squared-cosine schedule of improved DDPM."""
        times = torch.arange(steps + 1, dtype=torch.float64) / steps
        curve = torch.cos((times + offset) / (1 + offset) * math.pi / 2) ** 2
        return cls((1 - curve[1:] / curve[:-1]).clamp(max=largest))

    def __len__(self) -> int:
        return len(self.betas)

    @cached_property
    def _extended(self) -> Tensor:
        return torch.cat([self.abar_table, torch.ones(1, dtype=torch.float64)])  # index -1 is the clean image

    def abar(self, t: Tensor | int) -> Tensor:
        """abar_t in float64 on the CPU, with abar_{-1} = 1."""
        return self._extended[torch.as_tensor(t, device="cpu")]

    def level(self, t: Tensor, like: Tensor | None = None) -> Level:
        """The level of times t [B], for images like `like` (its device and dtype)."""
        abar = self.abar(t).reshape(-1, 1, 1, 1)
        if like is None:
            return Level(abar)
        return Level(abar, like.dtype, like.device)

    def nearest(self, sigma: float) -> int:
        """The time whose s_t is nearest to sigma."""
        table = ((1 - self.abar_table) / self.abar_table).sqrt()
        return int((table - sigma).abs().argmin())


@dataclass(frozen=True)
class Grid:
    """Times in visiting order, the last one -1. `uniform` grids let SATP count in grid steps."""

    times: tuple[int, ...]
    uniform: bool = False

    def __post_init__(self) -> None:
        if len(self.times) < 2 or self.times[-1] != -1 or min(self.times[:-1]) < 0:
            raise LeaderError(f"A grid needs at least one time >= 0 and must end in -1; found {self.times}.")

    @property
    def visits(self) -> int:
        """How many times of the grid cost a network call (upward moves are free)."""
        return sum(1 for now, after in zip(self.times, self.times[1:]) if after <= now)

    @cached_property
    def run_ends(self) -> tuple[int, ...]:
        """For each position the last position of its descending run, short of the final -1.

        A pacer may jump to at most this position: it is where time travel turns, or the last time before -1.
        """
        last = len(self.times) - 2
        ends = [last] * len(self.times)
        for i in range(last - 1, -1, -1):
            ends[i] = i if self.times[i + 1] > self.times[i] else ends[i + 1]
        return tuple(ends)


def _check(count: int, total: int) -> None:
    if not 1 <= count <= total:
        raise LeaderError(f"The number of steps must lie between 1 and {total}; found {count}.")


def uniform_grid(count: int, total: int = 1000) -> Grid:
    """k * floor(total / count) for k = count - 1 ... 0, then -1: the grid of DDNM, DDRM, DDPG and most others."""
    _check(count, total)
    stride = total // count
    return Grid((*(k * stride for k in range(count - 1, -1, -1)), -1), uniform=True)


def linspace_grid(count: int, total: int = 1000, first: int | None = None) -> Grid:
    """round(linspace(first, 0, count)): a uniform grid of any number of steps, both ends included."""
    _check(count, total)
    top = total - total // 100 if first is None else first
    times = [round(top * (1 - i / max(1, count - 1))) for i in range(count)]
    return Grid((*dict.fromkeys(times), -1), uniform=True)


def quadratic_grid(count: int, total: int = 1000) -> Grid:
    """Times whose square roots are equally spaced, strictly decreasing: dense near the end."""
    _check(count, total)
    top = math.sqrt(total - 1)
    times = [round((top * (1 - i / max(1, count - 1))) ** 2) for i in range(count)]
    for i in range(count - 2, -1, -1):  # rounding repeats small times: push the earlier ones up
        times[i] = max(times[i], times[i + 1] + 1)
    return Grid((*times, -1))


def respaced_grid(count: int, total: int = 1000) -> Grid:
    """round(k (total - 1) / (count - 1)): both ends included, as DPS respaces its schedule."""
    _check(count, total)
    times = [round(k * (total - 1) / max(1, count - 1)) for k in range(count - 1, -1, -1)]
    return Grid((*times, -1), uniform=True)


def travel_grid(count: int, length: int, repeats: int, total: int = 1000) -> Grid:
    """The uniform grid with time travel: from every `length`-th index, `repeats - 1` times, back up by `length`.

    An index gets a budget of repeats - 1 jumps when it is a multiple of `length` strictly below count - length.
    """
    if length < 1 or repeats < 1:
        raise LeaderError(f"Time travel needs a length and repeats of at least 1; found {length} and {repeats}.")
    _check(count, total)
    budget = dict.fromkeys(range(0, count - length, length), repeats - 1)
    indices: list[int] = []
    pointer = count
    while pointer >= 1:
        pointer -= 1
        indices.append(pointer)
        if budget.get(pointer, 0) > 0:
            budget[pointer] -= 1
            for _ in range(length):
                pointer += 1
                indices.append(pointer)
    stride = total // count
    return Grid((*(k * stride for k in indices), -1), uniform=True)


GRIDS = {
    "uniform": uniform_grid,
    "linspace": linspace_grid,
    "quadratic": quadratic_grid,
    "respaced": respaced_grid,
}


def make_grid(name: str, count: int, total: int = 1000) -> Grid:
    """A grid by name."""
    if not isinstance(name, str) or name not in GRIDS:
        raise unknown_name("grid", name, GRIDS)
    return GRIDS[name](count, total)
