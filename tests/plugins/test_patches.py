"""The picture's own patches: the likeliest one against dense algebra, and holes whose content the picture repeats."""

import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler
from leader.operators import Denoising, Inpainting
from leader.operators.pointwise import box_mask
from leader.plugins import Patches
from leader.plugins.patches import find_wide_parts
from leader.priors.patches import PatchMixture, Widths, collect_patches, fill_from_border
from tests.cheap_prior import CheapPrior


def waves(height: int = 72, width: int = 96) -> Tensor:
    """[3, H, W] in [-1, 1], periodic with 12 rows and 8 columns, the channels unlike one another."""
    rows = 2 * torch.pi * torch.arange(height)[:, None] / 12
    columns = 2 * torch.pi * torch.arange(width)[None] / 8
    first, second = torch.sin(rows + columns), torch.cos(rows) * torch.cos(columns)
    return torch.stack([0.6 * first, 0.5 * second, 0.4 * torch.sin(2 * columns - rows)])


def test_the_likeliest_patch_is_that_of_the_closed_form_posterior() -> None:
    draw = torch.Generator().manual_seed(3)
    patches = torch.randn(40, 7, generator=draw)
    seen, std = torch.randn(11, 7, generator=draw), 0.1 + torch.rand(11, 7, generator=draw)
    std[4, 2] = torch.inf
    found = PatchMixture(patches).find_likeliest(seen, std)
    for row in range(11):
        finite = std[row].isfinite()
        covariance = torch.diag(std[row, finite].double() ** 2)
        off = (patches[:, finite] - seen[row, finite]).double()
        posterior = (-0.5 * (off @ torch.linalg.inv(covariance) * off).sum(1)).softmax(0)
        assert torch.equal(found[row], patches[posterior.argmax()])


def test_patches_are_those_that_are_known_whole() -> None:
    picture, known = waves(20, 30), torch.ones(20, 30, dtype=torch.bool)
    known[4, 25] = False
    mixture = collect_patches(picture, known, side=5, mirrored=True)
    assert mixture is not None
    count = 16 * 26 - 5 * 5  # top 0 to 4, left 21 to 25 hold the unknown pixel
    assert len(mixture.patches) == 2 * count
    assert torch.equal(mixture.patches[count].reshape(3, 5, 5), picture[:, :5, :5].flip(2))
    assert collect_patches(picture, torch.zeros_like(known)) is None and collect_patches(picture[:, :4], known[:4]) is None


@pytest.mark.parametrize(("top", "left"), [(20, 31), (0, 0), (31, 50)])
def test_a_hole_in_a_pattern_is_filled_with_it(top: int, left: int) -> None:
    """Inside and at the picture's border, from a guess that says nothing."""
    picture, hole = waves(), box_mask(72, 96, top, left, 41, 46) == 0
    mixture = collect_patches(picture, ~hole)
    assert mixture is not None
    filled = fill_from_border(torch.where(hole, 0.0, picture), hole, mixture, Widths(guess=10.0))
    assert torch.equal(filled[:, ~hole], picture[:, ~hole])
    assert float((filled - picture).abs().max()) < 1e-4


def test_wide_parts_are_those_that_a_square_fits_into() -> None:
    holes = torch.zeros(30, 50, dtype=torch.bool)
    holes[5:12, 3:14] = True  # 7 x 11: a square of 7 fits
    holes[5:10, 14:40] = True  # 5 rows: it does not
    assert torch.equal(find_wide_parts(holes, 3).nonzero().amax(0), torch.tensor([11, 13]))
    assert int(find_wide_parts(holes, 3).sum()) == 77 and not find_wide_parts(holes, 4).any()


def test_the_plug_in_fills_wide_holes_of_a_run_and_leaves_all_else() -> None:
    truth, mask = waves(), box_mask(72, 96, 20, 31, 35, 40) * box_mask(72, 96, 3, 70, 5, 20)
    problem = Problem.internal((truth * mask)[None], Inpainting((3, 72, 96), mask), 0.0)
    plain, filled = (Sampler(CheapPrior(), "ddnm", plugins, 3).run(problem).images[0] for plugins in ((), ("patches",)))
    wide = find_wide_parts(mask == 0, Patches.wide)
    assert torch.equal(plain[:, ~wide], filled[:, ~wide]) and int(wide.sum()) == 35 * 40
    errors = [float((image - truth)[:, wide].square().mean()) for image in (plain, filled)]
    assert errors[1] < 1.1 * (1 - Patches().share) ** 2 * errors[0], "what is left is the network's share"
    whole = Sampler(CheapPrior(), "ddnm", (Patches(share=1.0),), 3).run(problem).images[0]
    assert float((whole - truth)[:, wide].square().mean()) < errors[1]


def test_images_of_a_batch_have_holes_of_their_own_and_other_measurements_none() -> None:
    truth = waves()
    masks = torch.stack([box_mask(72, 96, 20, 31, 35, 40), box_mask(72, 96, 30, 10, 34, 50)])[:, None]
    both = Problem.internal(truth * masks, Inpainting((3, 72, 96), masks), 0.0)
    answers = Patches().conclude(both.y, both)
    for row in range(2):
        alone = Patches().fill(both.y[row], masks[row, 0] > 0)
        assert torch.equal(answers[row], alone) and not torch.equal(alone, both.y[row])
    noisy = Problem.internal(truth[None], Denoising((3, 72, 96)), 0.1)
    assert torch.equal(Patches().conclude(truth[None], noisy), truth[None])


def test_where_no_patch_is_known_whole_at_half_the_size_the_network_answer_stays() -> None:
    known = torch.zeros(96, 90, dtype=torch.bool)
    known[::47, :], known[:, ::44] = True, True
    image = torch.rand(3, 96, 90, generator=torch.Generator().manual_seed(1)) * 2 - 1
    torch.testing.assert_close(Patches().fill(image, known), image, atol=1e-5, rtol=0)
