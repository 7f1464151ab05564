"""What a visitor chooses, in plain words, and the arguments of `prepare` that it stands for."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.presets.paths import LOOKS, QUALITIES

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
NONE = "none"
WIDEST_BLUR = 8.0
"""Pixels; a wider blur leaves nothing to restore."""
MOST_MASK = 8 << 20
"""Characters of a painted mask: a data address of a picture of two colours."""
PNG = "data:image/png;base64,"
MOST_STEPS, MOST_WHOLE = 1000, 2**31 - 1
NOTHING_PAINTED = "Paint over the missing parts with the brush first."
ALL_PAINTED = "Everything is painted over; leave some of the picture, for the rest is filled in from it."


@dataclass(frozen=True)
class Wish:
    """A visitor's choices.

    kind      a key of KINDS; factor and blur (in pixels; None: as it was found) belong to some of them
    painted   a PNG as a data address, opaque where the picture is missing, of any size; empty: nothing painted
    quality   one of QUALITIES, look one of LOOKS; the rest are expert settings, None where left alone
    """

    kind: str = "small"
    factor: int = 4
    blur: float | None = None
    painted: str = ""
    quality: str = "standard"
    look: str = "natural"
    method: str | None = None
    plugins: str | None = None
    steps: int | None = None
    budget: float | None = None
    estimator: str | None = None
    sigma: float | None = None
    prior: str = "embedded"
    seed: int = 0


def kind_of(task: str) -> str | None:
    """The kind of damage that a task repairs."""
    return next((kind for kind, (_, tasks) in KINDS.items() if task in tasks), None)


def priors() -> list[str]:
    """Priors that are on this machine: a visitor can choose no others, and none by a path."""
    from leader.priors.catalogue import ENTRIES

    return ["embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)]


def arguments(wish: Wish, size: tuple[int, int], proposed: tuple[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """The arguments of `prepare` besides the picture of `size` (width, height).

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
    if wish.sigma is not None:
        options["sigma"] = wish.sigma
    plugins = {None: None, NONE: ()}.get(wish.plugins, (wish.plugins,))
    if plugins is None and wish.budget is not None:
        plugins = ("leader",)  # whose budget it is
    path: dict[str, Any] = {"quality": wish.quality, "look": wish.look} if wish.method is None else {"method": wish.method}
    return {
        "task": task,
        **options,
        **path,
        "plugins": plugins,
        "steps": wish.steps,
        "prior": wish.prior,
        "seed": wish.seed,
        "settings": _settings(wish, plugins),
    }


def _task(kind: str) -> str:
    from leader.restoration.tasks import TASKS

    return next(task for task in KINDS[kind][1] if task in TASKS)


def _check(wish: Wish) -> None:
    if wish.kind not in KINDS:
        raise UsageError(f"Say what is wrong with the picture: one of {', '.join(KINDS)}; found '{wish.kind}'.")
    if wish.quality not in QUALITIES or wish.look not in LOOKS:
        raise UsageError(f"The quality is one of {', '.join(QUALITIES)} and the look one of {', '.join(LOOKS)}.")
    if wish.prior not in priors():
        raise UsageError(f"The prior must be one of {', '.join(priors())}; found '{wish.prior}'.")
    if wish.blur is not None and not (math.isfinite(wish.blur) and 0 < wish.blur <= WIDEST_BLUR):
        raise UsageError(f"The blur must be wider than 0 and at most {WIDEST_BLUR:g} pixels; found {wish.blur:g}.")


def _settings(wish: Wish, plugins: tuple[Any, ...] | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if wish.estimator is not None:
        settings["estimator"] = None if wish.estimator == NONE else wish.estimator
    if wish.budget is not None:
        if not (math.isfinite(wish.budget) and wish.budget >= 0):
            raise UsageError(f"The budget must be finite and >= 0; found {wish.budget}.")
        if not {"leader", "satp"} & set(plugins or ()):
            raise UsageError("A budget belongs to the plug-in 'satp'; choose the plug-in leader or satp, or no budget.")
        settings["satp"] = {"budget": wish.budget}
    return settings


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


def left_alone(value: Any) -> Any:
    """None for an expert setting that says it is left to the quality, or says nothing."""
    return None if value is None or str(value).strip() in ("", CHOSEN) else value


def number(value: Any, what: str) -> float | None:
    """The number in a form's field, None where it is empty."""
    if left_alone(value) is None:
        return None
    try:
        found = float(value.replace(",", ".") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"The {what} must be a number; found '{str(value)[:40]}'.")
    return found


def whole(value: Any, what: str, least: int = 0, most: int = MOST_WHOLE) -> int | None:
    """The whole number in a form's field, None where it is empty."""
    found = number(value, what)
    if found is None:
        return None
    if found != int(found) or not least <= found <= most:
        raise UsageError(f"The {what} must be a whole number from {least} to {most}; found {found:.12g}.")
    return int(found)


def other(wish: Wish, **changes: Any) -> Wish:
    """The same wish with some choices changed."""
    return replace(wish, **changes)
