"""JPEG: blocks, ringing and false colours of a compression are removed, as far as its coefficients allow.

The measurement is what the file holds: multiples of known steps, taken again from the pixels
(`leader.forensics.jpeg.coefficients`), so that it works as well on a JPEG that was saved as PNG or cropped since.
"""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.forensics import Examination
from leader.forensics.jpeg.coefficients import Coefficients, read_coefficients
from leader.operators.jpeg import Jpeg
from leader.operators.tasks import SAMPLINGS
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.picture import Picture
from leader.pictures.reading import from_pil
from leader.restoration.borders import Window
from leader.restoration.tasks.base import Measured, Option, Request, Task, Values
from leader.transforms import BLOCK

LEVEL = 2.3
"""The error of a compression over that of rounding the coefficients that are not zero: the median of development photographs
(`benchmarks/jpeg_error.py`), much the same at every quality and also in small pictures, where little else is known.
"""
QUALITY = 75
NAMES = {size: name for name, size in SAMPLINGS.items()}
NO_TRACE = (
    "The picture shows no trace of JPEG: neither its file nor its pixels hold quantised 8 x 8 blocks; if it was resized since, "
    "use the task 'denoise'."
)


def _quality(quality: Any, request: Request) -> int:
    if isinstance(quality, bool) or not isinstance(quality, int) or not 1 <= quality <= 100:
        raise UsageError(f"The quality of a JPEG is a whole number from 1 to 100; found {quality!r}.")
    return quality


def _usual(request: Request) -> int:
    request.notes.append(f"No quality was given: the JPEG has quality {QUALITY}.")
    return QUALITY


class JpegArtefacts(Task):
    name = "jpeg"
    title = "removal of JPEG artefacts"
    description = (
        "Removes what JPEG compression added: blocks, ringing, false colours. Its steps are read from the file or found in "
        "the pixels. Option, when degrading: quality, from 1 to 100."
    )
    example = "leader restore photo.jpg clean.png --task jpeg"
    page = ("jpeg", "It shows JPEG blocks")
    options = (Option("quality", _quality, _usual),)
    in_containers = False
    plugins = ("cells",)

    def read(self, given: Values, request: Request) -> dict[str, Any]:
        if request.degrading:
            return super().read(given, request)
        if given.get("quality") is not None:
            raise UsageError("The quality of the JPEG is read from the picture; leave it out.")
        super().read({**given, "quality": QUALITY}, request)  # refuses the options of other tasks
        return {}

    def measured(self, examination: Examination, values: Values) -> Measured:
        picture, history = examination.picture, examination.blocks
        if history is None:
            raise LeaderError(NO_TRACE)
        found = read_coefficients(picture.pixels, history)
        operator = operator_of(found, LEVEL * found.rounding_error())
        whole = (found.height, found.width) == found.frame
        window = None if whole else Window(found.top, found.left, found.height, found.width)
        y = measurement_of(found, operator)
        notes = (_said(found.history, picture.pixels.shape[2] == 3),)
        return Measured(operator, picture.pixels, picture, None, window, y, operator.level, notes=notes)

    def photographed(self, x: Tensor, values: Values) -> Tensor:
        return x  # the compression comes last, after noise

    def developed(self, picture: Picture, values: Values) -> Picture:
        image = picture.rgb() if picture.pixels.shape[2] == 3 else Image.fromarray(np.asarray(picture.rgb())[..., 0])
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=values["quality"])
        buffer.seek(0)
        with Image.open(buffer) as file:
            decoded = from_pil(file)
        return replace(picture, pixels=decoded.pixels, bits=8, history=decoded.history)


def operator_of(found: Coefficients, level: float) -> Jpeg:
    """The operator whose measurements are the coefficients of a picture; noise of `level` in [0, 1] images."""
    steps = found.steps()
    zero = np.concatenate([plane.zero(table).reshape(-1) for plane, table in zip(found.planes, steps, strict=True)])
    doubt = np.concatenate([plane.doubt().reshape(-1) for plane in found.planes])
    tables = [torch.from_numpy(table) for table in steps]
    return Jpeg(
        (len(steps), *found.frame),
        tables[0],
        tables[1] if len(steps) == 3 else None,
        found.history.sampling,
        level,
        torch.from_numpy(~zero),
        torch.from_numpy(doubt),
    )


def measurement_of(found: Coefficients, operator: Jpeg) -> Tensor:
    """y [1, N] of [0, 1] images: in these luma is not taken off its mean, as JPEG does."""
    values = np.concatenate([plane.values.reshape(-1) for plane in found.planes])
    values[: found.planes[0].values.size : BLOCK * BLOCK] += 128 * BLOCK
    return operator.weighted(torch.from_numpy(values / np.float32(255))[None])


def _said(history: JpegHistory, colour: bool) -> str:
    sampling = f", {NAMES.get(history.sampling, 'chroma subsampled')}" if colour else ", grey"
    place = "its pixels show" if history.found else "its file says"
    return f"The picture is a JPEG of quality {history.quality}{sampling}, as {place}."
