"""Seeds and draws: what they depend on, what they reach, and that a pruned run sees what the full run saw."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Problem, Result, Sampler
from leader.methods import METHODS
from leader.noise import NAMES, SeededNoise, inner_name
from tests.oracle.scenes import ForeignNoise, Scene, scene

SHAPE = (3, 5, 4)


def draw(seed: int = 1, image: int = 2, position: int = 3, name: str = "step") -> Tensor:
    return SeededNoise(seed)([image], [position], name, SHAPE)[0]


def related(a: Tensor, b: Tensor) -> float:
    """Correlation of two draws, 0.13 by chance."""
    return float(torch.corrcoef(torch.stack([a.reshape(-1), b.reshape(-1)]))[0, 1].abs())


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2},
        {"image": 1},
        {"position": 4},
        *({"name": name} for name in NAMES if name != "step"),
        {"image": 3, "position": 2},
        {"seed": 12, "image": 3},
    ],
)
def test_every_part_of_the_address_matters(other: dict[str, Any]) -> None:
    assert related(draw(), draw(**other)) < 0.5


def test_the_same_address_gives_the_same_draw() -> None:
    assert torch.equal(draw(), draw())
    source = SeededNoise(1)
    batch = source([9, 2, 7], [0, 3, 3], "step", SHAPE)
    assert torch.equal(batch[1], draw()) and torch.equal(batch[2], draw(image=7)) and torch.equal(batch[0], draw(1, 9, 0))
    assert torch.equal(source([2], [3], "step", SHAPE)[0], draw()), "asking again does not move on"
    assert batch.dtype == torch.float32


def test_the_address_is_kept_for_good() -> None:
    """Records of past runs rest on it: seed/image/position/name, hashed."""
    number = int.from_bytes(hashlib.blake2b(b"1/2/3/step", digest_size=8).digest(), "little") >> 1
    assert torch.equal(draw(), torch.randn(SHAPE, generator=torch.Generator().manual_seed(number)))


def run(
    made: Scene, method: str = "ddnm", seed: int = 0, plugins: Any = (), problem: Problem | None = None, **given: Any
) -> Result:
    call = {key: given.pop(key) for key in ("ids", "x_T", "noise") if key in given}
    sampler = Sampler(made.prior, method, plugins, given.pop("steps", 6), use_presets=False, **given)
    return sampler.run(problem or made.problem, seed, **call)


def quick(method: str) -> dict[str, Any]:
    return {"inner": 3} if method == "sitcom" else {}


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_reaches_the_run(method: str) -> None:
    made = scene("cs", (0.05, 0.05))
    first, same, other = (run(made, method, seed, **quick(method)).images for seed in (3, 3, 4))
    assert torch.equal(first, same)
    assert float((first - other).abs().mean()) > 1e-6, "IDPG carries little of its start to the end"
    assert torch.equal(run(made, method, 3, noise=SeededNoise(3), **quick(method)).images, first)
    assert torch.equal(run(made, method, 99, noise=SeededNoise(3), **quick(method)).images, first), "a given source decides"
    assert run(made, method, 4, **quick(method)).seed == 4


def test_ids_choose_the_noise() -> None:
    made = scene("cs", (0.05, 0.05))
    twins = made.problem.select(torch.tensor([0, 0]))
    images = run(made, problem=twins).images
    assert float((images[0] - images[1]).abs().mean()) > 1e-3, "0 and 1 by default"
    assert torch.equal(run(made, problem=twins, ids=[0, 1]).images, images)
    assert torch.equal(run(made, problem=twins, ids=[1, 0]).images, images.flip(0))
    assert not torch.equal(run(made, problem=twins, ids=[5, 6]).images, images)


@pytest.mark.parametrize("grid", ["uniform", "quadratic"])
def test_a_pruned_run_sees_what_the_full_run_saw(grid: str) -> None:
    """eta = 1: the noise of a step can be read off it, by the time it was taken at."""
    made = scene("cs")

    def noise(plugins: Any, **settings: Any) -> dict[tuple[int, int], Tensor]:
        sampler = Sampler(made.prior, "ddnm", plugins, 30, grid=grid, use_presets=False, eta=1.0, **settings)
        found = {}
        for step in sampler.iterate(made.problem, 8, ids=[4, 1]):
            for row, image in enumerate(step.ids):
                if int(step.u[row]) >= 0:
                    b = float(made.prior.schedule.abar(int(step.u[row])))
                    found[image, int(step.t[row])] = (step.state.x[row] - b**0.5 * step.x0_hat[row]) / (1 - b) ** 0.5
        return found

    full, pruned = noise(()), noise(("satp",), satp={"budget": 0.2, "eta": 3.0})
    assert len(full) == 2 * 29 and 10 < len(pruned) < 2 * 26
    assert {image for image, _ in pruned} == {1, 4}
    for where, z in pruned.items():
        assert torch.allclose(z, full[where], atol=1e-5), where


@pytest.mark.parametrize("method", METHODS)
def test_names_that_are_drawn(method: str) -> None:
    """Every name belongs to the place it is said to: start at the first position only, others where an image stands."""
    made, source = scene("cs", (0.05, 0.05)), ForeignNoise()
    run(made, method, noise=source, ids=[7, 3], steps=5, **quick(method))
    names: dict[str, set[int]] = {}
    for image, position, name in source.asked:
        assert image in (7, 3)
        names.setdefault(name, set()).add(position)
    visited = set(range(5))
    wanted: dict[str, set[int]] = {"start": {0}, "step": visited}
    if method == "projdiff":
        wanted |= {"extra": {0}}  # "observation" is for what has a level of its own without being measured: the simple form
    if method in ("mcg", "repaint"):
        wanted |= {"observation": visited}
    if method == "daps":  # sigma is 0.1, and the flow is followed from s_t = 0.2 on
        wanted |= {inner_name(k): {0, 1, 2, 3} for k in range(100)}
    if method in ("ddim", "idpg"):
        del wanted["step"]
    assert names == wanted


def test_x_T_is_the_start_and_nothing_else() -> None:
    """Row by row, in the order of the problem whatever the ids; the steps keep their own noise."""
    made = scene("cs", (0.05, 0.05))
    source = ForeignNoise()
    start = torch.stack([torch.from_numpy(source.one(i, 0, "start", made.shape)) for i in (7, 3)])
    usual = run(made, noise=source, ids=[7, 3]).images
    assert torch.equal(run(made, noise=source, ids=[7, 3], x_T=start).images, usual)
    assert not torch.allclose(run(made, noise=source, ids=[7, 3], x_T=start.flip(0)).images, usual)
    assert not torch.allclose(run(made, noise=ForeignNoise(1), ids=[7, 3], x_T=start).images, usual)
