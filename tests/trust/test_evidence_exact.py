"""What the referee sees, against closed forms: where A is the identity every product with A and its inverse is known."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.censoring import Censored
from leader.operators import Blur, Denoising, LinearOperator, build_task
from leader.problem import Problem
from leader.result import Step
from leader.sampler import Sampler
from leader.trust.evidence import Evidence, Watch, gather
from tests.cheap_prior import CheapPrior, photograph

Found = tuple[Problem, Tensor, Evidence, list[tuple[int, Tensor, Tensor]]]
"""The problem, the answer, its evidence, and of every step its time, the corrected estimate and the network's own."""
SIZE, SIGMA = 16, 0.1
Q = 2 * SIGMA
"""The noise in [-1, 1] units."""


@pytest.fixture(scope="module")
def found() -> Found:
    prior = CheapPrior()
    problem = Problem.simulate(photograph(SIZE, SIZE)[None], build_task("denoise", (3, SIZE, SIZE)), SIGMA, seed=3)
    watch = Watch(prior.schedule)
    steps: list[tuple[int, Tensor, Tensor]] = []

    def both(step: Step) -> None:
        watch(step)
        steps.append((int(step.t[0]), step.x0_hat[0].clone(), step.x0[0].clone()))

    result = Sampler(prior, "ddnm", (), 25).run(problem, on_step=both)
    evidence = gather(CheapPrior(), problem, result.images, watch)
    assert evidence is not None
    return problem, result.images[0].clamp(-1, 1), evidence, steps


def _rms(values: Tensor) -> Tensor:
    return values.square().mean(0).sqrt()


def test_maps_of_a_denoised_picture(found: Found) -> None:
    problem, x, evidence, steps = found
    y, eta = problem.y[0], (Q / 0.6) ** 2
    assert evidence.noise == pytest.approx(Q)
    torch.testing.assert_close(evidence.added, _rms(x - y / (1 + eta)), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(evidence.misfit, _rms(x - y) / (1 + eta), atol=1e-5, rtol=1e-4)
    assert evidence.residual == pytest.approx(float((x - y).square().mean().sqrt()), rel=1e-4)
    for row, scale in enumerate((0.6, 0.06)):
        np.testing.assert_allclose(evidence.seen[row], 1 / (1 + (Q / scale) ** 2), rtol=1e-4)
    for row, clock in enumerate((60, 200)):
        places = [abs(np.log1p(t) - np.log1p(clock)) for t, _, _ in steps]
        near = steps[int(np.argmin(places))][1]
        torch.testing.assert_close(evidence.moved[row], _rms(x - near), atol=2e-3, rtol=2e-3)


def test_the_way_is_the_sum_of_its_steps_and_the_pull_their_mean(found: Found) -> None:
    evidence, steps = found[2], found[3]
    for row, (first, end) in enumerate(((0, 60), (60, 200))):
        walked = sum((_rms(b[1] - a[1]).square() for a, b in pairwise(steps) if first <= a[0] < end), torch.zeros(SIZE, SIZE))
        pulls = [_rms(x0_hat - x0).square() for t, x0_hat, x0 in steps if first <= t < end]
        torch.testing.assert_close(evidence.walked[row], walked.sqrt(), atol=2e-3, rtol=2e-3)
        torch.testing.assert_close(evidence.pulled[row], torch.stack(pulls).mean(0).sqrt(), atol=1e-5, rtol=1e-4)


def test_channels_after_those_of_picture_sigma_and_way(found: Found) -> None:
    """Added, seen at both scales, seen in both surroundings, misfit: each at its place, averaged over 5 x 5 pixels."""
    evidence = found[2]
    features = evidence.features().double().numpy()
    window = (slice(6, 11), slice(4, 9))  # around row 8, column 6

    def log(values: Tensor) -> float:
        return float(np.log(np.sqrt(np.square(values.double().numpy()[window]).mean())) + 3)

    assert features[15, 8, 6] == pytest.approx(log(evidence.added), abs=1e-4)
    np.testing.assert_allclose(features[16:18], 2 * evidence.seen.double().numpy() - 1, atol=1e-5)
    np.testing.assert_allclose(features[18:20], 2 * float(evidence.seen[1, 0, 0]) - 1, atol=1e-4)
    assert features[20, 8, 6] == pytest.approx(log(evidence.misfit), abs=1e-4)
    assert len(features) == 25


def test_surroundings_say_how_deep_in_a_hole_a_pixel_lies() -> None:
    mask = torch.ones(40, 40)
    mask[10:30, 10:30] = 0
    problem = Problem.simulate(photograph(40, 40)[None], build_task("inpaint", (3, 40, 40), mask=mask))
    prior = CheapPrior()
    watch = Watch(prior.schedule)
    result = Sampler(prior, "ddnm", (), 5).run(problem, on_step=watch)
    evidence = gather(CheapPrior(), problem, result.images, watch)
    assert evidence is not None
    near, far = evidence.features()[18:20].double()
    seen = float(evidence.seen[1, 0, 0])
    inside = mask.double().numpy() * seen
    assert float(near[20, 20]) == pytest.approx(-1, abs=1e-6), "nothing seen within two pixels"
    assert float(near[11, 20]) == pytest.approx(2 * inside[9:14, 18:23].mean() - 1, abs=1e-4)
    assert float(far[20, 20]) == pytest.approx(2 * inside[4:37, 4:37].mean() - 1, abs=1e-4)


def watched(operator: LinearOperator) -> tuple[Problem, Watch]:
    prior = CheapPrior()
    problem = Problem.internal(torch.zeros(1, 3, 8, 8), operator, 0.1)
    watch = Watch(prior.schedule)
    Sampler(prior, "ddnm", (), 4).run(problem, on_step=watch)
    return problem, watch


def test_an_answer_is_judged_as_it_is_shown() -> None:
    problem, watch = watched(Denoising((3, 8, 8)))
    loud = gather(CheapPrior(), problem, torch.full((1, 3, 8, 8), 3.0), watch)
    assert loud is not None and float(loud.restored.max()) == 1 and loud.residual == pytest.approx(1.0)


@pytest.mark.parametrize(("beside", "known"), [(0.0, True), (0.01, False)])
def test_a_camera_that_mixes_pixels_a_little_knows_none_of_them(beside: float, known: bool) -> None:
    problem, watch = watched(Blur((3, 8, 8), torch.tensor([[beside, 1 - 2 * beside, beside]])))
    evidence = gather(CheapPrior(), problem, torch.zeros(1, 3, 8, 8), watch)
    assert evidence is not None and (evidence.known is not None) == known


def test_clipped_entries_are_judged_as_the_answer_fills_them() -> None:
    operator, x = Denoising((3, 8, 8)), torch.full((1, 3, 8, 8), 0.9)
    y = torch.ones(1, 3, 8, 8)
    problem = Problem(y, operator, 0.1, censored=Censored.at_limits(y))
    watch = Watch(CheapPrior().schedule)
    Sampler(CheapPrior(), "ddnm", (), 4).run(problem, on_step=watch)
    evidence = gather(CheapPrior(), problem, x, watch)
    assert evidence is not None
    assert evidence.residual == pytest.approx(float(problem.draw_censored(x).residual(x).square().mean().sqrt()))
