"""The kernel 'auto', kernels of shapes, and the doubt of a kernel, from the picture to the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from leader.errors import LeaderError, UsageError
from leader.forensics import examine
from leader.operators import Blur, WhitenedBlur, gaussian_kernel
from leader.pictures import from_pil
from leader.restoration.arguments import as_kernel
from leader.restoration.degrade import degrade
from leader.restoration.pose import pose_picture
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import prepare
from leader.restoration.tasks import TASKS, Request
from leader.restoration.tasks.blurs import DOUBT
from tests.cheap_prior import CheapPrior
from tests.restoration.repeating import repeat
from tests.restoration.test_diagnose import image, scene


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


@pytest.mark.parametrize("kernel", ["auto", "gaussian:3"])
def test_a_run_with_a_kernel_of_the_picture_s_own_is_repeated_to_the_bit(blurred: Image.Image, kernel: str) -> None:
    repeat(blurred, "deblur", kernel=kernel, method="ddnm", plugins=(), steps=2)
