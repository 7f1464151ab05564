"""Inpainting: missing pixels are filled in."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.forensics import Examination, NotExamined
from leader.forensics.defects.defects import TORN, Defects
from leader.forensics.defects.neighbours import median_around
from leader.operators import build_task
from leader.pictures.picture import Floats, Picture
from leader.restoration.arguments import as_mask
from leader.restoration.invention import large_holes
from leader.restoration.tasks.base import Measured, Option, Request, Task, Values

AUTO = "auto"
MOSTLY_MISSING = 0.9
ONE_COLOUR = 1 / 255
OF_MEDIANS = 1.35
"""The error of medians of 3 x 3 pixels over their distance from those of 5 x 5: 1.2 to 1.45 in 18 JPEGs with salt and
pepper, of quality 40 to 75 and six validation photographs.
"""
MEDIANS = "Compression has smeared the specks over all pixels: medians of 3 x 3 pixels are restored instead of the pixels."
Flags = NDArray[np.bool_]


def _mask(mask: Any, request: Request) -> Tensor:
    if isinstance(mask, str) and mask == AUTO:
        return _found(request)
    read = as_mask(mask, request.picture.size)
    if not request.degrading:
        request.notes.extend(_doubts(read, request.picture))
    return read


def _found(request: Request) -> Tensor:
    """The mask of the defects that the picture itself shows."""
    if request.degrading:
        raise UsageError("The mask 'auto' finds defects; to make some, give a mask file or random:SHARE.")
    defects = request.examination.defects
    if isinstance(defects, NotExamined):
        raise LeaderError(f"{defects.reason[:-1]}; give a mask.")
    if not defects.kinds:
        raise LeaderError(
            f"{defects.words()[:-1]}; paint a mask, white where the picture is known, to have anything else filled in."
        )
    request.notes.append(defects.words())
    return torch.from_numpy(defects.known.astype(np.float32))


def _no_mask(request: Request) -> None:
    if request.degrading:
        raise UsageError("The task 'inpaint' needs a mask: a file, white where the picture is known, or random:SHARE.")
    if request.picture.alpha is None:
        raise LeaderError(
            "The task 'inpaint' needs a mask, white where the picture is known, or a picture with transparent holes."
        )
    request.notes.extend(_doubts(_mask_of(request.picture, {"mask": None}), request.picture))


def _mask_of(picture: Picture, values: Values) -> Tensor:
    """The mask that was given, or that of the picture's transparent holes."""
    mask: Tensor = as_mask(picture.alpha, picture.size) if values["mask"] is None else values["mask"]  # type: ignore[arg-type]
    return mask


def _doubts(mask: Tensor, picture: Picture) -> list[str]:
    """A note where the mask looks like the wrong way round; one that marks nothing is rejected."""
    known = mask.numpy() > 0
    if known.all():
        raise LeaderError("Nothing is to be filled in: black pixels of a mask, or transparent ones of the picture, mark it.")
    missing = 1 - float(known.mean())
    if missing > MOSTLY_MISSING:
        return [
            f"The mask leaves {100 * missing:.0f} % of the picture unknown, so most of it will be invented; white marks what "
            "is known: is the mask inverted?"
        ]
    if missing > 0 and bool((picture.pixels[known].std(0) < ONE_COLOUR).all()) and picture.pixels[~known].std() > 0.02:
        return ["All pixels that the mask marks as known have one colour; white marks what is known: is the mask inverted?"]
    return []


def _drowned(examination: Examination, known: Flags) -> bool:
    """Whether these are the known pixels [H, W] beside salt and pepper that strong compression has smeared over them."""
    found = examination.defects if examination.history is not None else None
    return isinstance(found, Defects) and found.drowned and TORN not in found.kinds and np.array_equal(found.known, known)


def _take_medians(pixels: Floats) -> tuple[Floats, float]:
    """The medians of 3 x 3 pixels [H, W, C], which specks and their traces hardly move, and the level of their error."""
    near, wide = median_around(pixels, 1, 3), median_around(pixels, 1)
    return near, OF_MEDIANS * float(np.sqrt(((near - wide) ** 2).mean()))


class Inpainting(Task):
    name = "inpaint"
    title = "inpainting"
    description = (
        "Fills in missing pixels. Option: mask, 1 (white) where the picture is known; auto looks for salt and pepper, dead "
        "pixels, scratches and torn areas, and fills those in. It does not remove haze."
    )
    example = "leader restore torn.png whole.png --task inpaint --mask mask.png"
    hole_family, page = "hole", ("missing", "Parts are missing")
    options = (Option("mask", _mask, _no_mask),)

    def measured(self, examination: Examination, values: Values) -> Measured:
        picture = examination.picture
        mask = _mask_of(picture, values)
        if values["mask"] is None:  # its transparent holes are filled, so the result has none
            picture = replace(picture, alpha=None)
        known = mask.numpy() > 0
        operator = build_task(self.name, self.shape(picture, values), mask=mask)
        if _drowned(examination, known):
            pixels, sigma = _take_medians(picture.pixels)
            return Measured(build_task("denoise", operator.image_shape), pixels, picture, sigma=sigma, notes=(MEDIANS,))
        return Measured(operator, picture.pixels * known[..., None], picture, known)

    def invents(self, picture: Picture, values: Values) -> bool:
        return large_holes(_mask_of(picture, values))

    def hidden(self, y: Tensor, values: Values) -> Tensor:
        masked: Tensor = y * values["mask"]
        return masked
