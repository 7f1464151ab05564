"""Super-resolution: a small picture becomes a large one."""

from collections.abc import Sequence
from typing import Any

from leader.errors import LeaderError, UsageError, unknown_name
from leader.forensics import Examination
from leader.forensics.examination import found_or_none
from leader.forensics.size.thumbnails import ALIASING, take_given_kernel
from leader.messages import Note, Remedy
from leader.operators import build_task
from leader.operators.pillow_resize import read_mixture
from leader.operators.tasks import DOWNSAMPLING
from leader.pictures.picture import MOST_PIXELS, Picture
from leader.restoration.invention import LARGE_FACTOR
from leader.restoration.resources import check_memory
from leader.restoration.tasks.base import Measured, Option, Request, Shape, Task, Values

LARGEST_FACTOR = 16


def _factor(factor: Any, request: Request) -> float:
    number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
    if not number or not 1 <= factor <= LARGEST_FACTOR:
        raise UsageError(f"The factor of super-resolution must be a number from 1 to {LARGEST_FACTOR}; found {factor!r}.")
    return int(factor) if factor == int(factor) else float(factor)


def read_size(size: Any, given: tuple[int, int]) -> tuple[int, int]:
    """(width, height) asked for a picture of size `given`: two numbers, or WIDTHxHEIGHT, of which one may be left out.

    The side that is left out follows from the proportions of the picture.
    """
    if isinstance(size, str):
        parts: Sequence[Any] = [
            int(part) if part.isdecimal() and len(part) < 10 else part or None for part in size.strip().lower().split("x")
        ]
    else:
        parts = list(size) if isinstance(size, (tuple, list)) else [size]
    known = [isinstance(part, int) and not isinstance(part, bool) and part > 0 for part in parts]
    if len(parts) != 2 or not any(known) or not all(sure or part is None for sure, part in zip(known, parts)):
        raise UsageError(f"The size of the result is WIDTHxHEIGHT in pixels, as in 1920x1080; found {str(size)[:40]}.")
    wanted = [part or max(1, round(parts[1 - axis] * given[axis] / given[1 - axis])) for axis, part in enumerate(parts)]
    if any(not side <= want <= LARGEST_FACTOR * side for side, want in zip(given, wanted)):
        raise UsageError(
            f"The picture has {given[0]} x {given[1]} pixels and the result would have {wanted[0]} x {wanted[1]}; pictures are "
            f"enlarged, at most {LARGEST_FACTOR} times along each side, so ask for a size in that range."
        )
    return wanted[0], wanted[1]


def _size(size: Any, request: Request) -> tuple[int, int]:
    if request.degrading:
        raise UsageError("The size is that of an enlarged picture; give the factor by which a picture is to become smaller.")
    given = request.picture.size
    wanted = read_size(size, given)
    kept = min(wanted[0] / given[0], wanted[1] / given[1])
    fitting = tuple(round(side * kept) for side in given)
    if max(abs(want - fit) / want for want, fit in zip(wanted, fitting)) > STRETCHED:
        fact = f"The requested size has other proportions than the picture, which is therefore stretched to {_times(wanted)}."
        request.notes.append(Note("stretched", fact, Remedy("keep its proportions", {"size": _times(fitting)})))
    return wanted


def _times(size: tuple[int, ...]) -> str:
    return f"{size[0]}x{size[1]}"


STRETCHED = 0.01
"""Share of a side by which proportions may differ without a word: a pixel or two of rounding."""
AUTO = "auto"
LONGEST_SIDE = 16384
"""Pixels of the result: the table of weights along a side grows with its square, to a gigabyte there."""


def _down(down: Any, request: Request) -> str:
    if down == AUTO and request.degrading:
        raise UsageError(f"Say how the picture is made small; choose one of {', '.join(DOWNSAMPLING)}.")
    if down not in (*DOWNSAMPLING, AUTO) and read_mixture(str(down)) is None:
        raise unknown_name("way of downsampling", str(down), [*DOWNSAMPLING, AUTO])
    return str(down)


def _usual(request: Request) -> str:
    return "bicubic" if request.degrading else AUTO


class SuperResolution(Task):
    name = "sr"
    title = "super-resolution"
    description = (
        "Enlarges a small picture. Options: factor (1 to 16, also 1.5; default 4) or size, that of the result; down = nearest, "
        "box, bilinear, pillow-bicubic or lanczos (as Pillow makes thumbnails), opencv-bilinear or opencv-bicubic (as OpenCV "
        "does), bicubic (Pillow's with mirrored borders), average (what sensors do), or auto, the default, which recognises "
        "the way; if that is uncertain, what loses least is assumed, one of them or a mean (also by hand: "
        "box:30+lanczos:70), and the difference counts as noise. sr-bicubic and sr-average are names for two of these."
    )
    example = "leader restore small.png large.png --task sr"
    page, operators = ("small", "It is too small"), ("sr-bicubic", "sr-average", "sr-nearest")
    keeps_grain, fine_detail = True, True
    options = (
        Option("factor", _factor, lambda _: 4),
        Option("size", _size, lambda _: None),
        Option("down", _down, _usual),
    )

    def read(self, given: Values, request: Request) -> dict[str, Any]:
        if given.get("factor") is not None and given.get("size") is not None:
            raise UsageError("The size of the result and the factor both set its size; leave out one of them.")
        values = super().read(given, request)
        del values["size" if values["size"] is None else "factor"]
        if request.degrading:
            return values
        check_memory(self.shape(request.picture, values))  # before anything looks at the picture
        factor, down = self._enlargement(request.picture, values), values["down"]
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
        elif down not in DOWNSAMPLING or down in ALIASING:  # a mixture; or too few pixels for a prior to begin with
            found = take_given_kernel(request.picture.pixels, factor, down)
        else:
            return values
        request.doubts.append(found.doubt)
        return {**values, "down": found.down}

    def shape(self, picture: Picture, values: Values) -> Shape:
        width, height = values["size"] if "size" in values else (max(1, round(n * values["factor"])) for n in picture.size)
        if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
            raise LeaderError(f"The result would have {width} x {height} pixels; crop the picture or use a smaller factor.")
        return picture.pixels.shape[2], height, width

    def measured(self, examination: Examination, values: Values) -> Measured:
        picture = examination.picture
        small = (int(picture.pixels.shape[0]), int(picture.pixels.shape[1]))
        operator = build_task(self.name, self.shape(picture, values), down=values["down"], small=small)
        return Measured(operator, picture.pixels, picture)

    def invents(self, picture: Picture, values: Values) -> bool:
        return self._enlargement(picture, values) >= LARGE_FACTOR

    @staticmethod
    def _enlargement(picture: Picture, values: Values) -> float:
        """By how much the picture becomes larger, along the side that grows more."""
        if "size" not in values:
            return float(values["factor"])
        return max(float(want) / side for want, side in zip(values["size"], picture.size))
