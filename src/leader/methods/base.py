"""The contract of a method: how it starts, what it asks of the network, how it uses y, how it moves on.

A method owns its default grid and clamps. It never chooses the next time and never looks at Sigma: the loop
does both. Its dataclass fields are its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from leader.by_name import check_settings
from leader.errors import LeaderError
from leader.operators.base import SpectralOperator
from leader.operators.caches import per_image as per_image
from leader.priors.ask import Ask
from leader.priors.base import Prediction
from leader.problem import Problem
from leader.schedule import Grid, Level, Schedule, grid_on, uniform_grid
from leader.uncertainty.metric import Euclidean, Metric

S = TypeVar("S", bound="State")
V = TypeVar("V")


@dataclass(frozen=True)
class State:
    """The state of a batch of images: tensors with leading B. Methods add fields of their own.

    >>> State(torch.zeros(4, 3, 8, 8)).select(torch.tensor([0, 2])).x.shape
    torch.Size([2, 3, 8, 8])
    """

    x: Tensor

    def select(self: S, keep: Tensor) -> S:
        """The state of the images `keep`; the same object if these are all of them, in order."""
        if torch.equal(keep.cpu(), torch.arange(len(self.x))):
            return self  # large pictures have no room for copies
        return replace(self, **{item.name: getattr(self, item.name)[keep] for item in fields(self)})

    @staticmethod
    def join(states: Sequence[S]) -> S:
        """The batch of several states."""
        if len(states) == 1:
            return states[0]
        names = [item.name for item in fields(states[0])]
        return replace(states[0], **{name: torch.cat([getattr(s, name) for s in states]) for name in names})


@dataclass(frozen=True)
class Estimate:
    """What the network gave a method: the input, the prediction, and a guidance gradient if the method took one.

    >>> Estimate(torch.zeros(1, 3, 8, 8), leader.Prediction(torch.zeros(1, 3, 8, 8), torch.zeros(1, 3, 8, 8))).guidance is None
    True
    """

    x: Tensor
    prediction: Prediction
    guidance: Tensor | None = None


@dataclass(frozen=True)
class Cost:
    """The network calls of a method: upper bounds, since an early stop may save some.

    forward   evaluations per visited time
    backward  reverse-mode passes per visited time
    start     evaluations before the first time

    >>> Cost(forward=2, backward=1)
    Cost(forward=2, backward=1, start=0)
    """

    forward: int = 1
    backward: int = 0
    start: int = 0


@dataclass(frozen=True)
class Context:
    """What is fixed during one step: the network, the problem, the schedule and the draws of these images.

    noise(name) -> standard normal [B, C, H, W], the same on every call.
    origin      the clean image a run starts from, [B, C, H, W], if a plug-in provides one; otherwise it starts from noise
    lasting     values that are valid for these images during the whole run, by key
    given_metric  the metric of the data step, if a plug-in provides one

    >>> Context.__dataclass_fields__.keys() >= {'ask', 'problem', 'schedule', 'noise'}
    True
    """

    ask: Ask
    problem: Problem
    schedule: Schedule
    noise: Callable[[str], Tensor]
    origin: Tensor | None = None
    lasting: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    given_metric: Metric | None = None
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result of make(), computed once per step for each `key`."""
        return _compute_once(self._known, key, make)

    def always(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result of make(), computed once per run for each `key`, if it depends only on operator and noise level."""
        return _compute_once(self.lasting, key, make)

    def per_measurement(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result of make(), computed again when y changes: once per run, or once per step if entries are censored."""
        known = self.lasting.get(key)
        if known is None or known[0] is not self.problem.y:
            known = self.lasting[key] = (self.problem.y, make())
        value: V = known[1]
        return value

    @property
    def metric(self) -> Metric:
        """The metric of the data step: that of a plug-in, or else the Euclidean one."""
        return Euclidean(self.problem.operator) if self.given_metric is None else self.given_metric

    def expected(self, x0: Tensor, taken: bool = False) -> Tensor:
        """E[x0 | x_t, y] if a plug-in's metric knows how uncertain x0 is; otherwise x0 itself.

        taken  whether the method then takes the measured components from y, each at its own noise
        """
        if self.given_metric is None:
            return x0
        return x0 + self.given_metric.expect(-self.problem.residual(x0), self.problem.sigma, taken)

    def scattered(self, x0: Tensor, u: Tensor) -> Tensor:
        """x0, or a draw around it where a plug-in's metric asks for one; where this step gives the answer (u = -1) the mean."""
        change = None if self.given_metric is None else self.given_metric.scatter(lambda: self.noise("scatter"))
        if change is None:
            return x0
        return x0 + torch.where(per_image(u.to(x0.device) < 0, x0), torch.zeros_like(change), change)

    def level(self, t: Tensor) -> Level:
        """Signal and noise at times t, in the dtype of the problem."""
        return self.schedule.level(t, self.problem.y)

    def beginning(self, t: Tensor) -> Tensor:
        """x at the first times t: pure noise, or the origin at the noise level of t."""
        noise = self.noise("start")
        if self.origin is None:
            return noise
        level = self.level(t)
        return level.signal * self.origin + level.noise * noise


def _compute_once(known: dict[Hashable, Any], key: Hashable, make: Callable[[], V]) -> V:
    if key not in known:
        known[key] = make()
    value: V = known[key]
    return value


class Method:
    """A zero-shot restoration method. Subclasses are frozen dataclasses whose fields are their settings.

    name, paper, summary  for humans; label: the name in tables, the class name by default
    needs                 what it needs from the operator
    calls_per_step        network calls per visited time, for humans
    draws                 names of its random draws besides those of `leader.noise`
    needs_metric          whether its data step needs a plug-in's metric: the plan adds `ucdc` if no plug-in has one
    takes_origin          whether a run may start late, from a clean image that a plug-in provides
    revision              raised by one whenever the numbers of the method change; part of the keys of benchmark records
    term                  an image prior the method applies itself, which a plug-in may take over ("pirp")

    >>> issubclass(METHODS["ddnm"], Method)
    True
    """

    name: ClassVar[str]
    label: ClassVar[str | None] = None
    paper: ClassVar[str] = "unpublished"
    summary: ClassVar[str] = ""
    needs: ClassVar[str] = "A and its adjoint"
    draws: ClassVar[tuple[str, ...]] = ()
    calls_per_step: ClassVar[str] = "1"
    term: ClassVar[str | None] = None
    takes_origin: ClassVar[bool] = True
    needs_metric: ClassVar[bool] = False
    revision: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, "method", self.name)

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        """The default grid."""
        return grid_on(schedule, steps, uniform_grid)

    @property
    def cost(self) -> Cost:
        """The network calls of a run, known before it starts."""
        return Cost()

    def check(self, problem: Problem) -> None:
        """Rejects, before the first network call, a problem that the method does not support."""

    def without_term(self) -> Method:
        """The method with its own image prior switched off, for a plug-in that takes it over."""
        return self

    def start(self, context: Context, t: Tensor) -> State:
        """The state at the first time: noise, centred on a plug-in's clean image if there is one."""
        return State(context.beginning(t))

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        """Asks the network at times t [B]."""
        return Estimate(state.x, context.ask(state.x, t))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        """The clean estimate x0 (possibly modulated by plug-ins) made consistent with the data."""
        return x0

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        """The state at the next times u [B] (-1: clean)."""
        raise NotImplementedError(f"{type(self).__name__} must implement advance")

    def travel(self, context: Context, state: State, t: Tensor, u: Tensor) -> State:
        """The state moved back up from times t to times u > t."""
        raise LeaderError(f"The method '{self.name}' does not support time travel; use a grid that only descends.")

    def finish(self, context: Context, state: State) -> Tensor:
        """The restored image, [B, C, H, W], not clamped."""
        return state.x


def spectral(problem: Problem, method: str) -> SpectralOperator:
    """The operator of the problem, which must have a known SVD."""
    if not isinstance(problem.operator, SpectralOperator):
        raise LeaderError(
            f"The method '{method}' needs the singular value decomposition of the operator, which "
            f"'{problem.operator.task}' does not offer; use ddnm, ddpg, diffpir, dps or sitcom."
        )
    return problem.operator
