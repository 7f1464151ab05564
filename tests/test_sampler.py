"""The loop: same bits alone and in any batch, images that leave, counted calls, injected noise, refusals."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Grid, LeaderError, Problem, Sampler, load_prior, operators
from leader.methods import DDNM
from leader.plugins import SATP, UCPM
from leader.plugins.image_priors import total_variation
from leader.priors.ask import Ask
from leader.priors.base import Prediction
from leader.priors.gaussian import GaussianPrior
from leader.uncertainty import Hutchinson
from tests.oracle.cases import gaussian, mixture

SHAPE = (1, 16, 12)
HARD: dict[str, Any] = {"ucpm": {"lam": 0.3}, "satp": {"budget": 0.05, "eta": 4.0}}


def make_problem(count: int = 5, sigma: float = 0.0) -> Problem:
    prior = mixture(SHAPE)
    x = prior.sample(count, torch.Generator().manual_seed(4)).float()
    operator = operators.BicubicSR(SHAPE, 2)
    y = operator.A(x)
    return Problem.internal(y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(5)), operator, sigma)


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_an_image_gives_the_same_bits_alone_and_in_any_order(sigma: float) -> None:
    problem, prior = make_problem(sigma=sigma), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", ("ucpm", "satp"), steps=30, **HARD)
    whole = sampler.run(problem, seed=3).images
    alone = sampler.run(problem.select(torch.tensor([2])), seed=3, ids=[2]).images
    order = [4, 2, 0, 3, 1]
    shuffled = sampler.run(problem.select(torch.tensor(order)), seed=3, ids=order).images
    assert torch.equal(alone[0], whole[2])
    assert torch.equal(shuffled, whole[order])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"method": "dnnm"}, "did you mean 'ddnm'"),
    ({"method": DDNM}, "a method must be a name or an object"),
    ({"method": "ddnm", "zeta": 1.0}, "no setting 'zeta'"),
    ({"method": "ddnm", "eta": "0.5"}, "'eta' of the method 'ddnm' must be a finite number; found '0.5'"),
    ({"method": DDNM(), "eta": 0.3}, "'ddnm' was given as an object, which holds its settings; found eta"),
    ({"plugins": ("leeder",)}, "did you mean 'leader'"),
    ({"plugins": (3,)}, "a plug-in is given by its name"),
    ({"plugins": None}, "plug-ins are given by name"),
    ({"plugins": (), "satp": {"budget": 0.1}}, "settings for the plug-in 'satp', which is not used"),
    ({"plugins": (SATP(),), "satp": {"budget": 0.1}}, "'satp' was given as an object"),
    ({"satp": "x"}, "settings of the plug-in 'satp' must be names with values; found 'x'"),
    ({"satp": {"budget": "x"}}, "'budget' of the plug-in 'satp' must be a finite number"),
    ({"plugins": ("ucpm",), "ucpm": {"phi": "tw"}}, "Unknown image prior"),
    ({"grid": "unifrm"}, "did you mean 'uniform'"),
    ({"grid": 7}, "Unknown grid '7'"),
    ({"grid": Grid((1000, 0, -1))}, "visits time 1000; the prior's schedule ends at 999"),
    ({"steps": 0}, "whole number from 1 to 1000; found 0"),
    ({"steps": 10.0}, r"found 10\.0"),
    ({"estimator": "noise-enrgy"}, "did you mean 'noise-energy'"),
    ({"estimator": Hutchinson}, "as an object such as Hutchinson"),
    ({"estimator": "hutchinson", "probes": 10**9}, "from 1 to 1000"),
    ({"estimator": "noise-energy", "probes": 4}, "Probes belong to the estimator 'hutchinson'"),
    ({"trust_time": "late"}, "trust time must be a whole number"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_wrong_choices_are_refused_at_construction(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LeaderError, match=f"(?i){message}"):
        Sampler(gaussian("white", SHAPE), **arguments)


def test_what_is_no_prior_is_refused() -> None:
    with pytest.raises(LeaderError, match="did you mean 'embedded'"):
        Sampler("embeded")
    with pytest.raises(LeaderError, match="found int"):
        Sampler(3)  # type: ignore[arg-type]


def test_a_prior_by_name_is_the_loaded_one() -> None:
    shape = (3, 16, 16)
    problem = Problem.simulate(torch.rand(1, *shape), operators.AveragePoolSR(shape, 2))
    found = Sampler("embedded", steps=2).run(problem)
    expected = Sampler(load_prior("embedded"), steps=2).run(problem)
    assert torch.equal(found.images, expected.images) and found.settings["prior"] == "embedded"


def test_objects_and_names_are_the_same() -> None:
    problem, prior = make_problem(1, 0.1), mixture(SHAPE)
    by_name = Sampler(prior, "ddnm", ("ucpm", "satp"), 8, use_presets=False, estimator="hutchinson", probes=3, eta=0.5, **HARD)
    objects = (UCPM(phi=total_variation(), lam=0.3), SATP(budget=0.05, eta=4.0))
    by_object = Sampler(prior, DDNM(eta=0.5), objects, 8, estimator=Hutchinson(3))
    first, second = by_name.run(problem), by_object.run(problem)
    assert torch.equal(first.images, second.images) and first.ledger.rows == second.ledger.rows
    described = {"name": "hutchinson", "probes": 3, "window": 7, "seed": 0, "every": 1, "memory": 0.0, "reverse": False}
    assert second.settings["estimator"] == described
    again = Sampler(prior, DDNM(eta=0.5), objects, 8, estimator=described).run(problem)
    assert torch.equal(again.images, second.images), "a table, as a run describes its estimator"
    assert second.settings["plugins"][0]["phi"] == "tv"
    assert json.loads(json.dumps(second.settings))["method"] == {**first.settings["method"]}
    fewer = Sampler(prior, DDNM(eta=0.5), objects, 8, estimator=Hutchinson(1)).run(problem)
    assert fewer.ledger.total.jvps < second.ledger.total.jvps


def test_an_estimator_must_answer_in_the_shape_of_the_image() -> None:
    def flat(ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
        return torch.ones(len(x), 1, 1, 1)

    with pytest.raises(LeaderError, match=r"returned the shape \[1, 1, 1, 1\]; expected \[1, 1, 16, 12\]"):
        Sampler(mixture(SHAPE), "ddnm", (), 5, estimator=flat).run(make_problem(1))


def test_a_plan_is_followed() -> None:
    problem, prior = make_problem(1), mixture(SHAPE)
    short = Sampler(prior, "ddnm", (), 5).plan(problem)
    assert len(Sampler(prior, "ddim", (), 20).run(problem, plan=short).trace[0]) == 5


def test_the_measurement_and_the_prior_must_share_a_device() -> None:
    class Weighted(GaussianPrior):
        def __init__(self) -> None:
            super().__init__(gaussian("white", SHAPE).gaussian)
            self.weight = torch.nn.Parameter(torch.ones(1))

    problem = make_problem(1)
    Sampler(Weighted(), "ddnm", (), 2).run(problem)
    away = Weighted().to("meta")
    with pytest.raises(LeaderError, match="on the device 'cpu' and the prior 'gaussian' on 'meta'"):
        Sampler(away, "ddnm", (), 2).iterate(problem)


def test_double_precision_data_fit_a_single_precision_network() -> None:
    shape = (3, 16, 16)
    operator, x = operators.AveragePoolSR(shape, 2), torch.rand(1, *shape, generator=torch.Generator().manual_seed(0))
    single = Sampler("embedded", steps=3).run(Problem(operator.A(x), operator, 0.1))
    double = Sampler("embedded", steps=3).run(Problem(operator.A(x).double(), operator, 0.1))
    assert double.images.dtype == torch.float32
    assert torch.allclose(single.images, double.images, atol=1e-5)
    exact = Sampler(mixture(SHAPE), "ddnm", (), 3).run(make_problem(1).to_dtype(torch.float64))
    assert exact.images.dtype == torch.float64, "a prior without weights keeps the precision of the data"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": [1]}, "2 images; found the ids"),
        ({"ids": [1, 1]}, "2 images; found the ids"),
        ({"ids": ["a", "b"]}, "id of an image is a whole number; found 'a'"),
        ({"seed": "x"}, "seed of a run is a whole number; found 'x'"),
        ({"x_T": torch.zeros(1, *SHAPE)}, r"x_T must be a float tensor \[2, 1, 16, 12\]"),
        ({"x_T": torch.zeros(2, *SHAPE, dtype=torch.int64)}, "found torch.int64"),
    ],
)
def test_wrong_arguments_of_a_run_are_refused_when_it_is_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LeaderError, match=message):
        Sampler(mixture(SHAPE), steps=5).iterate(make_problem(2), **arguments)


def test_only_problems_are_run() -> None:
    with pytest.raises(LeaderError, match="found Tensor"):
        Sampler(mixture(SHAPE), steps=5).run(make_problem(2).y)  # type: ignore[arg-type]


def test_a_variance_that_is_not_a_number_is_told() -> None:
    class Broken(Hutchinson):
        def __call__(self, *arguments: Any, **named: Any) -> Tensor:
            return super().__call__(*arguments, **named) * float("nan")

    problem, prior = make_problem(1, 0.1), mixture(SHAPE)
    with pytest.raises(LeaderError, match="NaN at time"):
        Sampler(prior, "ddnm", "satp", 5, use_presets=False, estimator=Broken(1)).run(problem)
