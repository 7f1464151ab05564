"""Blurs, removed with a kernel that is given or found. Photographs have no circular borders: the frame is extended, see
`borders`. No kernel of a photograph is known exactly: its uncertainty counts as noise (`leader.forensics.blur.doubt`).
"""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.forensics.blur.doubt import doubt_power, scene_behind
from leader.forensics.blur.periodogram import luma_plane
from leader.forensics.blur.views import middle
from leader.forensics.blur.width import find_better_width, judge_width, narrow_kernel
from leader.forensics.examination import Examination, found_or_none
from leader.forensics.noise.estimate import NoiseEstimate, rounding
from leader.messages import Note, Remedy
from leader.operators import paper_gaussian_taps
from leader.pictures.picture import Picture
from leader.restoration.arguments import KERNELS, Exactly, as_kernel, gaussian_std, is_drawn
from leader.restoration.borders import blurred_by_camera, extended_blur
from leader.restoration.invention import strong_blur
from leader.restoration.tasks.base import Measured, Option, Request, Task, Values

AUTO = "auto"
SHAPES = f"FILE|{KERNELS}"
DOUBT = 0.1
"""Relative uncertainty of the width of a given kernel."""
LARGEST_DOUBT = 0.5
OFF_CENTRE = 1.0
"""Pixels between the middle of a table and its centre of mass from which on it would shift the picture."""


def _kernel(kernel: Any, request: Request) -> Tensor:
    return as_kernel(kernel)


def _doubt(value: Any, request: Request) -> float:
    if request.degrading:
        raise UsageError("A kernel that degrades a picture is known exactly; leave kernel_doubt out.")
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= LARGEST_DOUBT:
        raise UsageError(
            f"The doubt of a kernel is the relative error of its width, 0 (none) to {LARGEST_DOUBT}; found {str(value)[:40]}."
        )
    return number


KERNEL_DOUBT = Option("kernel_doubt", _doubt, lambda request: 0.0 if request.degrading else DOUBT)


def _needed(task: str) -> LeaderError:
    return LeaderError(f"The task '{task}' needs the kernel of the blur; give auto to have it looked for, or one of {SHAPES}.")


def _no_kernel(request: Request) -> Tensor:
    raise _needed("deblur")


def _drawn_kernel(request: Request) -> Tensor:
    if request.seed is None:
        raise _needed("deblur-motion")
    request.notes.append(f"The motion kernel is motion:{request.seed}.")
    return as_kernel(f"motion:{request.seed}")


def _gaussian(kernel: Any, request: Request) -> Tensor:
    if not isinstance(kernel, Exactly):
        gaussian_std(kernel)  # refuses what is no Gaussian
    return as_kernel(kernel)


def _paper_kernel(request: Request) -> Tensor:
    fact = "No kernel was given: the blur is assumed to be the papers' 5 x 5 taps."
    request.notes.append(Note("papers' kernel", fact, Remedy("choose another", {"kernel": "gaussian:STD"})))
    taps = paper_gaussian_taps()
    return torch.outer(taps, taps)


def _with_found_kernel(given: Values, request: Request) -> Values:
    """The options with the kernel that is found in the picture, and its error, where the kernel is "auto"."""
    kernel = given.get("kernel")
    if not isinstance(kernel, str) or kernel != AUTO:
        return given
    if request.degrading:
        raise UsageError(f"A kernel can be found in blurred pictures only; give one of {SHAPES}.")
    search = request.examination.visible.blur
    if search.blur is None:
        raise LeaderError(f"{search.seen.rstrip('.')}; give the kernel yourself if you know it.")
    fact = f"The blur was found in the picture: {search.blur.in_words()}."
    request.notes.append(Note("blur found", fact, Remedy("ask for the same", {"kernel": search.blur.kernel})))
    doubt = given.get("kernel_doubt")
    return {**given, "kernel": search.blur.kernel, "kernel_doubt": search.blur.error if doubt is None else doubt}


def _centre(given: Values, values: dict[str, Any], request: Request) -> dict[str, Any]:
    """The options with a table centred on its centre of mass to the pixel, since it would shift the picture otherwise; a table
    without doubt, or from a run to repeat, is used as it is.
    """
    said = given.get("kernel")
    if said is None or isinstance(said, Exactly) or is_drawn(said) or not values["kernel_doubt"]:
        return values
    kernel: Tensor = values["kernel"]
    down, right = (
        float((kernel.sum(1 - axis) * torch.arange(size)).sum() / kernel.sum()) - (size - 1) // 2
        for axis, size in enumerate(kernel.shape)
    )
    if math.hypot(down, right) < OFF_CENTRE:
        return values
    fact = f"The kernel's centre of mass lies {right:+.1f}, {down:+.1f} pixels off its middle, which would shift the picture"
    remedy = Remedy("use the kernel as given", {"kernel_doubt": 0})
    request.notes.append(Note("off-centre kernel", f"{fact}; it was centred.", remedy))
    top, left = (2 * max(0, -round(off)) for off in (down, right))
    below, beyond = (2 * max(0, round(off)) for off in (down, right))
    return {**values, "kernel": torch.nn.functional.pad(kernel, (left, beyond, top, below))}


