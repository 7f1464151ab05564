"""The noise schedule and the times a sampler visits: numbers only.

A schedule is the table abar_t = prod (1 - beta_s), kept in float64. A time of -1 means abar = 1, the clean image.
A grid lists the times in visiting order and ends in -1; a move upward in it is time travel (re-noising).

Times stand for noise levels. Papers quote them on the linear schedule of 1000 steps, called the standard clock here. For a
prior with a different schedule, grids visit the times with the same noise (`grid_on`), so "t = 100" means the same noise for
every prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import torch
from torch import Tensor

from leader.errors import LeaderError, unknown_name

CPU = torch.device("cpu")
Builder = Callable[[int, int], "Grid"]
"""build(count, total): a grid of `count` steps on `total` times."""


@dataclass(frozen=True)
class Level:
    """Signal and noise of x_t = sqrt(abar) x_0 + sqrt(1 - abar) z at one time per image.

    `abar` is float64 [B, 1, 1, 1] on the CPU (not every device has float64); the factors are computed there and returned on the
    device and in the dtype of the images.
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
    """A table of betas (float64, [T]) and the quantities derived from it.

    >>> len(leader.Schedule.linear())
    1000
    """

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

    @cached_property
    def log_noise(self) -> Tensor:
        """log s_t^2 = log((1 - abar) / abar) of every time, float64 [T]."""
        return (1 - self.abar_table).log() - self.abar_table.log()

    @cached_property
    def standard(self) -> bool:
        """Whether this schedule is the standard clock."""
        clock = _clock().abar_table
        return len(self) == len(clock) and bool(((self.abar_table - clock).abs() <= 1e-9).all())

    def nearest(self, sigma: float) -> int:
        """The time whose s_t is nearest to sigma, by ratio."""
        return int((self.log_noise - 2 * math.log(max(sigma, 1e-12))).abs().argmin())

    def at_clock(self, time: int) -> int:
        """The time with the noise of time `time` of the standard clock."""
        if self.standard:
            return min(time, len(self) - 1)
        wanted = _clock().log_noise[min(time, len(_clock()) - 1)]
        return int((self.log_noise - wanted).abs().argmin())

    def clock_of(self, t: int) -> int:
        """The time of the standard clock with the noise of time t."""
        return t if self.standard else int((_clock().log_noise - self.log_noise[t]).abs().argmin())


@cache
def _clock() -> Schedule:
    return Schedule.linear()


@dataclass(frozen=True)
class Grid:
    """Times in visiting order, the last one -1.

    uniform  SATP may count in grid steps
    clock    the times on the standard clock, for a different schedule; the times themselves by default
    labels   keys of the random draws at each position; the positions by default, kept when a grid is cut

    >>> leader.Grid((900, 400, 50, -1)).visits
    3
    """

    times: tuple[int, ...]
    uniform: bool = False
    clock: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.times) < 2 or self.times[-1] != -1 or min(self.times[:-1]) < 0:
            raise LeaderError(f"A grid needs at least one time >= 0 and must end in -1; found {self.times}.")
        object.__setattr__(self, "clock", self.clock or self.times)
        object.__setattr__(self, "labels", self.labels or tuple(range(len(self.times))))
        if not len(self.times) == len(self.clock) == len(self.labels):
            raise LeaderError("The times, the clock and the labels of a grid must have equal lengths.")

    def cut(self, first: int) -> Grid:
        """The grid from the last time that is not below `first` (in its own schedule): nothing above it is visited again. Draws
        at each time are the same as in the whole grid.
        """
        top = min((time for time in self.times[:-1] if time >= first), default=max(self.times))
        kept: list[int] = []
        for i, time in enumerate(self.times):
            if time <= top and (not kept or self.times[kept[-1]] != time):
                kept.append(i)
        rows = zip(*((self.times[i], self.clock[i], self.labels[i]) for i in kept))
        times, clock, labels = (tuple(row) for row in rows)
        return Grid(times, self.uniform, clock, labels)

    @property
    def positions(self) -> list[int]:
        """The positions at which the network is called: a move upward needs no call."""
        return [i for i, (now, after) in enumerate(pairwise(self.times)) if after <= now]

    @property
    def visits(self) -> int:
        """How many times of the grid cost a network call (upward moves are free)."""
        return len(self.positions)

    @cached_property
    def run_ends(self) -> tuple[int, ...]:
        """For each position, the last position of its descending run, not counting the final -1.

        This is where time travel turns, or the last time before -1.
        """
        last = len(self.times) - 2
        ends = [last] * len(self.times)
        for i in range(last - 1, -1, -1):
            ends[i] = i if self.times[i + 1] > self.times[i] else ends[i + 1]
        return tuple(ends)

    def farthest(self, position: int) -> int:
        """The farthest position a pacer may jump to: where time travel turns or, after the last turn, the final -1."""
        end = self.run_ends[position]
        return end + 1 if end == len(self.times) - 2 else max(end, position + 1)


