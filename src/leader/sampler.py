"""The one reverse loop: a generator of Steps.

    ask    = plug-ins.wrap(prior.predict)
    pred   = method.estimate(ask, state, t)
    Sigma  = estimator(ask, x, t, pred)
    u      = plug-ins.pace(grid, position, U)
    x0     = plug-ins.modulate(pred.x0, Sigma)
    x0_hat = method.correct(state, pred, x0, t, u)
    state  = method.advance(state, pred, x0_hat, t, u)

Each image walks its own times and leaves when it is done. On the CPU images are taken one by one, so that an image gives the
same bits alone, in any batch and in any order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

import torch
from torch import Tensor

from leader import presets
from leader.errors import LeaderError
from leader.methods import METHODS, Context, Method, State, make_method
from leader.noise import Noise, SeededNoise
from leader.plugins import PLUGINS, Moment, Plugin, expand, make_plugin
from leader.priors.ask import Ask, Predict
from leader.priors.base import Prior
from leader.priors.ledger import Ledger
from leader.problem import Problem
from leader.result import Result, Step, Visit
from leader.schedule import Grid, make_grid
from leader.uncertainty import Estimator, make_estimator

TRUST_TIME = 100
"""Default time at which the posterior spread is kept for the Result."""


@dataclass(frozen=True)
class Plan:
    """A run with every choice made."""

    method: Method
    plugins: tuple[Plugin, ...]
    grid: Grid
    estimator: str | None
    settings: dict[str, Any]


@dataclass
class _Walk:
    """Where the images of a run stand: the bookkeeping of the loop."""

    ids: list[int]
    positions: list[int]
    visits: list[int]
    rows: list[int]
    state: State
    trace: dict[int, list[Visit]] = field(default_factory=dict)


class Sampler:
    """A prior, a method, plug-ins and the number of steps; `run` a problem or watch its `steps`.

    plugins    names ("leader", "ucpm", "satp", ...) or instances, applied in order
    grid       None for the method's own, a name ("uniform", "linspace", "quadratic", "respaced"), or a Grid
    estimator  how Sigma is estimated: "auto", a name, or None to leave it out where no plug-in needs it
    settings   settings of the method; a dict under a plug-in's name holds that plug-in's settings
               What is not given comes from the presets of the prior for the problem's task and noise.
    """

    def __init__(
        self,
        prior: Prior,
        method: str | Method = "ddnm",
        plugins: Sequence[str | Plugin] | str = ("leader",),
        steps: int = 100,
        *,
        grid: str | Grid | None = None,
        estimator: str | None = "auto",
        probes: int = 1,
        trust_time: int = TRUST_TIME,
        use_presets: bool = True,
        **settings: Any,
    ) -> None:
        self.prior = prior
        self.method = method
        self.plugins = expand((plugins,) if isinstance(plugins, str) else tuple(plugins))
        self.count = steps
        self.grid = grid
        self.estimator = estimator
        self.probes = probes
        self.trust_time = trust_time
        self.use_presets = use_presets
        self.settings = settings
        if isinstance(method, str):
            own = {key: value for key, value in settings.items() if key not in PLUGINS}
            make_method(method, own)  # wrong names are told before anything runs

    def plan(self, problem: Problem) -> Plan:
        """Every choice made for this problem: settings, presets, grid."""
        name = self.method if isinstance(self.method, str) else self.method.name
        sigma = float(problem.sigma.max()) / 2
        found = presets.find(self.prior.name, name, problem.operator.task, sigma) if self.use_presets else {}
        given = {key: value for key, value in self.settings.items() if key not in PLUGINS}
        preset = {key: value for key, value in found.items() if key not in PLUGINS}
        method = make_method(name, {**preset, **given}) if isinstance(self.method, str) else self.method
        plugins = tuple(
            item if isinstance(item, Plugin) else make_plugin(item, {**found.get(item, {}), **self.settings.get(item, {})})
            for item in self.plugins
        )
        if method.term is not None and any(item.takes_over == method.term for item in plugins):
            method = method.without_term()
        method.check(problem)
        if isinstance(self.grid, Grid):
            grid = self.grid
        elif self.grid is not None:
            grid = make_grid(self.grid, self.count, len(self.prior.schedule))
        else:
            grid = method.default_grid(self.prior.schedule, self.count)
        for item in plugins:
            grid = item.grid(grid, self.prior.schedule)
        estimator = self.estimator
        if estimator is None and any(item.needs_sigma for item in plugins):
            estimator = "auto"
        return Plan(method, plugins, grid, estimator, self._describe(method, plugins, grid, estimator))

    def _describe(self, method: Method, plugins: Iterable[Plugin], grid: Grid, estimator: str | None) -> dict[str, Any]:
        return {
            "prior": self.prior.name,
            "method": {"name": method.name, **_settings(method)},
            "plugins": [{"name": item.name, **_settings(item)} for item in plugins],
            "steps": self.count,
            "grid": list(grid.times),
            "estimator": estimator,
            "probes": self.probes,
            "trust_time": self.trust_time,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }

    def run(
        self,
        problem: Problem,
        seed: int = 0,
        *,
        ids: Sequence[int] | None = None,
        x_T: Tensor | None = None,
        noise: Noise | None = None,
    ) -> Result:
        """Restores the problem. Arguments as in `steps`."""
        walk = self.steps(problem, seed, ids=ids, x_T=x_T, noise=noise)
        while True:
            try:
                next(walk)
            except StopIteration as end:
                result: Result = end.value
                return result

    def steps(
        self,
        problem: Problem,
        seed: int = 0,
        *,
        ids: Sequence[int] | None = None,
        x_T: Tensor | None = None,
        noise: Noise | None = None,
    ) -> Generator[Step, None, Result]:
        """The loop. Yields a Step per round; its return value is the Result.

        ids    names of the images, which choose their noise; 0, 1, ... by default
        x_T    the starting noise [B, C, H, W] instead of a draw
        noise  a source of draws instead of the seeded one
        """
        return _loop(self, problem, seed, ids, x_T, noise)


def _loop(
    sampler: Sampler,
    problem: Problem,
    seed: int,
    ids: Sequence[int] | None,
    x_T: Tensor | None,
    noise: Noise | None,
) -> Generator[Step, None, Result]:
    plan = sampler.plan(problem)
    names = list(range(problem.batch)) if ids is None else list(ids)
    if len(names) != problem.batch or len(set(names)) != len(names):
        raise LeaderError(f"The problem has {problem.batch} images; found the ids {names}.")
    room = _Room(sampler, plan, problem, noise or SeededNoise(seed), x_T)
    ledger = Ledger()
    walk = room.begin(names, ledger)
    restored: dict[int, Tensor] = {}
    spread: dict[int, Tensor] = {}
    index = 0
    while walk.ids:
        room.travel(walk)
        step, spread_now, done = room.round(walk, ledger, index)
        for image, row in spread_now.items():
            spread.setdefault(image, row)
        restored.update(done)
        index += 1
        yield step
    images = torch.stack([restored[name] for name in names])
    if not bool(torch.isfinite(images).all()):
        raise LeaderError("The restoration diverged to NaN or infinite values; use smaller step sizes or more steps.")
    stds = torch.stack([spread[name] for name in names]) if len(spread) == len(names) else None
    return Result(images, stds, None, walk.trace, ledger, seed, {**plan.settings, "seed": seed, "ids": names})


class _Room:
    """What stays the same during a run, and the work of one round."""

    def __init__(self, sampler: Sampler, plan: Plan, problem: Problem, noise: Noise, x_T: Tensor | None) -> None:
        self.prior, self.plan, self.problem = sampler.prior, plan, problem
        self.noise, self.x_T, self.trust_time = noise, x_T, sampler.trust_time
        self.estimator: Estimator | None = None
        if plan.estimator is not None:
            self.estimator = make_estimator(plan.estimator, sampler.prior, sampler.probes)
        self.one_by_one = problem.y.device.type == "cpu" if sampler.prior.one_by_one is None else sampler.prior.one_by_one
        self._problems: dict[tuple[int, ...], Problem] = {}

    def begin(self, names: list[int], ledger: Ledger) -> _Walk:
        batch = len(names)
        walk = _Walk(names, [0] * batch, [0] * batch, list(range(batch)), State(torch.empty(batch)))
        walk.trace = {name: [] for name in names}
        t = torch.full((1,), self.plan.grid.times[0])
        parts = []
        for group in self._groups(walk, range(batch)):
            context = self._context(walk, group)
            with torch.no_grad(), self.prior.recording(ledger), ledger.images([names[i] for i in group]):
                parts.append(self.plan.method.start(context, t.expand(len(group))))
        walk.state = State.join(parts)
        return walk

    def travel(self, walk: _Walk) -> None:
        """Takes every image whose next move is upward back up; costs no network call."""
        times = self.plan.grid.times
        for i in range(len(walk.ids)):
            while times[walk.positions[i] + 1] > times[walk.positions[i]]:
                here = walk.positions[i]
                context = self._context(walk, [i])
                keep = torch.tensor([i])
                moved = self.plan.method.travel(
                    context,
                    walk.state.select(keep),
                    torch.tensor([times[here]]),
                    torch.tensor([times[here + 1]]),
                )
                walk.state = _put(walk.state, i, moved)
                walk.positions[i] += 1

    def round(self, walk: _Walk, ledger: Ledger, index: int) -> tuple[Step, dict[int, Tensor], dict[int, Tensor]]:
        """One evaluation of every image; returns the Step, spreads worth keeping, and finished images."""
        parts, states, after = [], [], []
        for group in self._groups(walk, range(len(walk.ids))):
            with (
                torch.no_grad(),
                self.prior.recording(ledger),
                ledger.images([walk.ids[i] for i in group]),
            ):
                step, positions = self._step(walk, group, index)
            parts.append(step)
            states.append(step.state)
            after.extend(positions)
        step = _join(parts)
        spread, done = {}, {}
        for i, image in enumerate(step.ids):
            now, then = int(step.t[i]), int(step.u[i])
            mean = None if step.U is None else float(step.U[i])
            walk.trace[image].append(Visit(now, then, mean, int(step.jump[i])))
            if step.sigma is not None and (now <= self.trust_time or then == -1):
                spread[image] = step.sigma[i].clamp_min(0).sqrt()
            if then == -1:
                keep = torch.tensor([i])
                done[image] = self.plan.method.finish(self._context(walk, [i]), step.state.select(keep))[0]
        stay = [i for i in range(len(walk.ids)) if int(step.u[i]) != -1]
        walk.state = step.state.select(torch.tensor(stay, dtype=torch.long))
        walk.ids = [walk.ids[i] for i in stay]
        walk.rows = [walk.rows[i] for i in stay]
        walk.positions = [after[i] for i in stay]
        walk.visits = [walk.visits[i] + 1 for i in stay]
        return step, spread, done

    def _step(self, walk: _Walk, group: Sequence[int], index: int) -> tuple[Step, list[int]]:
        plan, grid = self.plan, self.plan.grid
        names = [walk.ids[i] for i in group]
        here = [walk.positions[i] for i in group]
        state = walk.state.select(torch.tensor(list(group)))
        t = torch.tensor([grid.times[p] for p in here])
        moment = Moment(names, here, [walk.visits[i] for i in group], t)
        context = self._context(walk, group, moment)
        estimate = plan.method.estimate(context, state, t)
        x0, sigma, mean = estimate.prediction.x0, None, None
        if self.estimator is not None:
            sigma = self.estimator(context.ask, estimate.x, t, estimate.prediction, names).clamp(0, 1)
            mean = sigma.mean((1, 2, 3))
        there = [self._pace(position, None if mean is None else float(mean[i])) for i, position in enumerate(here)]
        u = torch.tensor([grid.times[p] for p in there])
        if sigma is not None:
            for item in plan.plugins:
                x0 = item.modulate(x0, sigma, moment, context.problem)
        x0_hat = plan.method.correct(context, state, estimate, x0, t, u)
        moved = plan.method.advance(context, state, estimate, x0_hat, t, u)
        jump = torch.tensor([b - a for a, b in zip(here, there)])
        return Step(tuple(names), index, t, u, moved, x0, x0_hat, sigma, mean, jump), there

    def _pace(self, position: int, uncertainty: float | None) -> int:
        grid, there = self.plan.grid, position + 1
        if uncertainty is None:
            return there
        for item in self.plan.plugins:
            there = max(there, item.pace(grid, position, uncertainty))
        if there > max(grid.run_ends[position], position + 1):
            raise LeaderError("A plug-in paced past the end of the current descending run of the grid.")
        return there

    def _context(self, walk: _Walk, group: Sequence[int], moment: Moment | None = None) -> Context:
        names = [walk.ids[i] for i in group]
        here = [walk.positions[i] for i in group]
        problem = self._problem(tuple(walk.rows[i] for i in group))
        predict: Predict = self.prior.predict
        if moment is not None:
            for item in self.plan.plugins:
                predict = item.wrap(predict, moment, self.plan.grid)

        def noise(name: str) -> Tensor:
            if name == "start" and self.x_T is not None:
                return self.x_T[[walk.rows[i] for i in group]].to(problem.y)
            return self.noise(names, here, name, problem.image_shape).to(problem.y)

        return Context(Ask(self.prior, predict), problem, self.prior.schedule, noise)

    def _problem(self, rows: tuple[int, ...]) -> Problem:
        if rows not in self._problems:
            if len(rows) > 1:
                self._problems.clear()  # batches shrink as images leave: keep the current one only
            self._problems[rows] = self.problem.select(torch.tensor(rows))
        return self._problems[rows]

    def _groups(self, walk: _Walk, rows: Iterable[int]) -> list[list[int]]:
        chosen = list(rows)
        return [[i] for i in chosen] if self.one_by_one else [chosen]


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


def _settings(item: object) -> dict[str, Any]:
    return asdict(item) if is_dataclass(item) and not isinstance(item, type) else {}


__all__ = ["METHODS", "Plan", "Sampler"]
