"""What the picture is asked for itself: how it became small, and where its defects are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.forensics import examine
from leader.forensics.size.thumbnails import KERNELS, take_given_kernel
from leader.pictures import Picture, from_pil, read_picture
from leader.restoration.degrade import degrade
from leader.restoration.pose import PosedProblem, pose_picture
from leader.restoration.restore import restore
from tests.cheap_prior import CheapPrior
from tests.forensics.fields import colour, find_in, peppered, scratched
from tests.forensics.jpegs import jpeg, photograph, unit
from tests.restoration.repeating import repeat


def small(kernel: str = "lanczos") -> Picture:
    return from_pil(Image.fromarray(colour(192, 1)).resize((48, 48), Image.Resampling[kernel.upper()]))


def posed(picture: Picture, **options: Any) -> PosedProblem:
    return pose_picture(picture, "sr", None, {"factor": 4, **options})


def test_by_default_the_kernel_is_recognised_and_the_doubt_is_noise() -> None:
    for kernel in ("nearest", "lanczos"):
        picture = small(kernel)
        found, told = examine(picture).recognise_kernel(4), posed(picture, down="box")
        auto = posed(picture)
        assert auto.options == posed(picture, down="auto").options == {"factor": 4, "down": found.down}
        assert auto.sigma == pytest.approx(math.hypot(told.sigma, found.doubt)) and auto.sigma > told.sigma
        assert found.words() in auto.notes and not any("made smaller by" in note for note in told.notes)


def test_a_mixture_that_was_found_can_be_asked_for() -> None:
    """As a repeated run does: the same operator, its doubt counted again, and values that no single kernel gives accepted."""
    found = posed(small("bicubic"))
    assert "+" in found.options["down"]
    again = posed(small("bicubic"), down=found.options["down"])
    x = torch.rand(1, 3, 192, 192, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.problem.operator.A(x), found.problem.operator.A(x)) and again.misread == 0
    assert again.sigma == pytest.approx(found.sigma, rel=0.05) and again.sigma > posed(small("bicubic"), down="box").sigma
    for wrong in ("box:40+lanczos:50", "boxes:40+lanczos:60"):
        with pytest.raises(UsageError, match="way of downsampling"):
            posed(small(), down=wrong)


def test_a_nearest_neighbour_is_never_taken_literally() -> None:
    picture = small("nearest")
    told = posed(picture, down="nearest")
    assert told.options["down"] == "soft-nearest" and told.problem.operator.task == "sr-nearest"
    assert told.sigma == pytest.approx(
        math.hypot(posed(picture, down="box").sigma, take_given_kernel(picture.pixels, 4, "nearest").doubt)
    )


def test_a_noise_level_that_is_given_stays() -> None:
    assert pose_picture(small(), "sr", 0.01, {}).sigma == 0.01


@pytest.mark.parametrize("down", ["bicubic", "average", *KERNELS.values()])
def test_what_is_given_is_taken(down: str) -> None:
    assert posed(small(), down=down).options["down"] == down


def test_names_of_variants_and_degrading_stay_what_they_were() -> None:
    assert pose_picture(small(), "sr-bicubic", None, {}).options["down"] == "bicubic"
    large = Picture(np.asarray(colour(64, 2), dtype=np.float32) / np.float32(255))
    assert np.array_equal(degrade(large, "sr").picture.pixels, degrade(large, "sr-bicubic").picture.pixels)
    with pytest.raises(UsageError, match="Say how the picture"):
        degrade(large, "sr", down="auto")
    with pytest.raises(UsageError, match="did you mean 'lanczos'"):
        posed(small(), down="lanczo")


def test_degrading_makes_pillows_thumbnails_and_containers_hold_them() -> None:
    samples = colour(64, 3)
    expected = np.asarray(Image.fromarray(samples).resize((16, 16), Image.Resampling.LANCZOS)) / 255
    made = degrade(samples, "sr", down="lanczos").picture.pixels
    assert np.abs(made - expected).max() <= 1.5 / 255
    held = degrade(samples, "sr", down="lanczos", exact=True).measurement
    assert held.options == {"down": "lanczos"} and type(held.operator()).__name__ == "LanczosSR"


def test_an_enlarged_picture_is_told_to_be_reduced_first() -> None:
    image = Image.fromarray(colour(80, 4))
    enlarged = from_pil(image.resize((240, 240), Image.Resampling.BICUBIC))
    notes = pose_picture(enlarged, "sr", None, {"factor": 2}).notes
    assert sum("enlarged 3 times already: reduce it by that first" in note for note in notes) == 1
    assert not any("enlarged" in note for note in posed(from_pil(image)).notes)


def test_a_recognised_run_is_repeated_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "small.png"
    Image.fromarray(colour(160, 5)).resize((40, 40), Image.Resampling.BILINEAR).save(file)
    repeat(file, "sr", factor=2, steps=3, plugins=(), threads=1)


def scratched_file(folder: Path) -> Path:
    spoiled, _ = scratched(peppered(colour(96, 6), 0.03, 1)[0], 255, 2, True)
    Image.fromarray(spoiled).save(folder / "spoiled.png")
    return folder / "spoiled.png"


def test_defects_are_the_mask_and_are_told(tmp_path: Path) -> None:
    file = scratched_file(tmp_path)
    found = find_in(read_picture(file))
    first, again, _ = repeat(file, "inpaint", mask="auto", steps=3, threads=1)
    assert np.array_equal(first.posed.options["mask"].numpy() > 0, found.known)
    assert found.words() in first.notes and "salt and pepper and scratches" in found.words()
    assert not any("Defects" in note for note in again.notes)


def test_no_defects_is_one_sentence() -> None:
    with pytest.raises(LeaderError, match="No defects were found"):
        restore(colour(96, 7), "inpaint", mask="auto", prior=CheapPrior())
    with pytest.raises(UsageError, match="to make some, give a mask"):
        degrade(colour(96, 7), "inpaint", mask="auto")


def test_compression_is_found_under_the_defects_of_a_copy() -> None:
    """Where specks touch every block, their pixels were there when it was compressed, and tell of it."""
    pixels = np.array(photograph(6))
    specks = np.random.default_rng(0).random(pixels.shape[:2]) < 0.05
    pixels[specks] = 255
    copy = unit(jpeg(Image.fromarray(pixels), 75)).astype(np.float32)
    mask = (~specks).astype(np.float32)
    noise = pose_picture(Picture(copy), "inpaint", None, {"mask": mask})
    assert noise.sigma > 0.02
    assert pose_picture(Picture(copy), "inpaint", None, {"mask": mask}, jpeg=False).sigma < 0.5 * noise.sigma
