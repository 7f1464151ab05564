"""How often the loop waits for a GPU: once a step, with UCDC once more for every few iterations of a long solve.

Counted on the CPU, with measurements that act as if they lay elsewhere.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler, load_prior
from leader.operators import build_task
from leader.uncertainty import covariance as solver
from tests.cheap_prior import photograph

STEPS = 6
WAITS = ("item", "tolist", "cpu", "numpy", "nonzero", "equal", "__bool__", "__float__", "__int__", "__index__")
HERE: list[str] = []


class Elsewhere(torch.Tensor):
    """A tensor, and all that follows from it, whose values cannot be read without waiting: reading is written down in HERE."""

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], kinds: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(function, "__name__", "")
        to_here = name == "to" and any(str(item) == "cpu" for item in (*args[1:], *(kwargs or {}).values()))
        if name in WAITS or to_here:
            HERE.append(name)
            with torch._C.DisableTorchFunctionSubclass():
                found = function(*args, **(kwargs or {}))
                return found.as_subclass(torch.Tensor) if isinstance(found, torch.Tensor) else found  # it is here now
        passed_on: Any = super().__torch_function__  # type: ignore[no-untyped-call, unused-ignore]
        return passed_on(function, kinds, args, kwargs or {})


@contextmanager
def counted() -> Iterator[list[str]]:
    HERE.clear()
    yield HERE


def elsewhere(task: str, sigma: float) -> Problem:
    picture = torch.stack([photograph(32, 48), photograph(32, 48).flip(-1)])
    options = {"keep": 0.4} if task == "inpaint" else {}
    problem = Problem.simulate(picture, build_task(task, (3, 32, 48), **options), sigma, seed=2)
    return replace(problem, y=problem.y.as_subclass(Elsewhere), sigma=problem.sigma.as_subclass(Elsewhere))


@pytest.mark.parametrize(("task", "sigma"), [("sr", 0.0), ("deblur-gaussian", 0.05)])
@pytest.mark.parametrize("method", ["ddim", "ddnm", "ddrm", "diffpir", "ddpg", "projdiff", "pirp", "dps"])
def test_a_step_waits_once(method: str, task: str, sigma: float) -> None:
    prior = load_prior()
    prior.one_by_one = False
    waits: list[list[str]] = []
    sampler = Sampler(prior, method, ("ucpm", "satp"), STEPS, satp={"budget": 0.0})
    with counted() as found:
        for step in sampler.iterate(elsewhere(task, sigma)):
            assert type(step.x0) is Elsewhere and type(step.U) is Tensor
            waits.append(list(found))
            found.clear()
    assert len(waits) == STEPS
    for each in waits[1:]:  # the first step prepares what all of them use
        assert each == ["cpu"], each


@pytest.mark.parametrize("task", ["sr", "deblur-motion", "inpaint"])
@pytest.mark.parametrize("method", ["ddnm", "diffpir", "ddpg", "projdiff"])
@pytest.mark.parametrize(("covariance", "iterations", "looks"), [("full", 4, 0), ("diagonal", 9, 2)])
def test_a_solve_waits_for_none_of_its_first_iterations(
    method: str, task: str, covariance: str, iterations: int, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "_choose_looks", lambda count, device: range(solver.LOOK, count, solver.LOOK))
    prior = load_prior()
    prior.one_by_one = False
    settings = {"covariance": covariance, "iterations": iterations, "visible": 0.0}
    sampler = Sampler(prior, method, ("ucdc",), 3, ucdc=settings, use_presets=False)
    waits: list[list[str]] = []
    with counted() as found:
        for step in sampler.iterate(elsewhere(task, 0.0 if task == "inpaint" else 0.05)):
            assert type(step.x0_hat) is Elsewhere
            waits.append(list(found))
            found.clear()
    for each in waits[1:]:  # two pictures, a solve each
        assert each == ["cpu", *["__bool__"] * (2 * looks)], each


def test_a_batch_that_shrinks_waits_once_a_step() -> None:
    prior = load_prior()
    prior.one_by_one = False
    problem = elsewhere("sr", 0.0)
    flat = problem.y * torch.tensor([1.0, 0.02]).reshape(-1, 1, 1, 1)  # little is uncertain there: it jumps further
    sampler = Sampler(prior, "ddnm", ("ucpm", "satp"), 40, satp={"budget": 0.05})
    sizes: list[int] = []
    with counted() as found:
        for step in sampler.iterate(replace(problem, y=flat)):
            sizes.append(len(step.ids))
            assert sizes == sizes[:1] or found == ["cpu"], found
            found.clear()
    assert sizes[0] == 2 and sizes[-1] == 1  # one left before the other


def test_the_counter_counts() -> None:
    x: Tensor = torch.arange(6.0).reshape(2, 3).as_subclass(Elsewhere)
    with counted() as found:
        float((2 * x + torch.ones(3)).mean())
        bool((x > 1).any())
        x.to("cpu")
        (x + 1).tolist()
    assert found == ["__float__", "__bool__", "to", "tolist"]
