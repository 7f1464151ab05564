"""What a finished run leaves for its referee: the answer, Sigma at late times, what y leaves of it, the way there, the misfit.

Everything is of one image, in [-1, 1] units, over the frame of its problem. Nothing here asks the network: `Watch` keeps what
the loop shows, the rest are a few products with A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor

from leader.priors.base import Prior
from leader.problem import Problem
from leader.result import Step
from leader.schedule import Grid, Schedule
from leader.trust.remaining import SMALLEST, measure_remaining, measure_remaining_white
from leader.trust.strips import LARGE
from leader.trust.windows import average_windows
from leader.uncertainty.covariance import error_covariance

CLOCKS = (20, 60, 120, 200)
"""Times of the standard clock at which Sigma is looked at: of the visited ones, the nearest."""
LATE = 2
"""Of these times, from the first, those at which what y leaves of Sigma is looked at."""
MOVES = (60, 200)
"""Times at which the way of the answer begins, of which both ends are looked at."""
WAYS = (60, 200)
"""Times up to which, from 0 and from the one before, every step of that way is looked at."""
SCALES = (0.6, 0.06)
"""Standard deviations of a picture and of its fine detail: a pixel counts as seen where A tells more than these and noise."""
CONTRASTS = (3, 5)
"""Sides in pixels of the windows in which the answer's contrast is taken, of its grey and of its colours."""
SURROUNDINGS = (5, 33)
"""Sides in pixels of the windows in which the seen share is averaged: how deep in a hole a pixel lies."""
TILE = 64
"""Pixels a side that are correlated with each other in Sigma: at late times errors are hardly so over a tenth of that."""
PROBES = 2
"""Random signs that A is tried on; their answers are averaged over 7 x 7 pixels where A mixes them."""
LEAST_NOISE = 0.01
"""Noise level assumed at least of a measurement, [-1, 1] units: about one grey level."""
LEAST = 2.5e-4
"""Standard deviation that counts as none, [-1, 1] units, a thirtieth of a grey level: a blur without noise is undone nearly so
well.
"""
CHANNELS = 3 + len(CONTRASTS) + len(CLOCKS) + len(MOVES) + 2 * len(WAYS) + 1 + len(SCALES) + len(SURROUNDINGS) + 3 + LATE
"""Of `Evidence.features`."""


@dataclass(frozen=True)
class Way:
    """What a run showed of one image on its way.

    times    the visited times nearest to `CLOCKS`
    sigma    Sigma there [4, H, W], channels averaged
    x0       the estimates at `MOVES` [2, C, H, W]
    walked   sum of squares, channels averaged, of what the estimate moved by from step to step, in the parts `WAYS` [2, H, W].
             For draws of the posterior its mean is what the step learns, as that of the way from end to end is, but it averages
             over as many draws as there were steps
    pulled   mean square, channels averaged, of what the data changed of the network's own estimate, in the same parts
             [2, H, W]: where that is measured, the true error of the network at that time
    """

    times: tuple[int, ...]
    sigma: Tensor
    x0: Tensor
    walked: Tensor
    pulled: Tensor


