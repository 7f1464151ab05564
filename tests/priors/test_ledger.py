"""The ledger: who pays for a call, in one thread and in several."""

import threading
import time

import pytest
import torch
from torch import Tensor

from leader import LeaderError, Problem, Sampler
from leader.methods import SITCOM
from leader.operators import Denoising
from leader.priors.ask import Ask
from leader.priors.base import Prediction
from leader.priors.ledger import Counts, Ledger, record, recording, uncounted
from leader.uncertainty import Hutchinson
from tests.cheap_prior import CheapPrior

SHAPE = (1, 8, 8)
X, T = torch.zeros(2, *SHAPE), torch.tensor([10, 20])


class SlowPrior(CheapPrior):
    """Gives other threads their turn in the middle of every call."""

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        time.sleep(0.001)
        return super()._predict(x, t)


def test_calls_go_to_the_open_ledger_and_its_images() -> None:
    prior = CheapPrior()
    with recording(Ledger(), [7, 3]) as outer:
        prior.predict(X, T)
        with recording(Ledger()) as inner:
            prior.predict(X, T)
        prior.predict(X, T)
    prior.predict(X, T)  # nobody counts
    assert {name: row.calls for name, row in outer.rows.items()} == {7: 2, 3: 2}
    assert {name: row.calls for name, row in inner.rows.items()} == {0: 1, 1: 1}
    assert outer.total == Counts(calls=4, pixels=4 * 64)
    assert not hasattr(prior, "ledger")
    with pytest.raises(LeaderError), recording(inner):
        prior.predict(X, torch.tensor([10, 2000]))
    prior.predict(X, T)
    assert inner.total.calls == 2, "closed also where a call fails"


def test_each_image_of_a_batch_costs_what_its_own_time_costs() -> None:
    class Dear(CheapPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return 7.0 * t + height + 100 * width

    with recording(Ledger()) as ledger:
        answer = Dear().predict(torch.zeros(2, 1, 8, 4), T)
    assert [row.pixels for row in ledger.rows.values()] == [70 + 8 + 400, 140 + 8 + 400]
    assert answer.variance is not None and len(answer.variance) == 2


def test_calls_inside_a_derivative_are_part_of_it() -> None:
    prior = CheapPrior()
    ask = Ask(prior)
    with recording(Ledger(), [5, 6]) as ledger:
        ask.jvp(X, T, torch.ones_like(X))
        x = X.clone().requires_grad_()
        ask.gradient(ask(x, T).x0.flatten(1).sum(1), x)
        with uncounted():
            ask(X, T)
    assert ledger.rows == {name: Counts(calls=1, jvps=1, backwards=1, pixels=64) for name in (5, 6)}


def test_a_call_for_others_is_refused() -> None:
    with recording(Ledger(), [1]), pytest.raises(LeaderError, match="2 images for 1 ids"):
        record([Counts(calls=1)] * 2)


def test_threads_that_share_a_prior_count_their_own_calls() -> None:
    prior = SlowPrior()
    y = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(0))
    problem = Problem(y, Denoising(SHAPE), 0.05)
    sampler = Sampler(prior, SITCOM(inner=3), (), 6, estimator=Hutchinson(2))
    expected = sampler.run(problem, ids=[0])
    assert expected.ledger.total.calls > 6 and expected.ledger.total.jvps == 12
    found: dict[int, Ledger] = {}
    barrier = threading.Barrier(4)

    def work(name: int) -> None:
        barrier.wait()
        found[name] = sampler.run(problem, ids=[0]).ledger

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[name].rows for name in range(4)] == [expected.ledger.rows] * 4


def test_counts_say_each_its_own() -> None:
    assert Counts(1, 2, 3, 4.5).as_dict() == {"calls": 1, "jvps": 2, "backwards": 3, "pixels": 4.5}
