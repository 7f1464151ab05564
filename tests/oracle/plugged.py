"""Whole runs of a host with UCPM, SATP and EquS as dense NumPy recursions, written from the published equations.

One image at a time, as vectors [N], in a `World` whose estimates, Sigma_t and gradients are closed forms (`walk`); without
plug-ins and with one Gaussian a host is an affine map of its draws, whose law is known (`law`). Hosts are in `plugged_hosts`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from tests.oracle.dense import Array, At, Draw, World


@cache
def difference_matrices(shape: tuple[int, int, int], periodic: bool = False) -> tuple[Array, Array]:
    """Forward differences down and right as matrices [N, N]; across the last row and column zero, or periodic."""
    channels, height, width = shape
    index = np.arange(channels * height * width).reshape(shape)
    matrices = []
    for axis, length in ((1, height), (2, width)):
        matrix = np.zeros((index.size, index.size))
        for place in range(length if periodic else length - 1):
            here = np.take(index, place, axis).ravel()
            there = np.take(index, (place + 1) % length, axis).ravel()
            matrix[here, here], matrix[here, there] = -1, 1
        matrices.append(matrix)
    return matrices[0], matrices[1]


def pirp_term(x: Array, shape: tuple[int, int, int], width: float, argument: str = "curvature") -> Array:
    """R(x) = sum_d D_d^T (exp(-L_d^2 / 2 g^2) D_d x), L_d = D_d^T D_d x or the "gradient" D_d x, with periodic differences."""
    total = np.zeros_like(x)
    for D in difference_matrices(shape, periodic=True):
        seen = D.T @ D @ x if argument == "curvature" else D @ x
        total = total + D.T @ (np.exp(-(seen**2) / (2 * width**2)) * (D @ x))
    return total


def tv_hessian(x: Array, shape: tuple[int, int, int], smoothing: float = 0.05) -> Array:
    """The Hessian [N, N] of sum sqrt(d^2 + r^2 + e^2), d and r the differences down and right, second derivatives by hand."""
    down, right = difference_matrices(shape)
    d, r = down @ x, right @ x
    cube = (d**2 + r**2 + smoothing**2) ** 1.5
    dd, rr, dr = (r**2 + smoothing**2) / cube, (d**2 + smoothing**2) / cube, -d * r / cube
    cross = down.T @ np.diag(dr) @ right
    return down.T @ np.diag(dd) @ down + right.T @ np.diag(rr) @ right + cross + cross.T


@dataclass(frozen=True)
class UCPM:
    """xbar = x0 - Sigma / (1 + M Sigma) grad Phi(x0), and Q."""

    phi: str = "tv"
    lam: float = 0.2
    solve: str = "diagonal"
    map: str = "local"
    sharpen: float = 0.0
    width: float = 0.01
    argument: str = "curvature"
    project: str = "clean"

    def __call__(self, world: World, x0: Array, sigma: Array) -> Array:
        if self.map == "mean":
            sigma = np.full_like(sigma, sigma.mean())
        change = self._change(world, x0, sigma)
        if self.sharpen:
            laplacian = sum(D.T @ D for D in difference_matrices(world.shape)) @ x0
            U = sigma.mean()
            change = change + np.minimum(self.sharpen * U * np.exp(-sigma / U), 1 / 32) * laplacian
        if world.sigma == 0 or self.project == "always":
            change = change - world.pinv @ (world.A @ change)
        return x0 + change

    def _change(self, world: World, x0: Array, sigma: Array) -> Array:
        if self.phi == "pirp":
            # lam > 0 sharpens: the term is concave, M = 0. lam < 0 smooths: 2 diag(D^T W D) <= 8 for weights up to 1.
            majoriser = 0 if self.lam > 0 else -8 * self.lam
            return sigma / (1 + majoriser * sigma) * self.lam * pirp_term(x0, world.shape, self.width, self.argument)
        down, right = difference_matrices(world.shape)
        length = np.sqrt((down @ x0) ** 2 + (right @ x0) ** 2 + 0.05**2) if self.phi == "tv" else np.ones_like(x0)
        W = np.diag(self.lam / length)
        H = down.T @ W @ down + right.T @ W @ right
        if self.solve == "hessian":
            return np.linalg.solve(np.diag(1 / sigma) + self.lam * tv_hessian(x0, world.shape), -H @ x0)
        if self.solve == "cg":
            return np.linalg.solve(np.diag(1 / sigma) + H, -H @ x0)
        return -sigma / (1 + 2 * np.diag(H) * sigma) * (H @ x0)


@dataclass(frozen=True)
class UCDC:
    """The data step in the metric of diag(Sigma), solved until it is exact."""

    covariance: str = "diagonal"
    power: float = 1.0
    trust: float = 1.0
    iterations: int = 1000
    visible: float = 1e-13
    floor: float = 1e-9
    only_unmeasured: bool = False
    map: str = "local"
    scatter: float = 0.0

    def spread(self, sigma: Array) -> Array:
        if self.map == "mean":
            return np.full_like(sigma, sigma.mean())
        return sigma**self.power * sigma.mean() / (sigma**self.power).mean()


@dataclass(frozen=True)
class SATP:
    """Delta = max(1, floor(eta (B / (U + 1e-8))^(1/rho))) steps of a grid of at most 100, scaled by T/100 above."""

    budget: float = 0.01
    eta: float = 2.0
    rho: float = 1.0
    rule: str = "scaled"

    def next(self, times: Sequence[int], uniform: bool, here: int, U: float) -> int:
        stop = here + 1
        while stop + 1 < len(times) - 1 and times[stop + 1] <= times[stop]:
            stop += 1  # the end of the descending run, and never past the last time before -1
        reach: float = self.eta * (self.budget / (U + 1e-8)) ** (1 / self.rho)
        if self.rule == "written":
            return min(here + max(1, math.floor(reach)), len(times) - 1 if times[stop + 1 :] in ((-1,), ()) else stop)
        if uniform:
            reach *= max(1.0, (len(times) - 1) / 100)
            return min(here + max(1, math.floor(reach)), stop)
        lowest = times[here] - 10 * max(1, math.floor(reach))
        reached: list[int] = [j for j in range(here + 1, stop + 1) if times[j] >= lowest]
        return max(reached, default=here + 1)


@dataclass
class Look:
    """What a host got from the network: where it asked, the estimate, the noise, Cov[x0 | x_t], and its guidance."""

    point: Array
    x0: Array
    eps: Array
    cov: Array
    guidance: Array | None = None


@dataclass(frozen=True)
class Visited:
    """One line of the expected story of an image."""

    t: int
    u: int
    jump: int
    U: float
    sigma: Array
    x0: Array
    x0_hat: Array
    x: Array


@dataclass
class Story:
    """The whole expected run of an image."""

    visits: list[Visited] = field(default_factory=list)
    image: Array = None
    posterior_std: Array = None
    calls: int = 0
    backwards: int = 0


class Host:
    """A method as its equations; `settings` are its published symbols."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.world, self.settings = world, settings
        self.calls = self.backwards = 0
        self.ucdc: UCDC | None = None
        self.spread: Array = None
        """Sigma in the metric's shape, [N], where there is one."""

    def ask(self, x: Array, t: int) -> Look:
        self.calls += 1
        return Look(x, *self.world.network(x, t))

    def flow(self, x: Array, t: int, steps: int) -> Look:
        """The probability flow from x to a clean image by DDIM steps of equal length in time; Sigma is that at t."""
        here, a, cov = x, self.world.ab(t), None
        for k in range(steps, 0, -1):
            look, b = self.ask(here, t * k // steps), self.world.ab(t * (k - 1) // steps)
            here, cov = np.sqrt(b) * look.x0 + np.sqrt(1 - b) * look.eps, look.cov if cov is None else cov
        return Look(x, look.x0, (x - np.sqrt(a) * look.x0) / np.sqrt(1 - a), cov)

    def back(self, r: Array, eta: float, euclid: bool = False) -> Array:
        """A^T (A A^T + eta)^{-1} r, A^+ r for eta = 0; in a metric W A^T (A W A^T + eta)^{-1} r, W of mean 1."""
        A, spread = self.world.A, None if euclid else self.spread
        WAt = A.T if spread is None else (spread / spread.mean())[:, None] * A.T
        if eta == 0:
            return self.world.pinv @ r if spread is None else WAt @ np.linalg.pinv(A @ WAt, rcond=1e-12, hermitian=True) @ r
        return WAt @ np.linalg.solve(A @ WAt + eta * np.eye(len(A)), r)

    def expected(self, x0: Array, taken: bool = False) -> Array:
        """E[x0 | x_t, y] in a metric, x0 itself without one; `taken`: the host then takes measured components from y."""
        if self.ucdc is None:
            return x0
        w = self.world
        change = self.back(w.y - w.A @ x0, w.sigma**2 / self.ucdc.trust / self.spread.mean())
        return x0 + change - (w.pinv @ w.A @ change if taken and self.ucdc.only_unmeasured else 0)

    def start(self, first: int, draw: At) -> Any:
        return draw("start")

    def look(self, state: Any, t: int, draw: At) -> Look:
        return self.ask(state, t)

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return x0

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Any:
        raise NotImplementedError

    def travel(self, state: Any, look: Look, now: int, up: int, draw: At) -> Any:
        """Back up to `up` by the forward process."""
        kept = self.world.ab(up) / self.world.ab(now)
        return np.sqrt(kept) * state + np.sqrt(1 - kept) * draw("travel")

    def shown(self, state: Any) -> Array:
        """x of the state that the loop shows."""
        return state

    def output(self, state: Any) -> Array:
        return state

    def pack(self, state: Any) -> Array:
        """All that the next step depends on, as rows [M, K]."""
        return state

    def unpack(self, rows: Array) -> Any:
        return rows


DRAWS = ("step", "observation", "extra", "scatter")
"""What a step may draw."""


def law(host: Host, times: Sequence[int]) -> tuple[Array, Array]:
    """Mean [N] and covariance [N, N] of the output over all draws: the host's affine maps, composed. States are columns."""
    size = host.world.A.shape[1]
    none, each = np.zeros((size, 1)), np.eye(size)

    def given(fresh: str = "") -> At:
        return lambda name: each if name == fresh else none

    def step(rows: Array, t: int, u: int, draw: At) -> Array:
        state = host.unpack(rows)
        look = host.look(state, t, draw)
        return host.pack(host.advance(state, look, host.correct(state, look, look.x0, t, u), t, u, draw))

    def spread(parts: Sequence[Array], middle: Array) -> Array:
        return np.asarray(sum((part - middle) @ (part - middle).T for part in parts))

    mean = host.pack(host.start(times[0], given()))
    cov = spread([host.pack(host.start(times[0], given(name))) for name in ("start", "extra")], mean)
    for t, u in pairwise(times):
        after = step(mean, t, u, given())
        move = step(mean + np.eye(len(mean)), t, u, given()) - after
        cov = move @ cov @ move.T + spread([step(mean, t, u, given(n)) for n in DRAWS], after)
        mean = after
    shown = host.output(host.unpack(np.eye(len(mean))))
    return host.output(host.unpack(mean))[:, 0], shown @ cov @ shown.T


def walk(
    host: Host,
    times: Sequence[int],
    uniform: bool,
    draw: Draw,
    ucpm: UCPM | None = None,
    satp: SATP | None = None,
    ucdc: UCDC | None = None,
    turn: Array | None = None,
    trust_time: int = 100,
) -> Story:
    """The run of one image. `turn`: EquS transforms the network by this permutation on even steps, counted down."""
    story, world = Story(), host.world
    planned = sum(1 for now, after in pairwise(times) if after <= now)

    def at(position: int) -> At:
        return lambda name: draw(position, name)

    world.impute()
    state, here, look = host.start(times[0], at(0)), 0, None
    while times[here] != -1:
        while times[here + 1] > times[here]:
            assert look is not None
            state, here = host.travel(state, look, times[here], times[here + 1], at(here)), here + 1
        t = times[here]
        world.turn = turn if turn is not None and (planned - 1 - len(story.visits)) % 2 == 0 else None
        look = host.look(state, t, at(here))
        world.impute(look.x0)
        sigma = np.clip(np.diag(look.cov), 0, 1)
        U = float(sigma.mean())
        there = here + 1 if satp is None else satp.next(times, uniform, here, U)
        u = times[there]
        x0 = look.x0 if ucpm is None else ucpm(world, look.x0, sigma)
        known = x0
        if ucdc is not None:
            host.ucdc, host.spread = ucdc, ucdc.spread(sigma)
            if ucdc.scatter and u >= 0:
                known = x0 + ucdc.scatter * np.sqrt(host.spread) * at(here)("scatter")
        hat = host.correct(state, look, known, t, u)
        state = host.advance(state, look, hat, t, u, at(here))
        story.visits.append(Visited(t, u, there - here, U, sigma, x0, hat, host.shown(state)))
        if story.posterior_std is None and (t <= trust_time or u == -1):
            story.posterior_std = np.sqrt(sigma)
        here = there
    story.image, story.calls, story.backwards = host.output(state), host.calls, host.backwards
    return story
