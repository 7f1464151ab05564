"""The one reverse loop: a generator of Steps.

    ask    = plug-ins.wrap(prior.predict)
    pred   = method.estimate(ask, state, t)
    y      = problem.impute(pred.x0)                  where entries are censored
    Sigma  = estimator(ask, x, t, pred)
    u      = plug-ins.pace(grid, position, U)
    x0     = plug-ins.modulate(pred.x0, Sigma)
    x0_hat = method.correct(state, pred, x0, t, u)
    state  = method.advance(state, pred, x0_hat, t, u)

Each image follows its own times and leaves when it is done. On the CPU images are processed one by one, so an image gives the
same bits alone, in any batch and in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.methods import Context, Method, State
from leader.noise import MirroredNoise, Noise, SeededNoise, check_ids
from leader.plan import Choices, Plan
from leader.plugins import Plugin, StepInfo
from leader.priors.ask import Ask, Predict
from leader.priors.base import Prior
from leader.priors.ledger import Ledger, recording
from leader.problem import Problem
from leader.result import OnStep, Result, Step, Visit, drain
from leader.schedule import Grid
from leader.uncertainty.estimators import Estimator, make_estimator, predicted

TRUST_TIME = 100
"""Default time at which the posterior spread is stored in the Result."""

Looks = Callable[[Grid], set[int]]

DIVERGED = "The restoration diverged to NaN or infinite values; use smaller step sizes or more steps."


class Sampler:
    """A prior, a method, plug-ins and the number of steps; `run` a problem or `iterate` over its Steps.

    prior       a Prior, or the name or path of one
    method      a name, or an object (DDNM(eta=0.5)), which holds its own settings and ignores presets
    plugins     names ("leader", "ucpm", "satp", ...) or objects, one or several, applied in order
    steps       T, from 1 to the length of the prior's schedule; not used where `grid` is a Grid
    grid        None for the method's own, a name ("uniform", "linspace", "quadratic", "respaced"), or a Grid
    estimator   how Sigma is estimated: "auto", a name, an object (Hutchinson(4)) or a table of its settings ({"name":
                "hutchinson", "probes": 4}), or None to skip it if no plug-in needs it; `probes` applies to that name
    trust_time  the spread is stored in the Result at the first visited time at or below it
    settings    settings of a method by name; a dict under a plug-in's name holds that plug-in's settings
                Settings that are not given come from the prior's presets for the problem's task and noise.

    A sampler and a prior may be shared between threads.

    >>> problem = leader.Problem(torch.rand(1, 3, 8, 8), leader.operators.Denoising((3, 8, 8)), 0.1)
    >>> leader.Sampler("embedded", "diffpir", plugins=(), steps=5).run(problem).images.shape
    torch.Size([1, 3, 8, 8])
    """

    revision: ClassVar[int] = 1
    """Raised by one whenever the numbers of the loop change; part of the keys of benchmark records."""

    def __init__(
        self,
        /,
        prior: Prior | str | Path = "embedded",
        method: str | Method = "ddnm",
        plugins: Sequence[str | Plugin] | str | Plugin = ("leader",),
        steps: int = 100,
        *,
        grid: str | Grid | None = None,
        estimator: str | Estimator | Mapping[str, Any] | None = "auto",
        probes: int = 1,
        trust_time: int = TRUST_TIME,
        use_presets: bool = True,
        **settings: Any,
    ) -> None:
        self.prior = _open_prior(prior)
        self.choices = Choices(
            self.prior.schedule, method, plugins, steps, grid, estimator, probes, trust_time, use_presets, settings
        )

    def __repr__(self) -> str:
        names = [item if isinstance(item, str) else item.name for item in (self.choices.method, *self.choices.plugins)]
        return f"<Sampler {' + '.join(names)}: {self.steps} steps, prior '{self.prior.name}'>"

    @property
    def steps(self) -> int:
        """T, the number of steps asked for."""
        return self.choices.steps

    def plan(self, problem: Problem) -> Plan:
        """Every choice for this problem: settings, presets, grid. Pass it to `run` and `iterate` to make it only once."""
        return self.choices.plan(self.prior, problem)

    def run(
        self,
        problem: Problem,
        seed: int = 0,
        *,
        ids: Sequence[int] | None = None,
        x_T: Tensor | None = None,
        noise: Noise | None = None,
        plan: Plan | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """Restores the problem. `on_step` is called with every Step; the other arguments are the same as in `iterate`."""
        return drain(self.iterate(problem, seed, ids=ids, x_T=x_T, noise=noise, plan=plan), on_step)

    def iterate(
        self,
        problem: Problem,
        seed: int = 0,
        *,
        ids: Sequence[int] | None = None,
        x_T: Tensor | None = None,
        noise: Noise | None = None,
        plan: Plan | None = None,
        looks: Looks | None = None,
    ) -> Generator[Step, None, Result]:
        """The loop. Yields a Step per round; its return value is the Result (`leader.result.drain` fetches it).

        ids    names of the images, which determine their noise; 0, 1, ... by default
        x_T    the starting noise [B, C, H, W] instead of a draw
        noise  a source of draws instead of the seeded one
        plan   the result of `plan(problem)`, if it was already made
        looks  the positions of a grid whose Sigma is of use; where no plug-in reads it and a head predicts it, only these have
               one, and that whose spread is stored. None: all
        """
        if not isinstance(problem, Problem):
            raise UsageError(f"A sampler restores a Problem(y, operator, sigma); found {type(problem).__name__}.")
        source = SeededNoise(seed)
        names = check_ids(ids, problem.batch)
        chosen = self.plan(problem) if plan is None else plan
        parts: tuple[Method | Plugin, ...] = (chosen.method, *chosen.plugins)
        declared = dict.fromkeys(name for item in parts for name in item.draws)
        mirrored = any(item.mirrors for item in chosen.plugins)
        source = (MirroredNoise if mirrored else SeededNoise)(source.seed, tuple(declared))
        problem, start = _on_one_device(problem, self.prior), _check_start(x_T, problem)
        run = _Run(self.prior, chosen, problem, noise or source, start, self.choices.trust_time, looks)
        return _loop(run, names, source.seed)


def _open_prior(prior: Prior | str | Path) -> Prior:
    if isinstance(prior, Prior):
        return prior
    from leader.priors.loading import load_prior

    return load_prior(prior)


def _on_one_device(problem: Problem, prior: Prior) -> Problem:
    """The problem in the precision of the prior's network, if both are on one device."""
    home = prior.weights_device()
    if home is not None and home != problem.y.device:
        raise LeaderError(
            f"The measurement is on the device '{problem.y.device}' and the prior '{prior.name}' on '{home}'; move one."
        )
    return problem.to_dtype(prior.state_dtype(problem.y.dtype))


