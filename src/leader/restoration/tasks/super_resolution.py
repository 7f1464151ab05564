"""Super-resolution: a small picture becomes a large one."""

from __future__ import annotations

from typing import Any

from leader.errors import LeaderError, UsageError, unknown_name
from leader.operators.tasks import DOWNSAMPLING
from leader.pictures.picture import MOST_PIXELS, Picture
from leader.restoration.tasks.base import Option, Request, Shape, Task, Values


def _factor(factor: Any, request: Request) -> int:
    if isinstance(factor, bool) or not isinstance(factor, int) or not 1 <= factor <= 16:
        raise UsageError(f"The factor of super-resolution must be an integer from 1 to 16; found {factor}.")
    return factor


def _down(down: Any, request: Request) -> str:
    if down not in DOWNSAMPLING:
        raise unknown_name("way of downsampling", str(down), DOWNSAMPLING)
    return str(down)


class SuperResolution(Task):
    name = "sr"
    title = "super-resolution"
    description = (
        "Enlarges a small picture by an integer factor. Options: factor (default 4); down = bicubic "
        "(antialiased, what image programs do) or average (what sensors do). Also called sr-bicubic and sr-average."
    )
    example = "leader restore small.png large.png --task sr"
    options = (
        Option("factor", "1 to 16", "how much larger the picture becomes", int, _factor, lambda _: 4, "4"),
        Option("down", "bicubic|average", "how it became small", str, _down, lambda _: "bicubic", "bicubic"),
    )

    def shape(self, picture: Picture, values: Values) -> Shape:
        channels, height, width = super().shape(picture, values)
        large = (channels, height * int(values["factor"]), width * int(values["factor"]))
        if large[1] * large[2] > MOST_PIXELS:
            raise LeaderError(
                f"The result would have {large[2]} x {large[1]} pixels; crop the picture or use a smaller factor."
            )
        return large