def check_steps(count: int, total: int) -> None:
    """Rejects a number of steps that a schedule of `total` times cannot have."""
    if not 1 <= count <= total:
        raise LeaderError(f"The number of steps must lie between 1 and {total}; found {count}.")


def uniform_grid(count: int, total: int = 1000) -> Grid:
    """floor(k total / count) for k = count - 1 ... 0, then -1: the grid of DDNM, DDRM, DDPG and most others."""
    check_steps(count, total)
    return Grid((*(k * total // count for k in range(count - 1, -1, -1)), -1), uniform=True)


def linspace_grid(count: int, total: int = 1000, first: int | None = None) -> Grid:
    """round(linspace(first, 0, count)): a uniform grid of any number of steps, both ends included."""
    check_steps(count, total)
    top = total - total // 100 if first is None else first
    times = [round(top * (1 - i / max(1, count - 1))) for i in range(count)]
    return Grid((*dict.fromkeys(times), -1), uniform=True)


def quadratic_grid(count: int, total: int = 1000) -> Grid:
    """Times whose square roots are equally spaced, strictly decreasing: dense near the end."""
    check_steps(count, total)
    top = math.sqrt(total - 1)
    return _fall_strictly([round((top * (1 - i / max(1, count - 1))) ** 2) for i in range(count)])


def respaced_grid(count: int, total: int = 1000) -> Grid:
    """round(k (total - 1) / (count - 1)): both ends included, as DPS respaces its schedule."""
    check_steps(count, total)
    times = [round(k * (total - 1) / max(1, count - 1)) for k in range(count - 1, -1, -1)]
    return Grid((*times, -1), uniform=True)


def travel_grid(count: int, length: int, repeats: int, total: int = 1000) -> Grid:
    """The uniform grid with time travel: from every `length`-th index, `repeats - 1` times, back up by `length`.

    An index gets a budget of repeats - 1 jumps when it is a multiple of `length` strictly below count - length.
    """
    if length < 1 or repeats < 1:
        raise LeaderError(f"Time travel needs a length and repeats of at least 1; found {length} and {repeats}.")
    check_steps(count, total)
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
    return Grid((*(k * total // count for k in indices), -1), uniform=True)


def noise_grid(count: int, total: int = 1000, first: int | None = None) -> Grid:
    """Times of the standard clock whose noise levels s_t have equally spaced cube roots, from `first` down to 0.

    Dense where little noise is left, like the grids of samplers with continuous noise levels.
    """
    check_steps(count, total)
    clock = _clock()
    scale = total / len(clock)
    top = round((total - 1 if first is None else first) / scale)
    high, low = (math.exp(float(clock.log_noise[min(t, len(clock) - 1)]) / 6) for t in (top, 0))
    roots = [high + (low - high) * i / max(1, count - 1) for i in range(count)]
    return _fall_strictly([round(scale * clock.nearest(root**3)) for root in roots])


def _fall_strictly(times: list[int]) -> Grid:
    """A grid of falling times, some of which rounding made equal: earlier ones are pushed up."""
    for i in range(len(times) - 2, -1, -1):
        times[i] = max(times[i], times[i + 1] + 1)
    return Grid((*times, -1))


GRIDS: dict[str, Builder] = {
    "uniform": uniform_grid,
    "linspace": linspace_grid,
    "quadratic": quadratic_grid,
    "respaced": respaced_grid,
    "noise": noise_grid,
}


def make_grid(name: str, count: int, schedule: Schedule) -> Grid:
    """A grid by name, for a prior's schedule."""
    if not isinstance(name, str) or name not in GRIDS:
        raise unknown_name("grid", name, GRIDS)
    return grid_on(schedule, count, GRIDS[name])


def grid_on(schedule: Schedule, count: int, build: Builder) -> Grid:
    """The grid build(count, 1000) of the standard clock at the times of `schedule` that have its noise levels.

    Times that coincide are visited once. If there are more steps than the clock has times, they are counted on the schedule
    itself.
    """
    if schedule.standard or count > len(_clock()):
        return build(count, len(schedule))
    check_steps(count, len(schedule))
    drawn = build(count, len(_clock()))
    times = [schedule.at_clock(time) if time >= 0 else -1 for time in drawn.times]
    kept = [i for i, time in enumerate(times) if i == 0 or time != times[i - 1]]
    return Grid(tuple(times[i] for i in kept), drawn.uniform, tuple(drawn.clock[i] for i in kept))
