"""degrade: simulates a bad camera on a good picture, to test restorations against a known truth.

A picture is degraded as a camera would: blurred with more scene beyond its border, clipped to the range and
rounded when it is written. As a measurement it keeps every decimal of y = A x + sigma z, with the exact operator.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leader.errors import UsageError
from leader.forensics import examine
from leader.noise import SeededNoise
from leader.operators import build_task
from leader.pictures import Picture, check_format, write_picture
from leader.pictures.container import SUFFIX, Measurement, write_container
from leader.restoration.arguments import ImageLike, as_picture, as_seed, as_sigma
from leader.restoration.tasks import Request, task_options

CLIPPED = 0.01
"""Share of values beyond the range above which a note is given."""


@dataclass(frozen=True)
class Degraded:
    """A degraded picture, or a measurement (with the exact operator), and notes for the user, one sentence each.

    >>> leader.degrade(torch.rand(3, 16, 16), "denoise", sigma=0.1).task
    'denoise'
    """

    content: Picture | Measurement
    task: str
    sigma: float
    notes: tuple[str, ...] = ()

    @property
    def picture(self) -> Picture:
        """The degraded picture."""
        if not isinstance(self.content, Picture):
            raise UsageError("This is a measurement with its operator, not a picture; ask for one with exact=False.")
        return self.content

    @property
    def measurement(self) -> Measurement:
        """The measurement with its operator."""
        if not isinstance(self.content, Measurement):
            raise UsageError("This is a picture, not a measurement with its operator; ask for one with exact=True.")
        return self.content

    def save(self, path: str | Path) -> None:
        """Writes the picture (the suffix chooses the format) or the container (.npz)."""
        if isinstance(self.content, Picture):
            write_picture(Path(path), self.content)
        else:
            write_container(Path(path), self.content)

    def __repr__(self) -> str:
        return f"<Degraded {self.task}, sigma {self.sigma:g}: {self.content!r}>"

    def _repr_png_(self) -> bytes | None:
        """How a notebook shows the picture."""
        return self.content._repr_png_() if isinstance(self.content, Picture) else None


def degrade(
    image: ImageLike,
    task: str = "sr",
    *,
    sigma: float = 0.0,
    seed: int = 0,
    exact: bool = False,
    **options: Any,
) -> Degraded:
    """Degrades a good picture as a camera would.

    seed     of the noise, and of the motion kernel and the index set if none is given
    exact    a measurement that keeps every decimal and its operator, instead of a picture
    options  of the task, as in `leader.restore`: factor, down, kernel, mask; for compressed sensing ratio (share of
             coefficients) and order ("random", "sequency" or "published"); for jpeg its quality (1 to 100)

    >>> leader.degrade(torch.rand(3, 16, 16), "sr", factor=2, sigma=0.05).content.pixels.shape
    (8, 8, 3)
    """
    chosen, given = task_options(task, options)
    level, origin = as_sigma(sigma), as_seed(seed)
    if not (chosen.is_picture or exact):
        raise UsageError(f"A measurement of the task '{chosen.name}' is not a picture; write a container (.npz) or use exact.")
    if exact and not chosen.in_containers:
        raise UsageError(f"The task '{chosen.name}' lives in pictures; write a .png or .jpg file instead of a container.")
    picture = as_picture(image)
    request = Request(examine(picture), origin)
    values = chosen.read(given, request)
    x = torch.from_numpy(np.ascontiguousarray(picture.pixels.transpose(2, 0, 1)))[None]
    shape = (int(x.shape[1]), int(x.shape[2]), int(x.shape[3]))
    numbers = chosen.exact(given, values, origin)
    y = build_task(chosen.name, shape, **numbers).A(x) if exact else chosen.photographed(x, values)
    noise = SeededNoise(origin)([0], [0], "observation", y.shape[1:])
    noisy = chosen.hidden(y + level * noise, values)
    content: Picture | Measurement
    if exact:
        content = Measurement(chosen.name, noisy, shape, level, numbers, picture.bits, picture.alpha, picture.icc)
    else:
        share = float(((noisy < 0) | (noisy > 1)).float().mean())
        if share > CLIPPED:
            fact = f"{100 * share:.0f} % of the values were clipped to the range; a container ({SUFFIX}) keeps them."
            request.notes.append(fact)
        pixels = np.ascontiguousarray(noisy[0].permute(1, 2, 0).clamp(0, 1).numpy(), dtype=np.float32)
        content = chosen.developed(picture.with_pixels(pixels), values)
    return Degraded(content, chosen.name, level, tuple(request.notes))


def degrade_file(image: ImageLike, out: str | Path, task: str = "sr", **options: Any) -> list[str]:
    """Degrades a picture into the file `out`, a picture or (.npz) a container; returns notes for the user.

    Arguments as in `degrade`.
    """
    path = Path(out)
    contained = path.suffix.lower() == SUFFIX
    chosen, _ = task_options(task, {})
    if not contained and chosen.is_picture:
        check_format(path)
    degraded = degrade(image, task, exact=contained, **options)
    if not contained:
        check_format(path, degraded.picture.alpha is not None)
    degraded.save(path)
    return list(degraded.notes)
