"""A run that draws x0 before every data step has the posterior's own law on any grid, if Sigma is exact and data are clean.

Given x_t of p(x_t | y), a draw of N(E[x0 | x_t], Sigma) moved onto the data in the metric of Sigma is one of p(x0 | x_t, y),
and x_u = sqrt(abar_u) x0 + sqrt(1 - abar_u) z, DDNM's step with eta = 1, is one of p(x_u | y), however long the step is. The
last step answers with the mean, and so lacks Cov[x0 | x_t, y] of the last time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leader.methods import DDNM
from leader.noise import SeededNoise
from leader.plugins.ucdc import UCDC
from leader.sampler import Sampler
from leader.schedule import Grid
from tests.oracle.dense import Array, At
from tests.oracle.plugged import Host, Look, law, walk
from tests.oracle.test_posterior_host import (
    OPERATORS,
    SHAPE,
    SIZE,
    TIMES,
    FromTheTruth,
    posterior,
    power,
    prior,
    problem,
    world,
)

FEW = (TIMES - 1, 800, 350, 120, -1)


class Drawn(Host):
    """DDNM with eta = 1 on clean data: x0 drawn, then conditioned on y by dense algebra."""

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        w, ((_, cov, _),) = self.world, self.world.given(t)
        gain = cov @ w.A.T @ np.linalg.pinv(w.A @ cov @ w.A.T, rcond=1e-12, hermitian=True)
        x0 = hat if u < 0 else hat + self.settings["scatter"] * power(cov, 0.5) @ draw("scatter")
        b = w.ab(u)
        return np.sqrt(b) * (x0 + gain @ (w.y - w.A @ x0)) + np.sqrt(1 - b) * draw("step")


class DrawnFromTheTruth(Drawn):
    start = FromTheTruth.start


@pytest.mark.parametrize("scatter", [0.4, 1.0])
@pytest.mark.parametrize("name", OPERATORS)
def test_path(name: str, scatter: float) -> None:
    source = SeededNoise(11, ("scatter",))

    def draw(position: int, draw_name: str) -> Array:
        return source([0], [position], draw_name, SHAPE).double().flatten().numpy()

    plugin = UCDC(iterations=1000, visible=1e-12, floor=1e-8, scatter=scatter)
    sampler = Sampler(prior(), DDNM(eta=1.0), (plugin,), grid=Grid(FEW), use_presets=False)
    found = sampler.run(problem(name, 0.0), seed=11).images[0]
    expected = walk(Drawn(world(name, 0.0, column=False), scatter=scatter), FEW, True, draw).image
    assert np.abs(found.reshape(-1).numpy() - expected).max() < 1e-7


@pytest.mark.parametrize("name", ["inpaint", "sr", "cs"])
def test_law_is_the_posterior_s_in_four_steps(name: str) -> None:
    mean, cov = posterior(name, 0.0)
    w, a = world(name, 0.0), world(name, 0.0).ab(FEW[-2])
    left = cov - a * cov @ np.linalg.solve(a * cov + (1 - a) * np.eye(SIZE), cov)  # Cov[x0 | x_t, y]
    laws = {s: law(DrawnFromTheTruth(w, scatter=s, truth=(mean, cov)), FEW) for s in (0.0, 1.0)}
    assert np.abs(laws[1.0][0] - mean[:, 0]).max() < 1e-9
    assert np.abs(laws[1.0][1] - (cov - left)).max() < 1e-9
    assert np.trace(laws[0.0][1]) < 0.5 * np.trace(cov - left), "means alone lose most of what there is to know"
