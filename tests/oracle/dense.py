"""A linear problem with a prior of Gaussians as NumPy sees it: a dense matrix, its SVD and inverses, estimates in closed form.

Nothing comes from the code under test but the matrix A.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import norm

Array: TypeAlias = Any
"""A float64 ndarray; NumPy types products with its scalars as Any."""
Draw = Callable[[int, str], Array]
"""draw(position, name) -> standard normal [N]."""
At = Callable[[str], Array]
"""The draws of one position."""


@dataclass(frozen=True)
class Part:
    """One Gaussian of the mixture: its weight, mean [N] and covariance [N, N]."""

    weight: float
    mean: Array
    cov: Array


@dataclass
class World:
    """y = A x + sigma z with x from a mixture of Gaussians, in [-1, 1] units; abar[-1] must be 1.

    With one Gaussian, y and its mean may be columns [m, 1] and [N, 1]: states are then columns [N, K] too, so that what maps
    one state maps a whole identity matrix.
    """

    A: Array
    y: Array
    sigma: float
    parts: tuple[Part, ...]
    abar: Array
    shape: tuple[int, int, int] = (1, 1, 1)
    rcond: float = 1e-3
    limits: tuple[Array, ...] | None = None
    """Entries of y that were clipped, at their lower and at their upper limit."""
    turn: Array | None = None
    """Permutation G of the pixels in which the network is asked at the moment (EquS), or None."""
    raw: bool = False
    """Whether the noise is left in that frame."""
    _known: dict[int, list[tuple[Array, Array, Array]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        u, values, vt = np.linalg.svd(self.A)
        size, like = self.A.shape[1], self.y.shape[1:]
        kept = np.where(values > self.rcond * values.max(), values, 0)
        self.V = vt.T
        self.s = np.concatenate([kept, np.zeros(size - len(kept))]).reshape(-1, *like)
        self.measured = self.s > 0
        self.safe = np.where(self.measured, self.s, 1)
        self.pinv = np.linalg.pinv(self.A, rcond=self.rcond)
        self.U, self.bound = u, self.y
        self.observe(self.y)

    def observe(self, y: Array) -> None:
        """Takes y for the measurement."""
        w = np.zeros_like(self.s + y[:1])
        count = min(self.A.shape)
        w[:count] = (self.U.T @ y)[:count]
        self.y, self.w = y, np.where(self.measured, w, 0)

    def impute(self, x0: Array | None = None) -> None:
        """Takes for clipped entries the mean of what was cut off, assuming x0; at first that A x0 lies at the limits."""
        if self.limits is None:
            return
        y, mean = self.bound, self.bound if x0 is None else self.A @ x0
        for mask, sign in zip(self.limits, (1.0, -1.0)):
            a = sign * (self.bound - mean) / self.sigma
            beyond = self.sigma * (a + np.exp(norm.logpdf(a) - norm.logcdf(a)))
            y = np.where(mask, self.bound - sign * beyond, y)
        self.observe(y)

    def ab(self, t: int) -> float:
        return float(self.abar[t])

    def given(self, t: int) -> list[tuple[Array, Array, Array]]:
        """Of every part: d E[x0 | x_t] / d x_t, Cov[x0 | x_t] and Cov[x_t]."""
        if t not in self._known:
            a, found = self.ab(t), []
            for part in self.parts:
                total = a * part.cov + (1 - a) * np.eye(len(part.cov))
                gain = np.sqrt(a) * np.linalg.solve(total, part.cov).T
                found.append((gain, part.cov - np.sqrt(a) * gain @ part.cov, total))
            self._known[t] = found
        return self._known[t]

    def D(self, x: Array, t: int) -> Array:
        """E[x0 | x_t = x]."""
        return self._network(x, t)[0]

    def eps(self, x: Array, t: int) -> Array:
        return self._network(x, t)[1]

    def network(self, x: Array, t: int) -> tuple[Array, Array, Array]:
        """E[x0 | x_t = x], the noise that goes with it, and Cov[x0 | x_t = x], asked in the current frame."""
        if self.turn is None:
            return self._network(x, t)
        back = np.argsort(self.turn)
        x0, eps, cov = self._network(x[self.turn], t)
        return x0[back], eps if self.raw else eps[back], cov[np.ix_(back, back)]

    def _network(self, x: Array, t: int) -> tuple[Array, Array, Array]:
        a, known = self.ab(t), self.given(t)
        gaps = [x - np.sqrt(a) * part.mean for part in self.parts]
        means = [part.mean + gain @ gap for part, gap, (gain, _, _) in zip(self.parts, gaps, known)]
        x0, cov = means[0], known[0][1]
        if len(self.parts) > 1:
            fits = [gap @ np.linalg.solve(total, gap) + np.linalg.slogdet(total)[1] for gap, (_, _, total) in zip(gaps, known)]
            logs = np.array([np.log(part.weight) - 0.5 * fit for part, fit in zip(self.parts, fits)])
            chance = np.exp(logs - logs.max())
            chance = chance / chance.sum()
            x0 = sum(p * m for p, m in zip(chance, means))
            cov = sum(p * (c + np.outer(m - x0, m - x0)) for p, m, (_, c, _) in zip(chance, means, known))
        return x0, (x - np.sqrt(a) * x0) / np.sqrt(1 - a), cov

    def jacobian(self, cov: Array, t: int) -> Array:
        """d x0 / d x_t, by Tweedie's second order formula."""
        return np.sqrt(self.ab(t)) / (1 - self.ab(t)) * cov
