"""Is weak noise worth removing? Not if the network expects its estimate to be hardly closer to the truth than the picture.

Fine texture all over a picture looks like weak noise to every estimator, and is lost if it is mistaken for noise. The network
predicts the error of its estimate: unknown texture makes that larger than the noise. The picture is then left as it is, with a
note, since there was nothing to gain.
"""

from dataclasses import replace

import torch

from leader.forensics.blur.views import middle
from leader.messages import Note, Remedy
from leader.operators import Blur, Denoising
from leader.priors.base import Prior
from leader.problem import Problem
from leader.restoration.pose import PosedProblem

WEAK = 0.025
"""Standard deviation, for [0, 1] images, above which noise is always removed: it is visible, and seldom texture."""
GAINED = 0.89
"""Share of the noise below which the expected error must lie: an answer that is better than the picture by 1 dB. Clean
textures that look noisy have 0.89 to 4 of it (docs/lab/weak-noise.md).
"""


@torch.no_grad()
def expected_error(prior: Prior, problem: Problem) -> float | None:
    """Root mean square, for [0, 1] images, of the error that the network predicts for its estimate of a noisy picture.

    The picture is a state at the time with the same noise; only the middle of a large one is used. None if the network predicts
    no error.
    """
    y = problem.impute().y[(..., *middle(tuple(problem.y.shape[-2:])))]
    t = torch.tensor([prior.schedule.nearest(float(problem.sigma[0]))], device=y.device)
    seen = prior.predict(prior.schedule.level(t, y).signal * y, t)
    return None if seen.variance is None else float(seen.variance.double().clamp_min(0).mean().sqrt()) / 2


def leaves_nothing_open(problem: Problem) -> bool:
    """Whether the measurement is the picture: nothing was done to it, and there is no noise."""
    operator = problem.operator
    untouched = isinstance(operator, Denoising) or (isinstance(operator, Blur) and operator.kernel[0].numel() == 1)
    return untouched and not bool(problem.sigma.any())


def left_where_nothing_is_gained(posed: PosedProblem, prior: Prior) -> PosedProblem:
    """The problem; without noise if weak white noise was found that the prior could not remove with a gain."""
    plain = isinstance(posed.problem.operator, Denoising) and posed.noise is None
    if not (plain and posed.white and 0 < posed.sigma < WEAK):
        return posed
    error = expected_error(prior, posed.problem)
    if error is None or error < GAINED * posed.sigma:
        return posed
    fact = (
        f"What was found is noise of {255 * posed.sigma:.1f} grey levels, or texture that looks like it, and removing it would "
        f"leave errors of {255 * error:.1f}: the picture is left as it is."
    )
    note = Note("weak noise", fact, Remedy("remove it", {"sigma": float(f"{posed.sigma:.2g}")}))
    problem = replace(posed.problem, sigma=torch.zeros_like(posed.problem.sigma), censored=None)
    return replace(posed, problem=problem, sigma=0.0, notes=(*posed.notes, note))
