"""A head is called where its variance is read, and nowhere else; what is read is the same as ever."""

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from leader import Problem, Sampler, load_prior
from leader.methods import shared, sitcom
from leader.operators import Denoising, build_task
from leader.priors.adapters import HeadedPrior
from leader.priors.base import Prediction
from leader.priors.int8 import Int8Body
from leader.priors.pyramid_net import Body
from leader.priors.variance_head import VarianceHead
from leader.restoration.ensemble import ensemble
from leader.result import Step
from leader.schedule import Grid, Schedule
from leader.trust import Watch, add_errors
from leader.trust.evidence import CLOCKS

from ..cheap_prior import CheapPrior, photograph

SHAPE = (3, 32, 32)


@pytest.fixture
def heads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The features' numbers of every call of a pyramid's head."""
    called: list[int] = []
    for kind in (Body, Int8Body):
        plain = kind.log_variance

        def counted(self, features, sigma, level, plain=plain):  # type: ignore[no-untyped-def]
            called.append(features.numel())
            return plain(self, features, sigma, level)

        monkeypatch.setattr(kind, "log_variance", counted)
    yield called


def measured() -> Problem:
    return Problem.simulate(photograph(*SHAPE[1:])[None], build_task("deblur-gaussian", SHAPE), 0.02, 0)


def test_a_prediction_that_is_not_asked_for_its_variance_calls_no_head(heads: list[int]) -> None:
    prior, x, t = load_prior(), torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(0)), torch.tensor([150])
    answer = prior.predict(x, t)
    assert not heads
    once = answer.variance
    assert once is not None and len(heads) == 1 and answer.variance is once and len(heads) == 1
    torch.func.jvp(lambda v: prior.predict(v, t).x0, (x,), (x,))
    assert len(heads) == 1


def test_a_run_without_an_estimator_calls_no_head(heads: list[int]) -> None:
    prior, problem = load_prior(), measured()
    for method in ("ddnm", "diffpir", "dps"):
        Sampler(prior, method, (), 5, estimator=None).run(problem)
    assert not heads
    Sampler(prior, "ddnm", (), 5, grid=Grid((200, 150, 100, 50, 5, -1))).run(problem)
    assert len(heads) == 5


def test_a_restoration_calls_the_head_where_trust_looks(heads: list[int]) -> None:
    """The times nearest to 20, 60, 120 and 200, and the first at or below 100; the bits are those of looking everywhere."""
    prior, problem, seen = load_prior(), measured(), []
    grid = Grid((300, 210, 180, 130, 90, 55, 24, 10, 3, -1))
    sampler = Sampler(prior, "ddnm", (), grid=grid)
    found = ensemble(problem, 1, sampler=sampler, on_step=lambda step: seen.append((int(step.t[0]), step.sigma is not None)))
    looked = [time for time, has in seen if has]
    assert looked == [210, 130, 90, 55, 24] and len(heads) == 5
    steps: list[Step] = []
    whole = sampler.run(problem, on_step=steps.append)
    assert all(step.sigma is not None for step in steps)
    assert torch.equal(whole.images, found.runs.images)
    watch = Watch(prior.schedule)
    for step in steps:
        watch(step)
    result, _ = add_errors(prior, problem, whole, watch)
    assert found.error_std is not None and result.error_std is not None and result.posterior_std is not None
    assert torch.equal(result.error_std, found.runs.error_std)  # type: ignore[arg-type]
    assert torch.equal(result.posterior_std, found.runs.posterior_std)  # type: ignore[arg-type]


def test_images_that_walk_other_times_have_a_sigma_together() -> None:
    """Each is looked at as it would be alone, and a Step has a Sigma of all of its images or of none."""
    both = Problem.internal(torch.zeros(2, 3, 16, 16), Denoising((3, 16, 16)), torch.tensor([0.05, 0.4]))
    sampler = Sampler(load_prior(), "ddnm", "direct", 20, use_presets=False)
    found = ensemble(both, 1, sampler=sampler)
    for row in range(2):
        alone = ensemble(both.select(torch.tensor([row])), 1, sampler=sampler, ids=[row])
        for name in ("images", "posterior_std", "error_std"):
            assert torch.equal(getattr(found.runs, name)[row], getattr(alone.runs, name)[0])
    twice = ensemble(both, 2, sampler=sampler)
    assert twice.runs.error_std is not None
    assert all(torch.equal(twice.trust[row].std, twice.runs.error_std[2 * row, 0]) for row in range(2)), "one for each image"


def test_a_plugin_that_reads_sigma_gets_it_at_every_step(heads: list[int]) -> None:
    seen: list[bool] = []
    sampler = Sampler(load_prior(), "ddnm", ("ucdc",), grid=Grid((200, 100, 50, 20, 5, -1)))
    ensemble(measured(), 1, sampler=sampler, on_step=lambda step: seen.append(step.sigma is not None))
    assert seen == [True] * 5 and len(heads) == 5


@pytest.mark.parametrize(
    "times", [(900, 500, 200, 120, 60, 20, 0, -1), (30, 10, -1), (250, 150, 250, 150, 70, 5, -1), (700, -1)]
)
def test_the_positions_looked_at_are_those_that_stay(times: tuple[int, ...]) -> None:
    """A watch that sees every step keeps nothing but what it said it would look at, on any schedule; and lets go of it."""
    prior = CheapPrior()
    prior.schedule = Schedule.cosine()
    grid, watch = Grid(times), Watch(prior.schedule)
    operator = Denoising(SHAPE)
    problem = Problem(torch.rand(1, *SHAPE), operator, 0.1)
    result = Sampler(prior, "ddnm", (), grid=grid).run(problem, on_step=watch)
    way = watch.find_way(0)
    assert way is not None and result.posterior_std is not None
    wanted = {grid.times[position] for position in watch.find_looks(grid)}
    assert set(way.times) <= wanted and len(wanted) <= len(CLOCKS)
    watch.forget(0)
    assert not any(isinstance(kept, dict) and len(kept) for kept in vars(watch).values())


def test_heads_beside_networks_wait_too(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    plain = VarianceHead.forward

    def counted(self: VarianceHead, *given: torch.Tensor) -> torch.Tensor:
        called.append(1)
        return plain(self, *given)

    monkeypatch.setattr(VarianceHead, "forward", counted)
    prior = HeadedPrior(CheapPrior(), VarianceHead())
    for channels in (3, 1):
        x, t = torch.rand(1, channels, 8, 8), torch.tensor([100])
        prior.channels = 3
        answer = prior.predict(x, t)
        before = len(called)
        assert answer.variance is not None and answer.variance.shape == x.shape and len(called) == before + 1
    assert len(called) == 2


def test_the_variance_in_a_batch_is_that_of_the_image() -> None:
    prior, x = load_prior(), torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(1))
    together, t = prior.predict(x, torch.tensor([300, 40])), torch.tensor([300])
    first = prior.predict(x[:1], t)
    assert together.variance is not None and first.variance is not None
    assert torch.equal(together.variance[:1], first.variance)


def test_a_graph_that_was_not_differentiated_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """SITCOM's last estimate of a step: its activations would stand beside those of the calls that Sigma needs."""
    held: list[Any] = []
    free: list[bool] = []

    class Watched(sitcom.SITCOM):
        def correct(self, *given: Any) -> torch.Tensor:
            free.append(all(ref() is None for ref in held))
            return super().correct(*given)

    def watched(*given: Any) -> tuple[Prediction, torch.Tensor]:
        prediction, norm = shared.misfit(*given)
        assert prediction.x0.grad_fn is not None
        held.append(weakref.ref(prediction.x0))
        return prediction, norm

    monkeypatch.setattr(sitcom, "misfit", watched)
    Sampler(load_prior(), Watched(inner=1), (), 3, estimator=None).run(measured())
    assert len(held) == 3 and free == [True] * 3
