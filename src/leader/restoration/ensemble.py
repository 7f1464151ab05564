"""Several runs of one problem in one batch: their mean, their spread, and the error of the mean.

The mean of draws of the posterior comes near the posterior mean, which has the highest PSNR of all answers, and is smoother
than any draw. If one run's error has the variance e^2 and runs differ by the variance s^2, the mean of n keeps
e^2 - s^2 (1 - 1/n): what all runs get wrong together stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from leader import defaults
from leader.by_name import check_count
from leader.plan import Plan
from leader.priors.base import Prior
from leader.priors.loading import load_prior
from leader.problem import Problem
from leader.restoration.choice import Choice
from leader.result import OnStep, Result, Step, drain
from leader.sampler import Sampler
from leader.trust import ErrorMap, Watch, add_errors, raise_invented

MOST_RUNS = 1000


@dataclass(frozen=True, repr=False, eq=False)
class Ensemble:
    """n runs of every image of a problem; [-1, 1] units.

    mean       [B, C, H, W], not clamped
    spread     standard deviation of the runs, [B, C, H, W]
    error_std  of the mean, [B, C, H, W]: calibrated as that of single runs is; None where the prior has no referee
    runs       the runs themselves: images [B * n, C, H, W], those of an image one after the other
    trust      where the error comes from, one for each image

    >>> problem = leader.Problem(torch.rand(1, 3, 8, 8), leader.operators.Denoising((3, 8, 8)), 0.1)
    >>> leader.ensemble(problem, 2, sampler=leader.Sampler("embedded", "ddnm", (), 3)).mean.shape
    torch.Size([1, 3, 8, 8])
    """

    mean: Tensor
    spread: Tensor
    error_std: Tensor | None
    runs: Result
    trust: tuple[ErrorMap, ...] = ()

    @property
    def count(self) -> int:
        """n."""
        return len(self.runs.images) // len(self.mean)

    def as_result(self) -> Result:
        """The mean as the result of a run; its posterior spread is that of the runs."""
        return replace(self.runs, images=self.mean, posterior_std=self.spread, error_std=self.error_std)

    def __repr__(self) -> str:
        return f"Ensemble({self.count} runs of images {list(self.mean.shape)}, {self.runs.ledger.total.calls} calls)"


def ensemble(
    problem: Problem,
    n: int,
    *,
    sampler: Sampler | None = None,
    prior: str | Path | Prior = defaults.PRIOR,
    quality: str = defaults.QUALITY,
    look: str = defaults.LOOK,
    seed: int = 0,
    ids: Sequence[int] | None = None,
    plan: Plan | None = None,
    on_step: OnStep | None = None,
) -> Ensemble:
    """Restores every image of a problem n times, in one batch.

    sampler  what runs; None: what `quality` and `look` mean for the prior and the problem
    seed     with `ids`, one for each run of each image (0, 1, ... by default), chooses the noise
    plan     `sampler.plan(problem)`, if already made
    on_step  called with every Step

    >>> problem = leader.Problem(torch.rand(1, 3, 8, 8), leader.operators.Denoising((3, 8, 8)), 0.1)
    >>> leader.ensemble(problem, 2, sampler=leader.Sampler("embedded", "ddnm", (), 3)).spread.shape
    torch.Size([1, 3, 8, 8])
    """
    count = check_count("The number of runs", n, 1, MOST_RUNS)
    if sampler is None:
        model = prior if isinstance(prior, Prior) else load_prior(prior)
        sampler = Choice(model, quality, look).sampler(problem)
    chosen = sampler.plan(problem) if plan is None else plan
    rows = torch.arange(problem.batch).repeat_interleave(count)
    repeated = problem.select(rows)
    many = replace(chosen, grids=tuple(chosen.grids[row] for row in rows.tolist()))
    watch = Watch(sampler.prior.schedule)

    def show(step: Step) -> None:
        watch(step)
        if on_step is not None:
            on_step(step)

    result = drain(sampler.iterate(repeated, seed, ids=ids, plan=many, looks=watch.find_looks), show)
    result, maps = add_errors(sampler.prior, repeated, result, watch)
    joined = join_runs(result, count, maps)
    if count == 1:
        return joined
    mean, error, known = joined.mean, joined.error_std, problem.find_known_pixels()
    for item in chosen.plugins:  # plug-ins conclude the mean again: it differs from the mean of concluded runs
        mean = item.conclude(mean, problem)
    if error is not None and known is not None:  # runs that invent the same thing agree, which proves nothing
        error = torch.stack([raise_invented(one, seen) for one, seen in zip(error, known.expand(len(error), -1, -1))])
    return replace(joined, mean=mean, error_std=error)


def join_runs(result: Result, count: int, maps: Sequence[ErrorMap]) -> Ensemble:
    """The mean, the spread and the error of the mean of a batch that holds every image `count` times in a row."""
    images = result.images.reshape(-1, count, *result.images.shape[1:])
    mean = images.mean(1)
    # many times as fast as torch's std along an axis in the middle
    spread = (images - mean[:, None]).square().sum(1).div(max(1, count - 1)).sqrt()
    error = None
    if result.error_std is not None:
        single = result.error_std.square().reshape(images.shape).mean(1)
        left = single - spread.square() * (1 - 1 / count)
        error = torch.maximum(left, torch.minimum(single, spread.square()) / count).sqrt()
    return Ensemble(mean, spread, error, result, tuple(maps[::count]))