def _check_start(x_T: Tensor | None, problem: Problem) -> Tensor | None:
    shape = [problem.batch, *problem.image_shape]
    if x_T is not None and (not isinstance(x_T, Tensor) or list(x_T.shape) != shape or not x_T.is_floating_point()):
        found = f"{x_T.dtype} {list(x_T.shape)}" if isinstance(x_T, Tensor) else type(x_T).__name__
        raise LeaderError(f"The starting noise x_T must be a float tensor {shape}; found {found}.")
    return x_T


@dataclass(frozen=True)
class _Image:
    """The progress of one image of a run.

    name      its id, which determines its noise
    row       its index in the problem
    position  the index of its time in the grid
    visits    how many times it has been evaluated
    """

    name: int
    row: int
    position: int = 0
    visits: int = 0


def _loop(run: _Run, names: list[int], seed: int) -> Generator[Step, None, Result]:
    images = [_Image(name, row) for row, name in enumerate(names)]
    state = run.start(images)
    trace: dict[int, list[Visit]] = {name: [] for name in names}
    spread: dict[int, Tensor] = {}
    restored: dict[int, Tensor] = {}
    index = 0
    while images:
        images, state = run.travel(images, state)
        step = run.step(images, state, index)
        stay = []
        for i, image in enumerate(images):
            visit = step.visit(i)
            trace[image.name].append(visit)
            clock = run.plan.grids[image.row].clock[image.position]
            if step.sigma is not None and (clock <= run.trust_time or visit.u == -1):
                spread.setdefault(image.name, step.sigma[i].clamp_min(0).sqrt())
            if visit.u == -1:
                restored[image.name] = run.finish(image, step.state.select(torch.tensor([i])))
            else:
                stay.append(i)
        state = step.state.select(torch.tensor(stay, dtype=torch.long))
        images = [
            replace(images[i], position=images[i].position + int(step.jump[i]), visits=images[i].visits + 1) for i in stay
        ]
        index += 1
        yield step
        del step  # several times the size of the picture
    answer = torch.stack([restored[name] for name in names])
    if not bool(torch.isfinite(answer).all()):
        raise LeaderError(DIVERGED)
    stds = torch.stack([spread[name] for name in names]) if len(spread) == len(names) else None
    return Result(answer, stds, None, trace, run.ledger, seed, {**run.plan.settings, "seed": seed, "ids": names})


