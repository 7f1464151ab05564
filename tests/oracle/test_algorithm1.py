"""`leader-paper` against Algorithm 1 of the paper, line by line, in dense NumPy; without noise and with it.

The host whose data step is line 10 and whose move is line 17 is DDNM in its plain form: the DDIM noise of the paper is
sigma = eta sqrt(1 - abar). Times of the paper count down from T to 0, the clean image: t is the grid's time at position T - t.
"""

import math
from typing import Any

import numpy as np
import pytest

from leader import Sampler, Step
from leader.methods import PIRP
from leader.plugins import UCPM
from leader.result import drain
from tests.oracle.dense import World
from tests.oracle.plugged import difference_matrices, pirp_term, tv_hessian
from tests.oracle.scenes import IDS, ForeignNoise, scene

STEPS, ETA_NOISE, LAM = 25, 0.6, 0.3
CLEAN, NOISY = (0.0, 0.0), (0.05, 0.03)


def algorithm1(w: World, times: tuple[int, ...], draw: Any, lam: float, B: float, eta: float) -> list[dict[str, Any]]:
    """Every line of Algorithm 1 for one image; rho = 1, epsilon = 1e-8, Phi = lam TV. Lines as the paper counts them."""
    N = len(w.V)
    identity = np.eye(N)
    projector = identity - w.pinv @ w.A
    down, right = difference_matrices(w.shape)
    T = len(times) - 1
    x = draw(0, "start")  # 1
    t, told = T, []
    while t > 0:  # 2
        now = times[T - t]
        a = w.ab(now)
        x0, eps, cov = w.network(x, now)
        assert np.allclose(x0, (x - math.sqrt(1 - a) * eps) / math.sqrt(a))  # 4
        F = (identity - a / (1 - a) * cov) / (1 - a)  # 5, by Tweedie's second order formula
        Sigma = np.diag(np.clip(np.diag((1 - a) / a * (identity - (1 - a) * F)), 0, 1))  # 6, its diagonal
        H = lam * tv_hessian(x0, w.shape)
        Lambda = Sigma @ np.linalg.inv(identity + H @ Sigma)  # 8
        d, r = down @ x0, right @ x0
        length = np.sqrt(d**2 + r**2 + 0.05**2)
        xbar = x0 - Lambda @ (lam * (down.T @ (d / length) + right.T @ (r / length)))  # 9
        xhat = w.pinv @ w.y + projector @ xbar  # 10
        U = np.trace(Sigma) / N  # 12
        Delta = max(1, math.floor(eta * (B / (U + 1e-8)) ** (1 / 1)))  # 13
        after = max(0, t - Delta)  # 14
        b = w.ab(times[T - after])
        sigma = ETA_NOISE * math.sqrt(1 - b)
        z = draw(T - t, "step")  # 16
        x = math.sqrt(b) * xhat + math.sqrt(max(0, 1 - b - sigma**2)) * eps + sigma * z  # 17
        seen = {"U": U, "sigma": np.diag(Sigma), "x0_hat": xhat, "x": x}
        told.append({"t": now, "u": times[T - after], "jump": t - after, **seen})
        t = after  # 18
    return told


def run(made: Any, method: str = "ddnm", plugins: Any = "leader-paper", **settings: Any) -> tuple[list[Step], Any]:
    steps: list[Step] = []
    sampler = Sampler(made.prior, method, plugins, STEPS, use_presets=False, **settings)
    result = drain(sampler.iterate(made.problem, 1, ids=IDS, noise=ForeignNoise()), steps.append)
    return steps, result


@pytest.mark.parametrize("B", [0.01, 0.05])
@pytest.mark.parametrize(("name", "sigmas"), [("cs", CLEAN), ("holes", CLEAN), ("cs", NOISY), ("blur", NOISY)])
def test_every_line(name: str, sigmas: tuple[float, float], B: float) -> None:
    made, eta = scene(name, sigmas), 4.0
    settings: dict[str, Any] = {
        "ucpm-paper": {"lam": LAM},
        "satp-paper": {"eta": eta} if B == 0.01 else {"eta": eta, "budget": B},
    }
    steps, result = run(made, form="plain", eta=ETA_NOISE, **settings)
    times, source = tuple(result.settings["grid"]), ForeignNoise()
    jumps = []
    for row, (image, world) in enumerate(zip(IDS, made.worlds)):
        lines = algorithm1(world, times, lambda p, kind, i=image: source.one(i, p, kind, made.shape).ravel(), LAM, B, eta)
        trace = result.trace[image]
        assert [(v.t, v.u, v.jump) for v in trace] == [(v["t"], v["u"], v["jump"]) for v in lines]
        jumps.append([v["jump"] for v in lines])
        for index, wanted in enumerate(lines):
            step = steps[index]
            k = step.ids.index(image)
            assert step.sigma is not None
            found = {"sigma": step.sigma[k], "x0_hat": step.x0_hat[k], "x": step.state.x[k]}
            for key, value in found.items():
                assert np.abs(value.numpy().ravel() - wanted[key]).max() < 2e-5, f"{key}, image {image}, step {index}"
        assert np.abs(result.images[row].numpy().ravel() - lines[-1]["x"]).max() < 2e-5
        if sigmas == CLEAN:
            assert np.abs(world.A @ result.images[row].numpy().ravel() - world.y).max() < 1e-9, "Proposition 4.1"
    assert all(max(own) > 1 for own in jumps), "jumps happen"
    if B == 0.05:
        assert any(v.u == -1 and v.jump > 1 for trace in result.trace.values() for v in trace), "a jump down to the clean image"


@pytest.mark.parametrize("argument", ["curvature", "gradient"])
@pytest.mark.parametrize("sigmas", [CLEAN, NOISY])
def test_on_pirp_its_own_term_is_taken_over(sigmas: tuple[float, float], argument: Any) -> None:
    """The host's term with the host's strength, weighted by Sigma and projected; the host adds none itself."""
    made = scene("cs", sigmas)
    host = PIRP(lam=0.7, width=0.15, argument=argument)
    sampler = Sampler(made.prior, host, "leader-paper", STEPS, use_presets=False)
    plan = sampler.plan(made.problem)
    ucpm = plan.plugins[0]
    assert isinstance(plan.method, PIRP) and plan.method.lam == 0
    assert isinstance(ucpm, UCPM) and (ucpm.phi, ucpm.lam, ucpm.width, ucpm.argument) == ("pirp", 0.7, 0.15, argument)
    bare = next(Sampler(made.prior, host, (), STEPS, estimator="auto", use_presets=False).iterate(made.problem, 1))
    step = next(sampler.iterate(made.problem, 1))
    for row, world in enumerate(made.worlds):
        assert step.sigma is not None
        x0, sigma = bare.x0[row].numpy().ravel(), step.sigma[row].numpy().ravel()
        change = 0.7 * sigma * pirp_term(x0, made.shape, 0.15, argument)
        wanted = x0 + change - world.pinv @ (world.A @ change)
        assert np.abs(step.x0[row].numpy().ravel() - wanted).max() < 1e-9
        assert np.abs(wanted - x0).max() > 1e-3
