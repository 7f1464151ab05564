"""Opposed noise: the draws of a few neighbouring steps cancel each other.

Methods that renew their noise at every step, x_t = sqrt(abar) x0 + sqrt(1 - abar) z, hand a part of z on: the network takes it
for a picture, the next step adds another part, and the answer keeps their sum. z is needed at every step, since the network
knows pictures with noise alone, but nothing needs it to be new. Here the draws z_1 .. z_k of `together` steps in a row are

    sqrt(k / (k - 1)) (w_i - mean of w_1 .. w_k),   w independent standard normal:

each is standard normal, together they are zero, and so is what the answer keeps of them to first order. A mean of k runs does
the same at k times the work. What is left out of the answer is randomness: where texture is drawn from it, LPIPS pays.

Nearest: antithetic variates (Hammersley and Morton 1956), which `MirroredNoise` has between runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.plugins.base import Plugin
from leader.schedule import Grid


@dataclass(frozen=True)
class Opposed(Plugin):
    """Noise of neighbouring steps that adds up to nothing.

    >>> Opposed().name, Opposed.needs_sigma
    ('opposed', False)
    """

    name: ClassVar[str] = "opposed"
    label: ClassVar[str] = "Opposed"
    summary: ClassVar[str] = "lets the noise of neighbouring steps cancel"
    revision: ClassVar[int] = 2
    paper: ClassVar[str] = "this project: docs/lab/opposed.md"

    together: Annotated[int, "[2, 100]"] = 2
    """How many steps in a row have noise that adds up to nothing; the last of them may be fewer."""
    first: Annotated[int, "[0, 999]"] = 999
    """The first time, on the standard clock, whose noise is opposed."""
    last: Annotated[int, "[0, 999]"] = 0
    """The last one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last > self.first:
            raise LeaderError(f"Opposed noise begins at a time no smaller than it ends; found {self.first} and {self.last}.")

    def oppose(self, white: Callable[[int], Tensor], name: str, grid: Grid, position: int) -> Tensor | None:
        block = self._block(grid, position) if name == "step" else ()
        if len(block) < 2:
            return None
        mean = torch.stack([white(other) for other in block]).mean(0)
        return (white(position) - mean) * math.sqrt(len(block) / (len(block) - 1))

    def _block(self, grid: Grid, position: int) -> tuple[int, ...]:
        """The positions of the grid whose noise adds up to nothing, this one among them; empty where it stays as it is."""
        inside = [place for place in grid.positions if self.last <= grid.clock[place] <= self.first]
        if position not in inside:
            return ()
        start = inside.index(position) // self.together * self.together
        return tuple(inside[start : start + self.together])
