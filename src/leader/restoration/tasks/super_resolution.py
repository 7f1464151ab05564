"""Super-resolution: a small picture becomes a large one."""

from __future__ import annotations

from typing import Any

from leader.errors import LeaderError, UsageError, unknown_name
from leader.forensics.examination import found_or_none
from leader.forensics.size.thumbnails import take_given_kernel
from leader.operators.tasks import DOWNSAMPLING
from leader.pictures.picture import MOST_PIXELS, Picture
from leader.restoration.invention import LARGE_FACTOR
from leader.restoration.tasks.base import Option, Request, Shape, Task, Values


def _factor(factor: Any, request: Request) -> int:
    if isinstance(factor, bool) or not isinstance(factor, int) or not 1 <= factor <= 16:
        raise UsageError(f"The factor of super-resolution must be an integer from 1 to 16; found {factor}.")
    return factor


AUTO = "auto"
LONGEST_SIDE = 16384
"""Pixels of the result: the table of weights along a side grows with its square, to a gigabyte there."""


def _down(down: Any, request: Request) -> str:
    if down == AUTO and request.degrading:
        raise UsageError(f"How a picture is to become small must be said; choose one of {', '.join(DOWNSAMPLING)}.")
    if down not in (*DOWNSAMPLING, AUTO):
        raise unknown_name("way of downsampling", str(down), [*DOWNSAMPLING, AUTO])
    return str(down)


def _usual(request: Request) -> str:
    return "bicubic" if request.degrading else AUTO


class SuperResolution(Task):
    name = "sr"
    title = "super-resolution"
    description = (
        "Enlarges a small picture by an integer factor. Options: factor (default 4); down = nearest, box, bilinear, "
        "pillow-bicubic or lanczos (as Pillow makes thumbnails), bicubic (the same with mirrored borders), average (what "
        "sensors do), or auto, the default: which it was is recognised, and what is left of the doubt counts as noise. "
        "sr-bicubic and sr-average are names for two of these."
    )
    example = "leader restore small.png large.png --task sr"
    page, operators = ("small", "It is too small"), ("sr-bicubic", "sr-average", "sr-nearest")
    options = (
        Option("factor", "1 to 16", "how much larger the picture becomes", int, _factor, lambda _: 4, "4"),
        Option("down", "|".join([AUTO, *DOWNSAMPLING]), "how it became small", str, _down, _usual, AUTO),
    )

    def read(self, given: Values, request: Request) -> dict[str, Any]:
        values = super().read(given, request)
        if request.degrading:
            return values
        factor, down = values["factor"], values["down"]
        before = found_or_none(request.examination.enlargement)
        if before is not None:
            request.notes.append(
                f"The picture seems to have been enlarged {before:.2g} times already: reduce it by that first, and it will be "
                "restored better."
            )
        if down == AUTO:
            found = request.examination.recognise_kernel(factor)
            request.notes.append(found.words())
            request.misread.append(found.misread)
        elif down == "nearest":  # the single pixels alone leave a prior too little to begin with
            found = take_given_kernel(request.picture.pixels, factor, down)
        else:
            return values
        request.doubts.append(found.doubt)
        return {**values, "down": found.down}

    def shape(self, picture: Picture, values: Values) -> Shape:
        channels, height, width = super().shape(picture, values)
        large = (channels, height * int(values["factor"]), width * int(values["factor"]))
        if large[1] * large[2] > MOST_PIXELS or max(large[1:]) > LONGEST_SIDE:
            raise LeaderError(
                f"The result would have {large[2]} x {large[1]} pixels; crop the picture or use a smaller factor."
            )
        return large

    def invents(self, picture: Picture, values: Values) -> bool:
        return int(values["factor"]) >= LARGE_FACTOR
