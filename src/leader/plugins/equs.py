"""EquS and EquS+. Wu et al., "Equivariant sampling for improving diffusion model-based image restoration",
WACV 2026.

On every second step the network sees a transformed copy of the state and its answer is transformed back; y
and A are never touched, and the number of calls stays. EquS+ adds TAS, a quadratic list of times that spends
more steps near the end.

Steps count down from T - 1, and even ones are transformed, so the last step of a grid is. When a pacer skips
grid times the parity is that of the visited steps. "aligned" takes x0, eps and the variance back; "raw", as
the released code does, leaves eps in the transformed frame, where as a noise direction it is nearly unrelated
to the state. Hosts that recompute eps from x0 (DDPG, IDPG, PIRP, DiffPIR, ProjDiff) and those that use x0
only are the same in both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.plugins.base import Plugin, StepInfo
from leader.priors.ask import Predict
from leader.priors.base import Prediction, Prior
from leader.problem import Problem
from leader.schedule import Grid, grid_on, quadratic_grid

Transform = Callable[[Tensor], Tensor]
Name = Literal["flip", "rotate180", "shift"]

TRANSFORMS: dict[Name, tuple[Transform, Transform]] = {
    "flip": (lambda x: x.flip(-1), lambda x: x.flip(-1)),
    "rotate180": (lambda x: x.flip(-1, -2), lambda x: x.flip(-1, -2)),
    "shift": (
        lambda x: torch.roll(x, (x.shape[-2] // 4, x.shape[-1] // 4), (-2, -1)),
        lambda x: torch.roll(x, (-(x.shape[-2] // 4), -(x.shape[-1] // 4)), (-2, -1)),
    ),
}
"""Transforms and their exact inverses, on [B, C, H, W]; "shift" is cyclic, by a quarter of each side."""


def published_times(count: int, total: int = 1000) -> Grid:
    """trunc(linspace(sqrt(total - 1), 0, count)^2), as the released code has it: starts at total - 2, repeats
    small times.
    """
    top = math.sqrt(total - 1)
    if count == 1:
        return Grid((total - 1, -1))
    step = -top / (count - 1)
    roots = [top + k * step for k in range(count - 1)] + [0.0]  # the order of operations decides 443 and 110
    return Grid((*(int(root * root) for root in roots), -1))


@dataclass(frozen=True)
class EquS(Plugin):
    """Evaluates the network in a transformed frame on every second step.

    >>> EquS().name, EquS.needs_sigma
    ('equs', False)
    """

    name: ClassVar[str] = "equs"
    label: ClassVar[str] = "EquS"
    summary: ClassVar[str] = "evaluates the network on a mirrored state on every second step"
    paper: ClassVar[str] = "Wu et al.: Equivariant sampling for diffusion model-based restoration (WACV 2026)"

    transform: Name = "flip"
    mode: Literal["aligned", "raw"] = "aligned"
    """"aligned": everything is transformed back; "raw": eps is left in the transformed frame."""

    def wrap(self, predict: Predict, info: StepInfo) -> Predict:
        # Visit v of a walk over all times is step T - 1 - v; a pacer's walk keeps the parity of its visits.
        turned = torch.tensor([(grid.visits - 1 - visit) % 2 == 0 for grid, visit in zip(info.grids, info.visits)])
        if not bool(turned.any()):
            return predict
        forth, back = TRANSFORMS[self.transform]

        def wrapped(x: Tensor, t: Tensor) -> Prediction:
            where = turned.to(x.device).reshape(-1, 1, 1, 1)
            answer = predict(torch.where(where, forth(x), x), t)

            def restored(value: Tensor) -> Tensor:
                return torch.where(where, back(value), value)

            eps = answer.eps if self.mode == "raw" else restored(answer.eps)
            variance = None if answer.variance is None else restored(answer.variance)
            return Prediction(restored(answer.x0), eps, variance)

        return wrapped


@dataclass(frozen=True)
class EquSPlus(EquS):
    """EquS with its timestep-aware schedule.

    >>> EquSPlus().name, EquSPlus.needs_sigma
    ('equs+', False)
    """

    name: ClassVar[str] = "equs+"
    label: ClassVar[str] = "EquS+"
    summary: ClassVar[str] = "EquS on a quadratic list of times, dense near the end"

    times: Literal["decreasing", "published"] = "decreasing"
    """"decreasing": every time once, from the first; "published": the released list, which visits time 0 four
    times.
    """

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        if any(after > now for now, after in zip(grid.times, grid.times[1:])):
            raise LeaderError("EquS+ brings a list of times of its own, which only descends; switch time travel off.")
        make = published_times if self.times == "published" else quadratic_grid
        return grid_on(prior.schedule, grid.visits, make)
