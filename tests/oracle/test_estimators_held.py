"""The cheap estimators of Sigma by what they are said to be: means at borders, memory, number of probes."""

from __future__ import annotations

import numpy as np
import torch

from leader.priors.ask import Ask
from leader.priors.base import Prediction
from leader.priors.ledger import Ledger, recording
from leader.uncertainty.estimators import Difference, Hutchinson, fisher, local_mean, make_estimator
from tests.oracle.cases import gaussian, states

SHAPE = (1, 9, 11)


def window_mean(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], side: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The mean over what lies inside the image, pixel by pixel."""
    height, width = values.shape
    out, half = np.empty_like(values), side // 2
    for i in range(height):
        for j in range(width):
            out[i, j] = values[max(0, i - half) : i + half + 1, max(0, j - half) : j + half + 1].mean()
    return out


def test_local_means_leave_out_what_lies_outside() -> None:
    values = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert np.allclose(local_mean(values)[0, 0].numpy(), window_mean(values[0, 0].numpy(), 7))
    assert torch.allclose(local_mean(torch.ones(1, 1, 9, 9)), torch.ones(1))


def test_fisher_is_the_square_of_s_times_what_the_noise_lacks() -> None:
    prior, t = gaussian("correlated", SHAPE), torch.tensor([300])
    x = states(prior, 300, 1)
    prediction = prior.predict(x, t)
    abar = float(prior.schedule.abar(300))
    eps = prediction.eps[0, 0].numpy()
    expected = (1 - abar) / abar * (1 - window_mean(eps**2, 7))
    assert np.allclose(fisher(Ask(prior), x, t, prediction, [0])[0, 0].numpy(), expected, rtol=1e-6)


def test_difference_starts_at_one_and_remembers_half() -> None:
    prior, estimator = gaussian("white", SHAPE), Difference()
    zero = torch.zeros(1, *SHAPE)

    def visit(value: float, image: int = 0) -> float:
        x0 = torch.full((1, *SHAPE), value)
        sigma = estimator(Ask(prior), zero, torch.tensor([5]), Prediction(x0, zero), [image])
        return float(sigma.mean())

    assert visit(0.0) == 1.0
    assert abs(visit(0.2) - (0.5 * 1.0 + 0.04)) < 1e-6
    assert abs(visit(0.5) - (0.5 * 0.54 + 0.09)) < 1e-6
    assert visit(0.5, image=1) == 1.0, "another image has a memory of its own"


def test_the_number_of_probes_is_that_of_jvps_and_they_are_averaged() -> None:
    prior, t = gaussian("white", SHAPE), torch.tensor([300])
    x = states(prior, 300, 1)
    prediction = prior.predict(x, t)
    assert prediction.variance is not None
    with recording(Ledger()) as ledger:
        sigma = make_estimator("hutchinson", prior, probes=3)(Ask(prior), x, t, prediction, [0])
    assert ledger.total.jvps == 3 and ledger.total.calls == 0
    assert torch.allclose(sigma, prediction.variance.double(), rtol=1e-6), "exact where pixels are independent"
    assert torch.allclose(Hutchinson(1)(Ask(prior), x, t, prediction, [0]), sigma, rtol=1e-6)
