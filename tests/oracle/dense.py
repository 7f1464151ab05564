"""The affine methods as dense NumPy recursions, written from the published equations.

Nothing here comes from the code under test but the matrix A itself: A is dense, its SVD and pseudo-inverse
are NumPy's, the denoiser is that of N(mean, cov). States are columns [N, K], so that a recursion maps one
path, or a whole identity matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""A float64 ndarray; NumPy types products with its scalars as Any."""
Draw = Callable[[int, str], Array]
"""draw(position, name) -> standard normal [N, 1]."""


@dataclass
class World:
    """y = A x + sigma z with x ~ N(mean, cov), and the schedule. All dense; abar[-1] must be 1."""

    A: Array
    y: Array
    sigma: float
    mean: Array
    cov: Array
    abar: Array
    rcond: float = 1e-3
    _gains: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        u, values, vt = np.linalg.svd(self.A)
        size = self.A.shape[1]
        kept = np.where(values > self.rcond * values.max(), values, 0)
        self.V = vt.T
        self.s = np.concatenate([kept, np.zeros(size - len(kept))])[:, None]
        self.measured = self.s > 0
        self.safe = np.where(self.measured, self.s, 1)
        w = np.zeros((size, 1))
        w[: len(values)] = (u.T @ self.y)[: len(values)]
        self.w = np.where(self.measured, w, 0)
        self.pinv = np.linalg.pinv(self.A, rcond=self.rcond)

    def ab(self, t: int) -> float:
        return float(self.abar[t])

    def D(self, x: Array, t: int) -> Array:
        """E[x0 | x_t = x] for the Gaussian prior."""
        ab = self.ab(t)
        if t not in self._gains:
            total = ab * self.cov + (1 - ab) * np.eye(len(self.cov))
            self._gains[t] = np.sqrt(ab) * np.linalg.solve(total, self.cov).T
        return self.mean + self._gains[t] @ (x - np.sqrt(ab) * self.mean)

    def eps(self, x: Array, t: int) -> Array:
        return (x - np.sqrt(self.ab(t)) * self.D(x, t)) / np.sqrt(1 - self.ab(t))


@dataclass
class Recursion:
    """start -> step ... -> output; z, zo, ze are the draws named start or step, observation, extra."""

    world: World
    settings: dict[str, Any]

    def start(self, first: int, z: Array, ze: Array) -> Array:
        return z

    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        raise NotImplementedError

    def output(self, x: Array) -> Array:
        return x


class DDIM(Recursion):
    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, eta = self.world, self.settings["eta"]
        a, b = w.ab(t), w.ab(u)
        sigma = eta * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        return np.sqrt(b) * w.D(x, t) + np.sqrt(1 - b - sigma**2) * w.eps(x, t) + sigma * z


class DDNM(Recursion):
    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, eta = self.world, self.settings["eta"]
        x0 = w.D(x, t)
        x0h = x0 - w.pinv @ (w.A @ x0 - w.y)
        noise = eta * z + np.sqrt(1 - eta**2) * w.eps(x, t)
        return np.sqrt(w.ab(u)) * x0h + np.sqrt(1 - w.ab(u)) * noise


class DDNMSimple(Recursion):
    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, eta = self.world, self.settings["eta"]
        a, s = np.sqrt(w.ab(u)), np.sqrt(1 - w.ab(u))
        if s >= a * w.sigma:
            lam, gamma = 1.0, np.sqrt(s**2 - (a * w.sigma) ** 2)
        else:
            lam, gamma = s / (a * w.sigma), 0.0
        x0 = w.D(x, t)
        x0h = x0 - lam * w.pinv @ (w.A @ x0 - w.y)
        return a * x0h + gamma * (eta * z + np.sqrt(1 - eta**2) * w.eps(x, t))


class DDNMPlus(Recursion):
    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, eta = self.world, self.settings["eta"]
        a, s = np.sqrt(w.ab(u)), np.sqrt(1 - w.ab(u))
        kept = np.sqrt(1 - eta**2)
        carried = a * w.sigma / w.safe
        clean = w.measured & (s >= carried)
        lam = np.where(clean, 1, w.safe * s * kept / (a * w.sigma))
        d1 = np.where(clean, np.sqrt(np.maximum(s**2 - carried**2, 0)), s * eta)
        d2 = np.where(w.measured, 0, s * kept)
        p, e = w.V.T @ w.D(x, t), w.V.T @ w.eps(x, t)
        p = p - np.where(w.measured, lam * (p - w.w / w.safe), 0)
        return w.V @ (a * p + d1 * (w.V.T @ z) + d2 * e)


