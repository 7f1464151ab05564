"""What the picture is asked for itself: how it became small, where its defects are, its blur, and the doubt of a kernel."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from leader.errors import LeaderError, UsageError
from leader.forensics import examine
from leader.forensics.size.thumbnails import KERNELS, take_given_kernel
from leader.operators import Blur, WhitenedBlur, gaussian_kernel
from leader.pictures import Picture, from_pil, read_picture
from leader.restoration.arguments import as_kernel
from leader.restoration.degrade import degrade
from leader.restoration.pose import PosedProblem, pose_picture
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import prepare, restore
from leader.restoration.tasks import TASKS, Request
from leader.restoration.tasks.blurs import DOUBT
from tests.cheap_prior import CheapPrior
from tests.forensics.fields import colour, find_in, peppered, scratched
from tests.forensics.jpegs import jpeg, photograph, unit
from tests.restoration.repeating import repeat
from tests.restoration.test_diagnose import image, scene


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


def test_a_kernel_that_was_guessed_need_not_give_every_value() -> None:
    beyond = Picture(3 * small().pixels - 1)
    posed(beyond)
    with pytest.raises(LeaderError, match="does not explain the rest"):
        posed(beyond, down="box")


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


@pytest.mark.parametrize("down", ["bicubic", "average", *KERNELS.values()])
def test_what_is_given_is_taken(down: str) -> None:
    assert posed(small(), down=down).options["down"] == down and pose_picture(small(), "sr", 0.01, {}).sigma == 0.01


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


@pytest.fixture(scope="module")
def blurred() -> Image.Image:
    return image(ndimage.gaussian_filter(scene(), (2, 2, 0)))


def test_auto_finds_the_kernel_and_its_doubt(blurred: Image.Image) -> None:
    request = Request(examine(from_pil(blurred)))
    values = TASKS["deblur"].read({"kernel": "auto"}, request)
    width = (
        float((values["kernel"].sum(0) * (torch.arange(len(values["kernel"])) - len(values["kernel"]) // 2) ** 2).sum()) ** 0.5
    )
    assert width == pytest.approx(2, rel=0.1)
    found = request.examination.visible.blur.blur
    assert found is not None and 0.03 <= values["kernel_doubt"] == found.error < 0.2
    assert len(request.notes) == 1 and "kernel='gaussian:" in request.notes[0]
    given = TASKS["deblur-motion"].read({"kernel": "auto", "kernel_doubt": 0.2}, Request(examine(from_pil(blurred))))
    assert given["kernel_doubt"] == 0.2


def test_auto_refuses_sharp_pictures_and_degrading() -> None:
    with pytest.raises(LeaderError, match=r"No blur was found.*give the kernel yourself"):
        TASKS["deblur"].read({"kernel": "auto"}, Request(examine(from_pil(image(scene())))))
    with pytest.raises(UsageError, match="blurred pictures only"):
        degrade(image(scene(64)), "deblur", kernel="auto")
    with pytest.raises(UsageError, match="known exactly"):
        degrade(image(scene(64)), "deblur", kernel="gaussian:1", kernel_doubt=0.1)


def test_a_kernel_that_is_given_is_doubted_by_default(blurred: Image.Image) -> None:
    picture = from_pil(blurred)
    default = pose_picture(picture, "deblur", 0.01, {"kernel": "gaussian:2"})
    assert default.options["kernel_doubt"] == DOUBT
    exact = pose_picture(picture, "deblur", 0.01, {"kernel": "gaussian:2", "kernel_doubt": 0})
    assert isinstance(default.problem.operator, WhitenedBlur) and type(exact.problem.operator) is Blur
    power = default.problem.operator.power
    assert float(power.min()) >= 0.01**2 * (1 - 1e-9) and float(power.max()) > 1.3 * 0.01**2
    more = pose_picture(picture, "deblur", 0.01, {"kernel": "gaussian:2", "kernel_doubt": 0.2}).problem.operator
    assert isinstance(more, WhitenedBlur) and float(more.power.sum()) > float(power.sum())


@pytest.mark.parametrize("doubt", [-0.1, 0.6, "much", float("nan"), True])
def test_nonsense_doubts_are_refused(blurred: Image.Image, doubt: Any) -> None:
    with pytest.raises(UsageError, match="relative error of its width"):
        pose_picture(from_pil(blurred), "deblur", 0.01, {"kernel": "gaussian:2", "kernel_doubt": doubt})


def test_containers_are_never_doubted(tmp_path: Any) -> None:
    degrade(image(scene(64)), "deblur", kernel="gaussian:1.5", exact=True).save(tmp_path / "exact.npz")
    ready = prepare(tmp_path / "exact.npz", prior=CheapPrior(), method="ddnm", plugins=(), steps=2, sigma=0.01)
    assert type(ready.problem.operator) is Blur
    motion = degrade(image(scene(64)), "deblur-motion", kernel="line:5:30", exact=True)
    assert set(motion.measurement.options) == {"kernel"}


def test_a_kernel_that_the_picture_refutes_is_narrowed_and_named(blurred: Image.Image) -> None:
    request = Request(examine(from_pil(blurred)))
    values = TASKS["deblur"].read({"kernel": "gaussian:3"}, request)
    exact = gaussian_kernel(2.0)
    outside = (values["kernel"].shape[0] - exact.shape[0]) // 2
    inside = values["kernel"][outside : outside + exact.shape[0], outside : outside + exact.shape[1]]
    assert float(inside.max()) == pytest.approx(float(exact.max()), rel=0.2)  # that of the given one is 0.44 times as high
    assert 0.02 <= values["kernel_doubt"] < DOUBT, "what the picture shows is surer than what is assumed"
    assert len(request.notes) == 1 and "times as wide as the kernel, which is used instead" in request.notes[0]


def test_a_kernel_that_is_right_exact_or_too_narrow_stays(blurred: Image.Image) -> None:
    for kernel, options, notes in (("gaussian:2", {}, 0), ("gaussian:3", {"kernel_doubt": 0}, 0), ("gaussian:1.3", {}, 1)):
        request = Request(examine(from_pil(blurred)))
        values = TASKS["deblur"].read({"kernel": kernel, **options}, request)
        assert torch.equal(values["kernel"], as_kernel(kernel)) and len(request.notes) == notes
    assert "used as it is" in request.notes[0]


def test_a_motion_that_is_too_short_stays_and_is_doubted_by_what_it_lacks() -> None:
    blurred = image(ndimage.convolve(scene(), as_kernel("line:9:30").numpy()[..., None]))
    request = Request(examine(from_pil(blurred)))
    values = TASKS["deblur"].read({"kernel": "line:6.5:30"}, request)
    assert torch.equal(values["kernel"], as_kernel("line:6.5:30"))
    assert values["kernel_doubt"] == pytest.approx(math.log(9 / 6.5), rel=0.1)
    assert [note.code for note in request.notes] == ["wider blur"]  # type: ignore[attr-defined]


def test_a_sharp_picture_is_left_as_it_is_whatever_kernel_is_given() -> None:
    sharp = image(scene())
    for task, kernel in (("deblur-gaussian", "gaussian:2"), ("deblur", "line:9:30")):
        ready = prepare(sharp, task, kernel=kernel, prior=CheapPrior(), steps=4)
        assert any("looks sharp, and is left as it is" in note for note in ready.notes)
        assert ready.posed.options["kernel"].tolist() == [[1.0]] and ready.posed.width is None
        assert ready.sigma == 0 and ready.sigma_from == "estimated"
        restored = ready.run()
        assert np.array_equal(np.asarray(restored.image), np.asarray(sharp))
        again = prepare(sharp, **arguments_of(restored.summary(), CheapPrior())).run()
        assert np.array_equal(again.array, restored.array)
    taken = prepare(sharp, "deblur-gaussian", kernel="gaussian:2", kernel_doubt=0, prior=CheapPrior(), steps=4)
    assert taken.posed.options["kernel"].numel() > 1 and not any("sharp" in note for note in taken.notes)


@pytest.mark.parametrize("kernel", ["auto", "gaussian:3", "gaussian:1.3"])
def test_a_run_with_a_kernel_of_the_picture_s_own_is_repeated_to_the_bit(blurred: Image.Image, kernel: str) -> None:
    repeat(blurred, "deblur", kernel=kernel, method="ddnm", plugins=(), steps=2)


@pytest.mark.parametrize(("down", "right"), [(1, -3), (-2, 0), (0, 4)])
def test_a_table_that_would_shift_the_picture_is_centred(down: int, right: int) -> None:
    """One without doubt is used as it is, and so is one by name. The picture is too small to speak for a width."""
    picture = from_pil(image(scene(64)).crop((0, 0, 60, 50)))
    taps = np.pad(gaussian_kernel(1.2).numpy(), ((4, 6), (5, 3)))
    middle = (np.array(taps.shape) - 1) // 2
    places = np.argwhere(taps == taps.max())[0]
    table = np.roll(taps, (middle[0] + down - places[0], middle[1] + right - places[1]), (0, 1))
    request = Request(examine(picture))
    used = TASKS["deblur"].read({"kernel": table, "kernel_doubt": 0.3}, request)["kernel"].numpy()
    assert np.unravel_index(used.argmax(), used.shape) == tuple((size - 1) // 2 for size in used.shape)
    assert used[used > 0] == pytest.approx(table[table > 0]) and [note.code for note in request.notes] == ["off-centre kernel"]  # type: ignore[attr-defined]
    exact = TASKS["deblur"].read({"kernel": table, "kernel_doubt": 0}, Request(examine(picture)))["kernel"]
    assert exact.numpy() == pytest.approx(table)
    untouched = Request(examine(picture))
    TASKS["deblur"].read({"kernel": "motion:3", "kernel_doubt": 0.3}, untouched)
    assert "off-centre kernel" not in [getattr(note, "code", "") for note in untouched.notes]
