"""What a visitor chooses, in plain words, and the restoration that it asks for."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.restoration.request import RestoreRequest, parse_word

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "small": ("It is too small", ("sr",)),
    "blurred": ("It is blurred", ("deblur-gaussian", "deblur", "deblur-motion")),
    "noisy": ("It is noisy", ("denoise",)),
    "jpeg": ("It shows JPEG blocks", ("jpeg", "denoise")),
    "missing": ("Parts are missing", ("inpaint",)),
    "grey": ("It has no colour", ("colourise",)),
}
"""Kind of damage -> (words, tasks that repair it, the usual one first; one that this version lacks is passed over)."""
TASK_WORDS = {task: words for words, tasks in reversed(KINDS.values()) for task in tasks}
"""Task -> what the page calls it, as `leader.messages.render` takes them."""
FACTORS = (2, 3, 4, 8)
CHOSEN = "chosen by the quality"
"""What an expert setting says where it was left alone."""
WIDEST_BLUR = 8.0
"""Pixels; a wider blur leaves nothing to restore."""
MOST_MASK = 8 << 20
"""Characters of a painted mask: a data address of a picture of two colours."""
PNG = "data:image/png;base64,"
NOTHING_PAINTED = "Paint over the missing parts with the brush first."
ALL_PAINTED = "Everything is painted over; leave some of the picture, for the rest is filled in from it."


@dataclass(frozen=True)
class Wish:
    """A visitor's choices.

    kind      a key of KINDS; factor and blur (in pixels; None: as it was found) belong to some of them
    painted   a PNG as a data address, opaque where the picture is missing, of any size; empty: nothing painted
    request   quality, look and expert settings
    """

    kind: str = "small"
    factor: int = 4
    blur: float | None = None
    painted: str = ""
    request: RestoreRequest = field(default_factory=RestoreRequest)

    def change(self, **choices: Any) -> Wish:
        """The same wish with some choices of the request changed."""
        return replace(self, request=replace(self.request, **choices))


def kind_of(task: str) -> str | None:
    """The kind of damage that a task repairs."""
    return next((kind for kind, (_, tasks) in KINDS.items() if task in tasks), None)


def list_priors() -> list[str]:
    """Priors that are on this machine: a visitor can choose no others, and none by a path."""
    from leader.priors.catalogue import ENTRIES

    return ["embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)]


def parse_choice(name: str, value: Any) -> Any:
    """What a form's field says for a choice of the request; None where it is left to the quality, or empty."""
    return None if value == CHOSEN else parse_word(name, value)


def build_request(wish: Wish, size: tuple[int, int], proposed: tuple[str, Mapping[str, Any]] | None = None) -> RestoreRequest:
    """The restoration that a visitor wishes of a picture of `size` (width, height).

    proposed  (task, options) of the diagnosis, which hold where the visitor agrees with its kind
    """
    _check(wish)
    task, options = _task(wish.kind), {}
    if proposed is not None and kind_of(proposed[0]) == wish.kind:
        task, options = proposed[0], dict(proposed[1])
    if wish.kind == "small":
        options["factor"] = wish.factor
    if wish.kind == "blurred" and wish.blur is not None:
        task, options["kernel"] = "deblur-gaussian", f"gaussian:{wish.blur:g}"
    if wish.kind == "blurred" and "kernel" not in options:
        raise UsageError("Say how wide the blur is, in pixels; none was found in the picture.")
    if wish.painted and wish.kind == "missing":
        options["mask"] = mask_of(wish.painted, size)
    elif wish.kind == "missing" and (proposed is None or kind_of(proposed[0]) != "missing"):
        raise LeaderError(NOTHING_PAINTED)  # nothing is transparent, and no scratches were found
    if wish.request.sigma is not None:
        options["sigma"] = wish.request.sigma
    if wish.request.method is not None:
        options |= {"quality": None, "look": None}  # which choose the method, where the visitor does not
    return wish.request.with_options({"task": task, **options})


def _task(kind: str) -> str:
    from leader.restoration.tasks import TASKS

    return next(task for task in KINDS[kind][1] if task in TASKS)


def _check(wish: Wish) -> None:
    if wish.kind not in KINDS:
        raise UsageError(f"Say what is wrong with the picture: one of {', '.join(KINDS)}; found '{wish.kind}'.")
    if wish.request.prior not in list_priors():
        raise UsageError(f"The prior must be one of {', '.join(list_priors())}; found '{wish.request.prior}'.")
    if wish.blur is not None and not (math.isfinite(wish.blur) and 0 < wish.blur <= WIDEST_BLUR):
        raise UsageError(f"The blur must be wider than 0 and at most {WIDEST_BLUR:g} pixels; found {wish.blur:g}.")


def mask_of(painted: str, size: tuple[int, int]) -> NDArray[np.float32]:
    """[H, W], 1 where the picture of `size` is known, from what was painted over a view of it."""
    import io

    if not painted.startswith(PNG) or len(painted) > MOST_MASK:
        raise LeaderError("What was painted did not arrive as a picture; paint the missing parts again.")
    try:
        with Image.open(io.BytesIO(base64.b64decode(painted[len(PNG) :], validate=True)), formats=("PNG",)) as image:
            if image.width * image.height > 4_000_000:
                raise LeaderError("What was painted is larger than the page's own canvas; paint the missing parts again.")
            covered = image.convert("RGBA").getchannel("A").resize(size, Image.Resampling.BILINEAR)
    except (binascii.Error, OSError, SyntaxError, ValueError) as error:
        if isinstance(error, LeaderError):
            raise
        raise LeaderError("What was painted cannot be read; paint the missing parts again.") from error
    missing = np.asarray(covered) > 127
    if not missing.any():
        raise LeaderError(NOTHING_PAINTED)
    if missing.all():
        raise LeaderError(ALL_PAINTED)
    known: NDArray[np.float32] = (~missing).astype(np.float32)
    return known


def half_painted() -> str:
    """A mask as the page would send it, one half covered: it stands for one that is not painted yet."""
    import io

    buffer = io.BytesIO()
    covered = Image.new("RGBA", (2, 1))
    covered.putpixel((0, 0), (220, 38, 38, 255))
    covered.save(buffer, "PNG")
    return PNG + base64.b64encode(buffer.getvalue()).decode("ascii")


def found_blur(options: Mapping[str, Any]) -> float | None:
    """The width of a Gaussian blur that a diagnosis found; 0 for a blur of another shape, None for none."""
    kernel = options.get("kernel")
    if kernel is None:
        return None
    if not isinstance(kernel, str) or not kernel.startswith("gaussian:"):
        return 0.0
    return min(WIDEST_BLUR, float(kernel.partition(":")[2]))