class DDRM(Recursion):
    """In the variance-exploding coordinates of the paper: s_u = sqrt((1 - abar) / abar)."""

    def start(self, first: int, z: Array, ze: Array) -> Array:
        w = self.world
        top = np.sqrt((1 - w.ab(first)) / w.ab(first))
        zv = w.V.T @ z
        seen = w.measured & (w.s * top > w.sigma)
        spread = np.sqrt(np.maximum(0, top**2 - (w.sigma / w.safe) ** 2))
        return np.sqrt(w.ab(first)) * (w.V @ np.where(seen, w.w / w.safe + spread * zv, top * zv))

    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, eta, eta_b = self.world, self.settings["eta"], self.settings["eta_b"]
        s_u = np.sqrt((1 - w.ab(u)) / w.ab(u))
        kept = np.sqrt(1 - eta**2)
        p, q, zv = w.V.T @ w.D(x, t), w.V.T @ w.eps(x, t), w.V.T @ z
        rows = np.zeros(np.broadcast_shapes(p.shape, zv.shape))
        for i, s in enumerate(w.s[:, 0]):
            if s > 0 and s * s_u > w.sigma:
                mean = eta_b * w.w[i] / s + (1 - eta_b) * p[i]
                rows[i] = mean + np.sqrt(s_u**2 - (eta_b * w.sigma / s) ** 2) * zv[i]
            elif s > 0 and s * s_u < w.sigma:
                rows[i] = p[i] + kept * s_u * (w.w[i] - s * p[i]) / w.sigma + eta * s_u * zv[i]
            else:
                rows[i] = p[i] + kept * s_u * q[i] + eta * s_u * zv[i]
        return np.sqrt(w.ab(u)) * (w.V @ rows)


class DDPG(Recursion):
    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, k = self.world, self.settings
        a, b = w.ab(t), w.ab(u)
        x0 = w.D(x, t)
        noisy = w.sigma > 0
        if noisy and u == -1:
            return x0
        delta = b ** k["gamma"] if noisy else 0.0
        trust = delta if noisy else 1.0
        eta = max(k.get("eta_floor", 1e-4), k["eta_tilde"] * w.sigma**2)
        r = w.A @ x0 - w.y
        bp = w.A.T @ np.linalg.solve(w.A @ w.A.T + eta * np.eye(len(w.A)), r)
        mu = {0: 1.0, 1: (1 - b) / (1 - a)}[k["mode"]]
        guided = x0 - mu * ((1 - delta) * bp + delta * (w.A.T @ r))
        if not k["inject"]:
            return np.sqrt(b) * guided
        e = (x - np.sqrt(a) * guided) / np.sqrt(1 - a)
        noise = np.sqrt(k["zeta"]) * z + np.sqrt(1 - k["zeta"]) * trust * e
        return np.sqrt(b) * guided + np.sqrt(1 - b) * noise


class DiffPIR(Recursion):
    def start(self, first: int, z: Array, ze: Array) -> Array:
        w = self.world
        a = w.ab(first)
        if not self.settings["image_like"]:
            return np.sqrt(a) * (w.pinv @ w.y) + np.sqrt(1 - a) * z
        # sqrt(a) y = sqrt(a) x + noise of variance a sigma^2; the rest of 1 - a is fresh, if there is a rest.
        return np.sqrt(a) * w.y + np.sqrt(max(0.0, 1 - a - a * w.sigma**2)) * z

    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, k = self.world, self.settings
        a, b = w.ab(t), w.ab(u)
        x0 = w.D(x, t)
        if u == -1:
            return x0
        rho = k["lam"] * (w.sigma / 2) ** 2 * a / (1 - a)
        normal = w.A.T @ w.A + rho * np.eye(w.A.shape[1])
        x0h = np.linalg.solve(normal, w.A.T @ w.y + rho * x0)  # argmin |A x - y|^2 + rho |x - x0|^2
        e = (x - np.sqrt(a) * x0h) / np.sqrt(1 - a)
        s_eta = k["eta"] * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        old = np.sqrt(1 - b - s_eta**2) * e + s_eta * ze
        return np.sqrt(b) * x0h + np.sqrt(1 - k["zeta"]) * old + np.sqrt(k["zeta"] * (1 - b)) * z