def _find_stored(grid: Grid, trust_time: int) -> int:
    """The position whose spread is stored: the first visited at or below `trust_time`, or the last."""
    visited = grid.positions
    return next((position for position in visited if grid.clock[position] <= trust_time), visited[-1])


def _not_a_number(x0: Tensor, t: int) -> LeaderError:
    """Why Sigma at time t is not finite: the run itself, or the prior's variance alone."""
    if not bool(torch.isfinite(x0).all()):
        return LeaderError(DIVERGED)
    return LeaderError(f"The prior's variance is NaN at time {t}; check its variance head, or choose another estimator.")


class _Run:
    """Everything that is constant during a run, and the work of one round."""

    def __init__(
        self,
        prior: Prior,
        plan: Plan,
        problem: Problem,
        noise: Noise,
        x_T: Tensor | None,
        trust_time: int,
        looks: Looks | None,
    ) -> None:
        self.prior, self.plan, self.problem, self.noise, self.x_T = prior, plan, problem, noise, x_T
        self.trust_time = trust_time
        self.ledger = Ledger()
        self.estimator: Estimator | None = None
        if plan.estimator is not None:
            self.estimator = make_estimator(plan.estimator, prior, plan.settings["probes"])
        self._looked: dict[Grid, set[int]] | None = None  # positions that have a Sigma; None: all
        if looks is not None and self.estimator is predicted and not any(item.needs_sigma for item in plan.plugins):
            self._looked = {grid: {*looks(grid), _find_stored(grid, trust_time)} for grid in set(plan.grids)}
        self._problems: dict[tuple[int, ...], tuple[Problem, dict[Hashable, Any]]] = {}
        self._believed: dict[int, Tensor] = {}  # the network's last x0 [C, H, W] of images with censored entries, by row

    def start(self, images: Sequence[_Image]) -> State:
        parts = []
        for group in self._groups(images):
            with self._count_calls(group):
                context = self._context(group)
                first = torch.tensor([self._grid(image).times[0] for image in group])
                parts.append(self.plan.method.start(replace(context, origin=self._origin(context)), first))
        return State.join(parts)

    def travel(self, images: Sequence[_Image], state: State) -> tuple[list[_Image], State]:
        """Moves every image whose next move is upward back up."""
        moved = list(images)
        for i, image in enumerate(images):
            times = self._grid(image).times
            while times[image.position + 1] > times[image.position]:
                now, up = (torch.tensor([times[image.position + k]]) for k in (0, 1))
                with self._count_calls([image]):
                    one = self.plan.method.travel(self._context([image]), state.select(torch.tensor([i])), now, up)
                state = _put(state, i, one)
                image = replace(image, position=image.position + 1)
            moved[i] = image
        return moved, state

    def step(self, images: Sequence[_Image], state: State, index: int) -> Step:
        """One evaluation of every image."""
        parts, first, looked = [], 0, self._is_looked_at(images)
        for group in self._groups(images):
            with self._count_calls(group):
                parts.append(self._step(group, state.select(torch.arange(first, first + len(group))), index, looked))
            first += len(group)
        return _join(parts)

    def finish(self, image: _Image, state: State) -> Tensor:
        """The restored image [C, H, W]."""
        with self._count_calls([image]):
            context = self._context([image])
            restored = self.plan.method.finish(context, state)
            for item in self.plan.plugins:
                restored = item.conclude(restored, context.problem)
            return restored[0]

    def _step(self, images: Sequence[_Image], state: State, index: int, looked: bool) -> Step:
        plan, grids = self.plan, [self._grid(image) for image in images]
        names, here = [image.name for image in images], [image.position for image in images]
        t = torch.tensor([grid.times[p] for grid, p in zip(grids, here)])
        info = StepInfo(names, here, [image.visits for image in images], t, grids)
        context = self._context(images, info)
        estimate = plan.method.estimate(context, state, t)
        context = self._believe(context, images, estimate.prediction.x0)
        x0, sigma, mean = estimate.prediction.x0, None, None
        if self.estimator is not None and looked:
            sigma = self.estimator(context.ask, estimate.x, t, estimate.prediction, names).clamp(0, 1)
            if sigma.shape != x0.shape:
                raise LeaderError(f"The estimator of Sigma returned the shape {list(sigma.shape)}; expected {list(x0.shape)}.")
            mean = sigma.mean((1, 2, 3)).cpu()  # the only device transfer of a step: the rest reads it here
            if not bool(torch.isfinite(mean).all()):
                raise _not_a_number(x0, int(t.max()))
        there = [self._pace(grids[i], position, None if mean is None else float(mean[i])) for i, position in enumerate(here)]
        u = torch.tensor([grid.times[p] for grid, p in zip(grids, there)])
        if sigma is not None:
            for item in plan.plugins:
                x0 = item.modulate(x0, sigma, info, context.problem)
            context = self._pose_problem(context, sigma, info)
        x0_hat = plan.method.correct(context, state, estimate, context.scattered(x0, u), t, u)
        for item in plan.plugins:
            x0_hat = item.settle(x0, x0_hat, self.prior, context.problem)
        moved = plan.method.advance(context, state, estimate, x0_hat, t, u)
        jump = torch.tensor([b - a for a, b in zip(here, there)])
        return Step(tuple(names), index, t, u, moved, x0, x0_hat, sigma, mean, jump)

    def _is_looked_at(self, images: Sequence[_Image]) -> bool:
        """Whether Sigma of one of the images is wanted at its position: then all have it, so that a Step is whole."""
        return self._looked is None or any(image.position in self._looked[self._grid(image)] for image in images)

    def _believe(self, context: Context, images: Sequence[_Image], x0: Tensor) -> Context:
        """The context with censored entries filled in from x0; valid until the next network call."""
        if self.problem.censored is None:
            return context
        self._believed.update((image.row, one) for image, one in zip(images, x0.detach(), strict=True))
        return replace(context, problem=self._impute([image.row for image in images]))

    def _impute(self, rows: Sequence[int]) -> Problem:
        """The problem of some images as methods and plug-ins see it: an ordinary measurement, by the last answers if any."""
        problem = self._problem(tuple(rows))[0]
        if problem.censored is None or rows[0] not in self._believed:
            return problem.impute()
        return problem.impute(torch.stack([self._believed[row] for row in rows]))

    def _pose_problem(self, context: Context, sigma: Tensor, info: StepInfo) -> Context:
        """The context with the metric of the first plug-in that has one."""
        for item in self.plan.plugins:
            metric = item.metric(self.prior, sigma, info, context.problem)
            if metric is not None:
                return replace(context, given_metric=metric)
        return context

    def _pace(self, grid: Grid, position: int, uncertainty: float | None) -> int:
        there = position + 1
        if uncertainty is None:
            return there
        for item in self.plan.plugins:
            there = max(there, item.pace(grid, position, uncertainty))
        if there > grid.farthest(position):
            raise LeaderError("A plug-in paced past the end of the current descending run of the grid.")
        return there

    def _context(self, images: Sequence[_Image], info: StepInfo | None = None) -> Context:
        rows = [image.row for image in images]
        problem, lasting = self._impute(rows), self._problem(tuple(rows))[1]
        predict: Predict = self.prior.predict
        if info is not None:
            for item in self.plan.plugins:
                predict = item.wrap(predict, info)

        def noise(name: str) -> Tensor:
            if name == "start" and self.x_T is not None:
                return self.x_T[rows].to(problem.y)
            return torch.cat([self._draw(image, name, problem.image_shape, info is not None) for image in images]).to(problem.y)

        return Context(Ask(self.prior, predict), problem, self.prior.schedule, noise, lasting=lasting)

    def _draw(self, image: _Image, name: str, shape: Sequence[int], stepping: bool) -> Tensor:
        """The draw [1, C, H, W] of an image where it stands; inside a step the first plug-in that opposes it decides."""
        grid = self._grid(image)

        def white(position: int) -> Tensor:
            return self.noise([image.name], [grid.labels[position]], name, shape)

        found = (item.oppose(white, name, grid, image.position) for item in self.plan.plugins if stepping)
        opposed = next((draw for draw in found if draw is not None), None)
        return white(image.position) if opposed is None else opposed

    def _grid(self, image: _Image) -> Grid:
        return self.plan.grids[image.row]

    def _origin(self, context: Context) -> Tensor | None:
        """The clean image a plug-in lets the run begin from; the first that knows one decides."""
        if not self.plan.method.takes_origin:
            return None
        found = (item.origin(self.prior, context.problem, context.noise) for item in self.plan.plugins)
        return next((origin for origin in found if origin is not None), None)

    def _problem(self, rows: tuple[int, ...]) -> tuple[Problem, dict[Hashable, Any]]:
        """The problem of some images, and what methods keep about it."""
        if rows not in self._problems:
            if len(rows) > 1:
                self._problems.clear()  # batches shrink as images leave: keep the current one only
            self._problems[rows] = (self.problem.select(torch.tensor(rows)), {})
        return self._problems[rows]

    def _groups(self, images: Sequence[_Image]) -> list[Sequence[_Image]]:
        """The images that are evaluated together."""
        return [[image] for image in images] if self.prior.takes_one_by_one(self.problem.y.device) else [images]

    @contextmanager
    def _count_calls(self, images: Sequence[_Image]) -> Iterator[None]:
        """What a method does for these images: counted in this run's ledger, without gradients unless it asks for them."""
        with torch.no_grad(), recording(self.ledger, [image.name for image in images]):
            yield


def _put(state: State, row: int, one: State) -> State:
    """The batch state with one row replaced."""
    index = [torch.arange(row), torch.arange(row + 1, state.x.shape[0])]
    return State.join([part for part in (state.select(index[0]), one, state.select(index[1])) if len(part.x)])


def _join(parts: Sequence[Step]) -> Step:
    if len(parts) == 1:
        return parts[0]

    def cat(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else torch.cat(values)

    return Step(
        tuple(name for part in parts for name in part.ids),
        parts[0].index,
        cat("t"),
        cat("u"),
        State.join([part.state for part in parts]),
        cat("x0"),
        cat("x0_hat"),
        cat("sigma"),
        cat("U"),
        cat("jump"),
    )


__all__ = ["Plan", "Sampler"]
