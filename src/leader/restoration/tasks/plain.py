"""Tasks that need little: denoising, colourisation, and compressed sensing, which starts from a container."""

import math
from dataclasses import replace
from typing import Any

from leader.errors import LeaderError, UsageError, unknown_name
from leader.forensics import Examination
from leader.messages import Note
from leader.operators.hadamard import ORDERS
from leader.pictures.picture import Picture
from leader.restoration.tasks.base import Measured, Option, Request, Shape, Task, Values

INVENTED_COLOURS = Note("invented colours", "The colours are invented: the picture has none.")


class Denoising(Task):
    name = "denoise"
    title = "denoising"
    description = "Removes noise and nothing else."
    example = "leader restore noisy.png clean.png --task denoise"
    page = ("noisy", "It is noisy")
    coarse_colour = True
    weak_noise = 1.5 / 255  # nobody sees it, and on validation photographs taking away less cost more detail than it gained


class Colourisation(Task):
    name = "colourise"
    title = "colourisation"
    description = "Gives colours to a grey picture: the mean of the three channels is what was measured."
    example = "leader restore grey.png colour.png --task colourise"
    page = ("grey", "It has no colour")

    def check(self, request: Request) -> None:
        if not request.degrading:
            request.notes.append(INVENTED_COLOURS)
        if request.degrading and request.picture.pixels.shape[2] == 1:
            raise LeaderError("The picture is grey already; give one with colours, or restore it with the task 'colourise'.")

    def shape(self, picture: Picture, values: Values) -> Shape:
        return 3, picture.pixels.shape[0], picture.pixels.shape[1]

    def measured(self, examination: Examination, values: Values) -> Measured:
        grey = examination.picture.pixels.mean(2, keepdims=True)
        return replace(super().measured(examination, values), pixels=grey)


def _ratio(ratio: Any, request: Request) -> float:
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not (math.isfinite(ratio) and 0 < ratio <= 1):
        raise UsageError(f"The share of coefficients that is measured must lie in (0, 1]; found {ratio}.")
    return ratio


def _order(order: Any, request: Request) -> str:
    if order not in ORDERS:
        raise unknown_name("order of coefficients", str(order), ORDERS)
    return str(order)


class CompressedSensing(Task):
    name = "cs"
    title = "compressed sensing"
    description = (
        "Recovers a picture from a part of its Walsh-Hadamard coefficients; sides must be powers of two. "
        "Options: ratio (default 0.25), order = random, sequency or published; in experiments seed, keep_constant and "
        "indices too."
    )
    example = "leader restore measurement.npz picture.png --task cs"
    options = (
        Option("ratio", _ratio, lambda _: None),
        Option("order", _order, lambda _: None),
    )
    is_picture = False

    def check(self, request: Request) -> None:
        if not request.degrading:
            raise LeaderError(
                "Compressed sensing starts from a measurement, not a picture; give a container (.npz) of `leader degrade`."
            )

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        return {**super().exact(given, values, seed), "seed": seed}
