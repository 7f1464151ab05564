"""Seeds and draws: what a draw depends on, and what of it reaches a run (`oracle/test_plugged_runs` holds where it is used)."""

import hashlib
from typing import Any

import pytest
import torch

from leader import Problem, Result, Sampler
from leader.errors import LeaderError
from leader.methods import METHODS
from leader.noise import NAMES, MirroredNoise, SeededNoise, inner_name
from tests.oracle.scenes import ForeignNoise, Scene, scene

SHAPE = (3, 5, 4)


def test_the_address_is_kept_for_good() -> None:
    """Records of past runs rest on it: seed/image/position/name, hashed; the same in any batch, however often it is asked."""
    for seed in (1, 12):
        source = SeededNoise(seed)
        for name in (*NAMES, inner_name(12)):
            draws = source([9, 2, 2], [0, 3, 11], name, SHAPE)
            for row, (image, position) in enumerate(((9, 0), (2, 3), (2, 11))):
                address = f"{seed}/{image}/{position}/{name}".encode()
                number = int.from_bytes(hashlib.blake2b(address, digest_size=8).digest(), "little") >> 1
                assert torch.equal(draws[row], torch.randn(SHAPE, generator=torch.Generator().manual_seed(number)))
    assert torch.equal(source([9], [0], "step", SHAPE), source([9], [0], "step", SHAPE)), "asking again does not move on"


def test_draws_have_names_and_seeds_are_whole_numbers() -> None:
    with pytest.raises(LeaderError, match=r"list it in `draws`.*start"):
        SeededNoise(0)([0], [0], "strat", (4,))
    for seed in ("0", 1.5, True, None):
        with pytest.raises(LeaderError, match="whole number"):
            SeededNoise(seed)  # type: ignore[arg-type]


def test_mirrored_draws_are_opposite_within_a_pair_and_belong_to_the_pair() -> None:
    four = MirroredNoise(3)([0, 1, 6, 7], [7, 7, 7, 7], "step", SHAPE)
    assert torch.equal(four[0], -four[1]) and torch.equal(four[2], -four[3])
    assert torch.equal(four[2], SeededNoise(3)([3], [7], "step", SHAPE)[0])
    assert torch.equal(MirroredNoise(3)([7], [7], "step", SHAPE)[0], four[3])


def run(made: Scene, method: str = "ddnm", seed: int = 0, problem: Problem | None = None, **given: Any) -> Result:
    settings: dict[str, Any] = {"inner": 3} if method == "sitcom" else {}
    sampler = Sampler(made.prior, method, (), 6, estimator=None, use_presets=False, **settings)
    return sampler.run(problem or made.problem, seed, **given)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_reaches_the_run(method: str) -> None:
    made = scene("cs", (0.05, 0.05))
    first, other = (run(made, method, seed).images for seed in (3, 4))
    assert float((first - other).abs().mean()) > 1e-6, "IDPG carries little of its start to the end"
    given = run(made, method, 99, noise=SeededNoise(3))
    assert torch.equal(given.images, first) and given.seed == 99, "a given source decides"


def test_ids_choose_the_noise() -> None:
    made = scene("cs", (0.05, 0.05))
    twins = made.problem.select(torch.tensor([0, 0]))
    images = run(made, problem=twins).images
    assert float((images[0] - images[1]).abs().mean()) > 1e-3, "0 and 1 by default"
    assert torch.equal(run(made, problem=twins, ids=[1, 0]).images, images.flip(0))
    assert not torch.equal(run(made, problem=twins, ids=[5, 6]).images, images)


def test_x_T_is_the_start_and_nothing_else() -> None:
    """Row by row, in the order of the problem whatever the ids; the steps keep their own noise."""
    made, source = scene("cs", (0.05, 0.05)), ForeignNoise()
    start = torch.stack([torch.from_numpy(source.one(i, 0, "start", made.shape)) for i in (7, 3)])
    usual = run(made, noise=source, ids=[7, 3]).images
    assert torch.equal(run(made, noise=source, ids=[7, 3], x_T=start).images, usual)
    assert not torch.allclose(run(made, noise=source, ids=[7, 3], x_T=start.flip(0)).images, usual)
    assert not torch.allclose(run(made, noise=ForeignNoise(1), ids=[7, 3], x_T=start).images, usual)