class ProjDiff(Recursion):
    """Clean data: the state is x0. Noisy: x0 above x_o, both in pixels."""

    def start(self, first: int, z: Array, ze: Array) -> Array:
        w = self.world
        x0 = w.D(np.sqrt(1 - w.ab(first)) * z, first)
        if w.sigma == 0:
            return x0
        a = self._levels()
        xo = w.V @ (np.sqrt(a) * (w.V.T @ x0) + np.sqrt(1 - a) * (w.V.T @ ze))
        return np.concatenate(np.broadcast_arrays(x0, xo))

    def _levels(self) -> Array:
        w = self.world
        return np.where(w.measured, 1 / (1 + (w.sigma / w.safe) ** 2), 1)

    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, mu = self.world, self.settings["step"]
        ab = w.ab(t)
        if w.sigma == 0:
            estimate = w.D(np.sqrt(ab) * x + np.sqrt(1 - ab) * z, t)
            moved = x + mu * (estimate - x)
            return moved + w.pinv @ (w.y - w.A @ moved)
        c0, co = w.V.T @ x[: len(w.V)], w.V.T @ x[len(w.V) :]
        a, zv = self._levels(), w.V.T @ z
        early = a >= ab
        level = np.where(early, a, ab)
        gap = np.where(early, 1, 1 - a)
        up = np.sqrt(ab / level) * co + np.sqrt(1 - ab / level) * zv
        along = np.sqrt(ab) * c0 + np.sqrt(1 - ab) * (co - np.sqrt(a) * c0) / np.sqrt(gap)
        estimate = w.V.T @ w.D(w.V @ np.where(early, up, along), t)
        beyond = np.where(w.measured & (u < 0), 1, self.settings.get("early_step", 1.0))
        new0 = c0 + np.where(early, beyond, mu) * (estimate - c0)
        newo = np.where(early, np.sqrt(a) * new0 + np.sqrt(1 - a) * (w.V.T @ zo), co)
        newo = np.where(w.measured, np.sqrt(a) * w.w / w.safe, newo)
        return np.concatenate(np.broadcast_arrays(w.V @ new0, w.V @ newo))

    def output(self, x: Array) -> Array:
        return x[: len(self.world.V)]


class ProjDiffSimple(ProjDiff):
    """The form for one singular value, in pixels, with A^+."""

    def _levels(self) -> Array:
        w = self.world
        one = float(w.s.max())
        return np.full_like(w.s, 1 / (1 + (w.sigma / one) ** 2))

    def step(self, x: Array, t: int, u: int, z: Array, zo: Array, ze: Array) -> Array:
        w, mu = self.world, self.settings["step"]
        ab, a = w.ab(t), float(self._levels()[0, 0])
        x0, xo = x[: len(w.V)], x[len(w.V) :]
        if ab <= a:
            change = w.D(np.sqrt(ab / a) * xo + np.sqrt(1 - ab / a) * z, t) - x0
            rest = w.pinv @ (w.A @ change) if u < 0 else np.zeros_like(change)  # measured: the estimate's own at the end
            x0 = x0 + self.settings.get("early_step", 1.0) * (change - rest) + rest
            xo = np.sqrt(a) * x0 + np.sqrt(1 - a) * zo
            xo = xo + w.pinv @ (np.sqrt(a) * w.y - w.A @ xo)
        else:
            e = (xo - np.sqrt(a) * x0) / np.sqrt(1 - a)
            x0 = x0 + mu * (w.D(np.sqrt(ab) * x0 + np.sqrt(1 - ab) * e, t) - x0)
        return np.concatenate(np.broadcast_arrays(x0, xo))


def path(recursion: Recursion, times: Sequence[int], draw: Draw) -> Array:
    """The output [N] for given draws."""
    state = recursion.start(times[0], draw(0, "start"), draw(0, "extra"))
    for position, (t, u) in enumerate(pairwise(times)):
        draws = (draw(position, name) for name in ("step", "observation", "extra"))
        state = recursion.step(state, t, u, *draws)
    return recursion.output(state)[:, 0]


def law(recursion: Recursion, times: Sequence[int]) -> tuple[Array, Array]:
    """Mean [N] and covariance [N, N] of the output over all draws: the recursion's affine maps, composed."""
    size = recursion.world.A.shape[1]
    none, each = np.zeros((size, 1)), np.eye(size)

    def spread(parts: Sequence[Array], middle: Array) -> Array:
        return np.asarray(sum((part - middle) @ (part - middle).T for part in parts))

    mean = recursion.start(times[0], none, none)
    first = [recursion.start(times[0], each, none), recursion.start(times[0], none, each)]
    cov = spread(first, mean)
    for t, u in pairwise(times):
        after = recursion.step(mean, t, u, none, none, none)
        move = recursion.step(mean + np.eye(len(mean)), t, u, none, none, none) - after
        fresh = [
            recursion.step(mean, t, u, each, none, none),
            recursion.step(mean, t, u, none, each, none),
            recursion.step(mean, t, u, none, none, each),
        ]
        cov = move @ cov @ move.T + spread(fresh, after)
        mean = after
    shown = recursion.output(np.eye(len(mean)))
    return recursion.output(mean)[:, 0], shown @ cov @ shown.T