class Watch:
    """Keeps what the evidence needs of every image of a run; called with every Step."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._sigma: dict[tuple[int, int], tuple[float, Tensor]] = {}
        self._times: dict[tuple[int, int], int] = {}
        self._x0: dict[tuple[int, int], tuple[float, Tensor]] = {}
        self._before: dict[int, tuple[int, Tensor]] = {}
        self._walked: dict[tuple[int, int], Tensor] = {}
        self._pulled: dict[tuple[int, int], tuple[int, Tensor]] = {}

    def __call__(self, step: Step) -> None:
        for row, name in enumerate(step.ids):
            clock = self.schedule.clock_of(int(step.t[row]))
            times = [] if step.sigma is None else _nearest(self._sigma, name, CLOCKS, clock)
            if step.sigma is not None and times:
                sigma = _over_channels(step.sigma[row].clamp_min(0))  # once: early times are the nearest so far to all of them
                self._sigma.update({(name, time): (_distance(clock, time), sigma) for time in times})
                self._times.update({(name, time): int(step.t[row]) for time in times})
            times = _nearest(self._x0, name, MOVES, clock)
            if times:
                x0 = step.x0_hat[row].half()  # a thousandth is plenty, and pictures may be large
                self._x0.update({(name, time): (_distance(clock, time), x0) for time in times})
            self._walk(name, clock, step.x0_hat[row], step.x0[row])

    def _walk(self, name: int, clock: float, now: Tensor, network: Tensor) -> None:
        if name in self._before:
            earlier, before = self._before.pop(name)
            moved = _over_channels((now - before).square_())
            self._walked[name, earlier] = self._walked[name, earlier] + moved if (name, earlier) in self._walked else moved
        part = next((number for number, end in enumerate(WAYS) if clock < end), None)
        if part is None:
            return
        self._before[name] = part, now.half()
        pull = _over_channels((now - network).square_())
        count, before = self._pulled.get((name, part), (0, pull))
        self._pulled[name, part] = count + 1, before + pull if count else pull

    def find_looks(self, grid: Grid) -> set[int]:
        """The positions of a grid whose Sigma is kept in the end, if all of them are visited."""
        found: set[int] = set()
        for time in CLOCKS:
            apart = {position: _distance(self.schedule.clock_of(grid.times[position]), time) for position in grid.positions}
            found |= {position for position, distance in apart.items() if distance == min(apart.values())}
        return found

    def knows(self, name: int) -> bool:
        """Whether Sigma was estimated for an image."""
        return (name, CLOCKS[0]) in self._sigma

    def apart(self, name: int) -> float:
        """How far the visited times stay from those of `CLOCKS` at most, natural logarithms of the clock."""
        return max(self._sigma[name, clock][0] for clock in CLOCKS) if self.knows(name) else 0.0

    def find_way(self, name: int) -> Way | None:
        """What was kept of an image; None where no Sigma was estimated."""
        if not self.knows(name):
            return None
        sigma = torch.stack([self._sigma[name, clock][1] for clock in CLOCKS])
        nothing = torch.zeros_like(sigma[0])
        pulled = [self._pulled.get((name, part), (1, nothing)) for part in range(len(WAYS))]
        return Way(
            tuple(self._times[name, clock] for clock in CLOCKS),
            sigma,
            torch.stack([self._x0[name, clock][1] for clock in MOVES]),
            torch.stack([self._walked.get((name, part), nothing) for part in range(len(WAYS))]),
            torch.stack([sum_ / count for count, sum_ in pulled]),
        )

    def forget(self, name: int) -> None:
        """Lets go of what was kept of an image: several times its size."""
        for kept in (self._sigma, self._times, self._x0, self._walked, self._pulled):
            for key in [key for key in kept if key[0] == name]:
                del kept[key]
        self._before.pop(name, None)


def _over_channels(values: Tensor) -> Tensor:
    """The mean over the channels of [C, H, W]; twice as fast where they lie one after the other."""
    return values.contiguous().mean(0)


def _nearest(kept: dict[tuple[int, int], tuple[float, Tensor]], name: int, times: tuple[int, ...], clock: float) -> list[int]:
    """Those of some times to which nothing that was kept is nearer than `clock`."""
    return [time for time in times if _distance(clock, time) <= kept.get((name, time), (math.inf,))[0]]


def _distance(clock: float, time: int) -> float:
    """Between two times of the standard clock, on a logarithmic scale."""
    return abs(math.log1p(clock) - math.log1p(time))


@dataclass(frozen=True)
class Evidence:
    """What the referee of one image looks at.

    restored  the answer [C, H, W], clamped
    sigma     Sigma at `CLOCKS` [4, H, W], channels averaged
    moved     rms over channels of the answer minus the estimates at `MOVES` [2, H, W]
    walked    root of the sum of squares of its steps, by parts of the way [2, H, W]; pulled: rms of what the data changed of
              the network's estimates [2, H, W] (see `Way`)
    added     rms over channels of the answer minus what y alone gives, the regularised inverse of y [H, W]
    seen      share of a pixel's variance that A tells beside noise, at `SCALES` [2, H, W] in [0, 1]
    left      what y leaves of Sigma, the diagonal of Cov[x0 | x_t, y], at the first `LATE` of `CLOCKS` [2, H, W]
    misfit    rms over channels of the back-projected residual [H, W]
    known     what an operator that acts pixel by pixel measures [H, W] bool; None for others
    given     A^+ y [C, H, W] where `known`
    noise     standard deviation of the measurement's noise
    residual  rms of A x - y
    """

    restored: Tensor
    sigma: Tensor
    moved: Tensor
    walked: Tensor
    pulled: Tensor
    added: Tensor
    seen: Tensor
    left: Tensor
    misfit: Tensor
    known: Tensor | None
    given: Tensor | None
    noise: float
    residual: float

    @property
    def open(self) -> Tensor:
        """Pixels whose error is a question [H, W] bool: all but those that a noise-free mask hands over."""
        if self.known is None or self.noise > 0:
            return torch.ones_like(self.misfit, dtype=torch.bool)
        return ~self.known

    def features(self) -> Tensor:
        """The channels that the referee sees [CHANNELS, H, W], of order one."""
        picture = self.restored.expand(3, -1, -1) if self.restored.shape[0] == 1 else self.restored[:3]
        noise = max(self.noise, LEAST_NOISE)
        levels = [math.log(noise) + 3, math.log(max(self.residual, LEAST_NOISE / 10) / noise)]
        maps = [
            *picture,
            _log(local_contrast(self.restored.mean(0, keepdim=True), CONTRASTS[0])),
            _log(local_contrast(self.restored, CONTRASTS[1])),
            *_log(self.sigma.sqrt()),
            *_log(self.moved),
            *_log(self.walked),
            *_log(self.pulled),
            _log(average_windows(self.added.square(), 5).sqrt()),
            *(2 * self.seen - 1),
            *(2 * average_windows(self.seen[1], side) - 1 for side in SURROUNDINGS),
            _log(average_windows(self.misfit.square(), 5).sqrt()),
            *(torch.full_like(self.misfit, level) for level in levels),
            *_log(self.left.sqrt()),
        ]
        return torch.stack(maps)

    def cropped(self, top: int, left: int, height: int, width: int) -> Evidence:
        """A part of the frame."""
        parts = {
            item.name: getattr(self, item.name)[..., top : top + height, left : left + width]
            for item in fields(self)
            if isinstance(getattr(self, item.name), Tensor)
        }
        return replace(self, **parts)


def local_contrast(picture: Tensor, side: int = 5) -> Tensor:
    """Standard deviation in a window of side x side around every pixel of [C, H, W], channels joined -> [H, W]."""
    mean, square = average_windows(picture, side), average_windows(picture.square(), side)
    return (square - mean.square()).clamp_min(0).mean(0).sqrt()


@dataclass(frozen=True)
class Told:
    """What the measurement alone tells, the same for all runs on it.

    seen, known, given  those of `Evidence`
    plain               the regularised inverse of y [C, H, W]
    shares              by time, what y leaves of a first run's Sigma, as a share of it [H, W]: the same for others to 0.1 %
    """

    problem: Problem
    seen: Tensor
    known: Tensor | None
    given: Tensor | None
    plain: Tensor
    shares: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def read(cls, problem: Problem, like: Tensor) -> Told:
        """like: images [1, C, H, W] on the device of the answer."""
        seen, known = _find_seen_share(problem, like, float(problem.sigma[0]))
        given = None if known is None else problem.operator.pinv(problem.y)[0]
        return cls(problem, seen, known, given, problem.operator.regularised_pinv(problem.y, _regulariser(problem))[0])

    def holds_for(self, problem: Problem) -> bool:
        """Whether another problem is the same."""
        same = self.problem.operator is problem.operator and torch.equal(self.problem.sigma, problem.sigma)
        return same and torch.equal(self.problem.y, problem.y)


def _regulariser(problem: Problem) -> float:
    return (max(float(problem.sigma[0]), LEAST_NOISE) / SCALES[0]) ** 2


@torch.no_grad()
def gather(prior: Prior, problem: Problem, x: Tensor, watch: Watch, name: int = 0, told: Told | None = None) -> Evidence | None:
    """The evidence of a finished run of one image, x [1, C, H, W]; None where its loop estimated no Sigma.

    told  what the measurement tells, where that was read already
    """
    inside = x.clamp(-1, 1).float()
    problem = problem.draw_censored(inside)
    noise = float(problem.sigma[0])
    kept = watch.find_way(name)
    if kept is None:
        return None
    told = told or Told.read(problem, inside)
    residual = problem.residual(inside)
    back = problem.operator.regularised_pinv(residual, _regulariser(problem))
    return Evidence(
        inside[0],
        kept.sigma.float(),
        torch.stack([(inside[0] - estimate.to(inside)).square().mean(0).sqrt() for estimate in kept.x0]),
        kept.walked.float().sqrt(),
        kept.pulled.float().sqrt(),
        (inside[0] - told.plain).square().mean(0).sqrt(),
        told.seen,
        _find_left(prior, kept, told),
        back[0].square().mean(0).sqrt(),
        told.known,
        told.given,
        noise,
        float(residual.square().mean().sqrt()),
    )


def _find_seen_share(problem: Problem, like: Tensor, noise: float) -> tuple[Tensor, Tensor | None]:
    """The seen shares [2, H, W] and, where A acts pixel by pixel and fully, what it measures [H, W] bool.

    diag A^T (A A^T + eta)^{-1} A from random signs: exact where A does not mix pixels, so that the probes agree; a local mean
    elsewhere.
    """
    draw = torch.Generator().manual_seed(0)
    shape = like.shape[1:]
    together = PROBES if like[0, 0].numel() <= LARGE else 1  # a large picture has room for one probe
    looked = 1 if together > 1 else 8  # and for some rows of the first: where pixels are mixed, probes differ everywhere
    sums: list[Tensor] = [like.new_zeros(shape[1:]) for _ in SCALES]
    firsts: list[Tensor] = []
    apart = [0.0] * len(SCALES)
    begun: Tensor | None = None
    for _ in range(0, PROBES, together):
        drawn = torch.randint(0, 2, (together, *shape), generator=draw, dtype=torch.int8) * 2 - 1
        begun = drawn[:1] if begun is None else begun
        signs = drawn.to(like)
        measured = problem.operator.A(signs)
        for number, scale in enumerate(SCALES):
            eta = (max(noise, LEAST_NOISE) / scale) ** 2
            each = signs * problem.operator.regularised_pinv(measured, eta)
            if len(firsts) <= number:
                firsts.append(each[:1, :, ::looked].clone())
            apart[number] = max(apart[number], float((each[:, :, ::looked] - firsts[number]).abs().max()))
            sums[number] = sums[number] + each.mean((0, 1)) * (together / PROBES)
    exact = max(apart) < 1e-4
    shares = [joined.clamp(0, 1) if exact else average_windows(joined, 7).clamp(0, 1) for joined in sums]
    known = None
    if exact and begun is not None:
        first = begun.to(like)
        known = ((first * problem.operator.AT(problem.operator.A(first)))[0] > 1e-3).all(0)
    return torch.stack(shares), known


def _find_left(prior: Prior, way: Way, told: Told) -> Tensor:
    """What y leaves of Sigma at the late times [2, H, W]: one probe each, the same for every run. A large picture has no room
    for a solve: there all pixels count as equally uncertain and independent.
    """
    problem, known, noise = told.problem, told.known, float(told.problem.sigma[0])
    shape, draw = (1, *problem.image_shape), torch.Generator().manual_seed(0)
    signs = (torch.randint(0, 2, shape, generator=draw, dtype=torch.int8) * 2 - 1).to(problem.y)
    found = []
    for time, sigma in zip(way.times[:LATE], way.sigma.to(problem.y)):
        if time not in told.shares:
            if sigma.numel() > LARGE:
                left = measure_remaining_white(sigma, problem.operator, noise, known, signs)
            else:
                covariance = error_covariance(prior, time, sigma.expand(shape), largest=TILE)
                left = measure_remaining(covariance, sigma, problem.operator, noise, known, signs)
            told.shares[time] = left / sigma.clamp_min(SMALLEST)
        found.append(told.shares[time] * sigma)
    return torch.stack(found)


def _log(values: Tensor) -> Tensor:
    """A standard deviation on a scale of order one."""
    return values.clamp_min(LEAST).log() + 3
