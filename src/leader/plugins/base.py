"""The contract of a plug-in: what changes a method from outside. All hooks are optional; they compose in a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leader.by_name import check_settings
from leader.methods.base import Method
from leader.priors.ask import Predict
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid
from leader.uncertainty.metric import Metric

MapName = Literal["local", "mean", "shuffle"]
"""Sigma as a plug-in takes it: itself, or one of two ablations that tell whether "local" matters."""


@dataclass(frozen=True)
class StepInfo:
    """Where the images of a step stand.

    ids        image ids
    positions  index of each image's time in the grid
    visits     how many times each image has been evaluated before
    t          LongTensor [B]
    grids      the times each image visits

    >>> StepInfo(ids=[0], positions=[3], visits=[3], t=torch.tensor([700]), grids=[]).visits
    [3]
    """

    ids: Sequence[int]
    positions: Sequence[int]
    visits: Sequence[int]
    t: Tensor
    grids: Sequence[Grid]


class Plugin:
    """A plug-in. Subclasses are frozen dataclasses whose fields are the settings.

    summary       one line for the user; label: the name in tables, by default `name`
    draws         names of its random draws besides those of `leader.noise`
    needs_sigma   whether it reads Sigma, so that the loop must estimate it
    gives_metric  whether it provides a metric for the data step
    begins        whether it chooses where a run begins, which not every method allows
    mirrors       whether runs with the ids 2 k and 2 k + 1 see opposite noise, so that it matters less to their mean
    takes_over    the method's own image prior that it replaces ("pirp"), if any
    revision      raised by one whenever the numbers of the plug-in change; part of the keys of benchmark records

    >>> issubclass(PLUGINS["satp"], Plugin)
    True
    """

    name: ClassVar[str]
    label: ClassVar[str | None] = None
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = "LEADer"
    draws: ClassVar[tuple[str, ...]] = ()
    needs_sigma: ClassVar[bool] = False
    gives_metric: ClassVar[bool] = False
    begins: ClassVar[bool] = False
    mirrors: ClassVar[bool] = False
    revision: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, "plug-in", self.name)

    @property
    def takes_over(self) -> str | None:
        return None

    def for_host(self, method: Method) -> Plugin:
        """The plug-in adapted to this method; called once, before the method drops a term that a plug-in takes over."""
        return self

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        """The times that the one image of `problem` visits, given those of the method; called per image before the run."""
        return grid

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor | None:
        """The clean image [B, C, H, W] from which the run begins, at the noise level of its first time; None: pure noise."""
        return None

    def wrap(self, predict: Predict, info: StepInfo) -> Predict:
        """The network as the method sees it during this step."""
        return predict

    def oppose(self, white: Callable[[int], Tensor], name: str, grid: Grid, position: int) -> Tensor | None:
        """The draw `name` [1, C, H, W] of one image in the step at `position` of its grid; None: white(position).

        white  standard normal numbers of this draw at any position, independent of each other
        """
        return None

    def pace(self, grid: Grid, position: int, uncertainty: float) -> int:
        """The next position of one image at `position` with mean variance `uncertainty` (U_t).

        It must lie inside the current descending run, which the loop checks.
        """
        return position + 1

    def modulate(self, x0: Tensor, sigma: Tensor, info: StepInfo, problem: Problem) -> Tensor:
        """The clean estimate x0 [B, C, H, W], changed according to Sigma [B, C, H, W]."""
        return x0

    def metric(self, prior: Prior, sigma: Tensor, info: StepInfo, problem: Problem) -> Metric | None:
        """The metric in which the method's data step is smallest, given Sigma [B, C, H, W]; None: all pixels count equally."""
        return None

    def conclude(self, images: Tensor, problem: Problem) -> Tensor:
        """The restored images [B, C, H, W] of a finished run, after a last change."""
        return images

    def settle(self, x0: Tensor, x0_hat: Tensor, prior: Prior, problem: Problem) -> Tensor:
        """x0_hat [B, C, H, W], the result of the method's data step on x0, after a change by the plug-in."""
        return x0_hat


def map_sigma(sigma: Tensor, name: MapName, info: StepInfo) -> Tensor:
    """Sigma [B, C, H, W] itself ("local"), its mean over each image ("mean"), or its pixels in random order ("shuffle")."""
    if name == "local":
        return sigma
    if name == "mean":
        return sigma.mean((1, 2, 3), keepdim=True).expand_as(sigma)
    shuffled = []
    for image, position, one in zip(info.ids, info.positions, sigma):
        generator = torch.Generator().manual_seed((1_000_003 * image + position) % 2**63)
        order = torch.randperm(one[0].numel(), generator=generator).to(sigma.device)
        shuffled.append(one.flatten(1)[:, order].reshape(one.shape))
    return torch.stack(shuffled)