def _held_against_the_picture(given: Values, values: dict[str, Any], request: Request) -> dict[str, Any]:
    """The options with a narrower kernel if the picture refutes the width of the given one, and with none if the picture is
    sharp; with a note and more doubt if a wider one explains it better. A kernel without doubt, or from a run to repeat, is
    used as it is.
    """
    said = given.get("kernel")
    if said is None or isinstance(said, Exactly) or (isinstance(said, str) and said == AUTO) or not values["kernel_doubt"]:
        return values
    luma, noise = _luma_and_noise(request.examination)
    found = find_better_width(luma, values["kernel"], noise)
    if found is None:
        return values
    if found.sharp:
        fact = "The picture is blurred neither by this kernel nor by half of it: it looks sharp, and is left as it is."
        request.notes.append(Note("sharp", fact, Remedy("use the kernel regardless", {"kernel_doubt": 0})))
        return {**values, "kernel": torch.ones(1, 1, dtype=values["kernel"].dtype), "kernel_doubt": 0.0}
    better = f"The picture is explained better by a blur {found.factor:.2f} times as wide as the kernel"
    if found.factor > 1:
        doubt = min(max(math.log(found.factor), values["kernel_doubt"]), LARGEST_DOUBT)
        fact = f"{better}, which is used as it is, with a doubt of {doubt:.2f}."
        request.notes.append(Note("wider blur", fact, Remedy("have the blur found", {"kernel": "auto"})))
        return {**values, "kernel_doubt": doubt}
    fact = f"{better}, which is used instead."
    request.notes.append(Note("narrower blur", fact, Remedy("use the kernel as given", {"kernel_doubt": 0})))
    return {
        **values,
        "kernel": narrow_kernel(values["kernel"], found.factor),
        "kernel_doubt": min(found.error, values["kernel_doubt"]),
    }


def _luma_and_noise(examination: Examination) -> tuple[NDArray[np.float64], NoiseEstimate]:
    """The middle of a picture, and its noise; that of its rounding if the picture is too small to measure it."""
    pixels = examination.picture.pixels
    noise = found_or_none(examination.noise) or NoiseEstimate(0.0, 0.0, rounding(examination.picture.bits))
    return luma_plane(pixels[middle(pixels.shape)]), noise


class Deblur(Task):
    name: ClassVar[str] = "deblur"
    title: ClassVar[str] = "deblurring with a kernel of your own"
    description: ClassVar[str] = (
        "Removes the blur of a kernel that you provide or that is found in the picture (auto), circular. Options: kernel, a "
        "table of numbers; kernel_doubt, the relative error of its width."
    )
    example: ClassVar[str] = "leader restore blurred.png sharp.png --task deblur --kernel auto"
    trust_family: ClassVar[str] = "deblur-motion"
    page: ClassVar[tuple[str, str] | None] = ("blurred", "It is blurred")
    options: ClassVar[tuple[Option, ...]] = (
        Option("kernel", _kernel, _no_kernel),
        KERNEL_DOUBT,
    )
    amplifies: ClassVar[bool] = True
    keeps_grain: ClassVar[bool] = True

    def read(self, given: Values, request: Request) -> dict[str, Any]:
        values = super().read(_with_found_kernel(given, request), request)
        return values if request.degrading else _held_against_the_picture(given, _centre(given, values, request), request)

    def measured(self, examination: Examination, values: Values) -> Measured:
        picture = examination.picture
        operator, window = extended_blur(self.shape(picture, values), values["kernel"], self.name)
        if values["kernel"].numel() == 1:
            return Measured(operator, picture.pixels, picture, window=window, sigma=0.0)  # there is nothing to undo
        doubt = width = None
        if values["kernel_doubt"] > 0:  # otherwise the user vouches for it
            luma, noise = _luma_and_noise(examination)
            scene = scene_behind(luma, values["kernel"], noise)
            doubt = doubt_power(values["kernel"], scene, values["kernel_doubt"], operator.image_shape[1:])
            width = judge_width(luma, values["kernel"], noise)
        return Measured(operator, picture.pixels, picture, window=window, doubt_power=doubt, width=width)

    def invents(self, picture: Picture, values: Values) -> bool:
        return strong_blur(values["kernel"])

    def photographed(self, x: Tensor, values: Values) -> Tensor:
        return blurred_by_camera(x, values["kernel"], self.name)


class DeblurMotion(Deblur):
    name = "deblur-motion"
    title = "motion deblurring"
    description = (
        "Removes the blur of a shaken camera, circular. Options: kernel, a table of numbers, or motion:SEED for a random "
        "one; kernel_doubt, the relative error of its width; in experiments seed, size (default 61) and intensity (default "
        "0.5)."
    )
    example = "leader restore shaken.png steady.png --task deblur-motion --kernel motion:3"
    options = (Option("kernel", _kernel, _drawn_kernel), KERNEL_DOUBT)

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        return {"kernel": values["kernel"]}  # one that was drawn must be kept too


class DeblurGaussian(Deblur):
    name = "deblur-gaussian"
    title = "Gaussian deblurring"
    description = (
        "Removes a Gaussian blur. Without options the papers' five taps of standard deviation 10 with "
        "zero boundary; with std (and size) a Gaussian kernel of that width in pixels, circular. For pictures kernel_doubt, "
        "the relative error of the width."
    )
    example = "leader restore blurred.png sharp.png --task deblur-gaussian --kernel gaussian:2.5"
    trust_family = "deblur-gaussian"
    options = (
        Option("kernel", _gaussian, _paper_kernel),
        KERNEL_DOUBT,
    )

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        return {} if given.get("kernel") is None else {"std": gaussian_std(given["kernel"])}
