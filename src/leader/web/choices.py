"""A visitor's choices, as the page sends them, and the restorations they ask for."""

from __future__ import annotations

import base64
import binascii
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.presets.paths import LOOKS, QUALITIES
from leader.restoration.request import RestoreRequest, parse_word, word_of
from leader.restoration.tasks import TASKS

ORDER = ("missing", "noisy", "jpeg", "blurred", "grey", "small")
"""Kinds of damage in the order of repair: enlarging comes last, since the others are cheaper on a small picture."""
KINDS = {kind: [task for task in TASKS.values() if task.page and task.page[0] == kind] for kind in ORDER}
"""Kind of damage -> the tasks that repair it, the usual one first."""
TASK_WORDS = {task.name: task.page[1] for tasks in KINDS.values() for task in tasks if task.page}
"""Task -> its name on the page, in the form that `leader.messages.render` takes."""
EXPERT = {
    "method": "Method",
    "plugins": "Plug-ins",
    "steps": "Steps",
    "budget": "Budget of SATP",
    "estimator": "Estimator",
    "sigma": "Noise level, 0 to 1",
    "prior": "Prior",
    "seed": "Seed",
}
"""Request fields that the page offers to experts, with their labels; a new one is one line here."""
WIDEST_BLUR = 8.0
"""Pixels; a wider blur leaves nothing to restore."""
LARGEST_FACTOR = 16
MOST_MASK = 8 << 20
"""Characters of a painted mask: a data address of a picture of two colours."""
MOST_PAINTED = 4_200_000
"""Pixels of the painting canvas; the page limits it to 2048 on a side."""
PNG = "data:image/png;base64,"
NOTHING_CHOSEN = "Choose what is wrong with the picture first."
NOTHING_PAINTED = "Paint over the missing parts with the brush first."
ALL_PAINTED = "Everything is painted over; leave some of the picture, since the rest is filled in from it."
NO_MASK = "The painted mask cannot be read; paint the missing parts again."


@dataclass(frozen=True)
class Repair:
    """One repair of a picture.

    kind    a key of KINDS
    factor  by which a small picture is enlarged, or `size` (width, height) to fit into
    blur    width in pixels; None: as found in the picture
    """

    kind: str
    factor: float | None = None
    size: tuple[int, int] | None = None
    blur: float | None = None


@dataclass(frozen=True)
class Wish:
    """A visitor's choices.

    repairs      in order
    painted      a PNG as a data address, opaque where the picture is missing, of any size; empty: nothing painted
    request      quality, look and expert settings
    draft_first  whether a quick draft is shown during a long run
    """

    repairs: tuple[Repair, ...]
    painted: str = ""
    request: RestoreRequest = field(default_factory=RestoreRequest)
    draft_first: bool = True

    def change(self, **choices: Any) -> Wish:
        """The same wish with some choices of the request changed."""
        return replace(self, request=replace(self.request, **choices))


def read_wish(body: Mapping[str, Any]) -> Wish:
    """Parses the wish that the page sent; anything malformed is rejected with a one-sentence error."""
    listed = body.get("repairs")
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed) or not listed:
        raise UsageError(NOTHING_CHOSEN)
    repairs = [_read_repair(item) for item in listed]
    if len({repair.kind for repair in repairs}) < len(repairs):
        raise UsageError("Each kind of damage can be chosen only once; remove the repeated one.")
    chosen = {name: parse_word(name, body.get(name)) for name in ("quality", "look", *EXPERT)}
    given = {name: value for name, value in chosen.items() if value is not None}
    for name, known in (("quality", QUALITIES), ("look", LOOKS), ("prior", list_priors())):
        if name in given and given[name] not in known:
            raise UsageError(f"The {name} must be one of {', '.join(known)}; found '{str(given[name])[:40]}'.")
    repairs.sort(key=lambda repair: ORDER.index(repair.kind))
    return Wish(tuple(repairs), str(body.get("painted") or ""), RestoreRequest(**given), body.get("draft_first") is not False)


def _read_repair(item: Mapping[str, Any]) -> Repair:
    kind, size = item.get("kind"), item.get("size")
    if not isinstance(kind, str) or not KINDS.get(kind):
        raise UsageError(f"Say what is wrong with the picture: one of {', '.join(KINDS)}; found '{str(kind)[:40]}'.")
    factor, blur = _read_number(item.get("factor"), "factor"), _read_number(item.get("blur"), "blur")
    if factor is not None and not 1 < factor <= LARGEST_FACTOR:
        raise UsageError(f"The factor must be larger than 1 and at most {LARGEST_FACTOR}; found {factor:g}.")
    if blur is not None and not 0 < blur <= WIDEST_BLUR:
        raise UsageError(f"The blur must be wider than 0 and at most {WIDEST_BLUR:g} pixels; found {blur:g}.")
    if size is None:
        return Repair(kind, factor, None, blur)
    whole = isinstance(size, list) and len(size) == 2 and all(type(side) is int and 0 < side < 2**16 for side in size)
    if not whole:
        raise UsageError(f"The size must be a width and a height in pixels; found '{str(size)[:40]}'.")
    return Repair(kind, factor, (size[0], size[1]), blur)


def _read_number(value: Any, label: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise UsageError(f"The {label} must be a number; found '{str(value)[:40]}'.")
    return float(value)


def kind_of(task: str) -> str | None:
    """The kind of damage that a task repairs."""
    page = TASKS[task].page if task in TASKS else None
    return page[0] if page is not None and page[0] in KINDS else None


def list_priors() -> list[str]:
    """Priors on this machine: a visitor cannot choose others, or give a path."""
    from leader.priors.catalogue import ENTRIES

    return ["embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)]


def list_menus() -> dict[str, list[str]]:
    """The expert settings that are chosen from a list, and their values."""
    menus = {name: listed() for name in EXPERT if (listed := word_of(RestoreRequest, name).names) is not None}
    return {**menus, "prior": list_priors()}


def build_request(
    wish: Wish, number: int, size: tuple[int, int], advised: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> RestoreRequest:
    """The request for repair `number` of a wish, for a picture of `size` (width, height).

    advised  kind of damage -> (task, options) of the diagnosis of the picture given
    """
    repair, request = wish.repairs[number], wish.request
    task, options = KINDS[repair.kind][0].name, dict[str, Any]()
    if repair.kind in advised:
        task, options = advised[repair.kind][0], dict(advised[repair.kind][1])
    if repair.kind == "small":
        wanted = {"factor": repair.factor or 4.0} if repair.size is None else {"size": fit_size(repair.size, size)}
        options |= wanted
    if repair.kind == "blurred" and repair.blur is not None:
        task, options = "deblur-gaussian", {"kernel": f"gaussian:{repair.blur:g}"}
    if repair.kind == "blurred" and "kernel" not in options:
        raise UsageError("Say how wide the blur is, in pixels; none was found in the picture.")
    if repair.kind == "missing" and wish.painted:
        options["mask"] = mask_of(wish.painted, size)
    elif repair.kind == "missing" and repair.kind not in advised:
        raise LeaderError(NOTHING_PAINTED)  # no transparency and no scratches
    if number:  # the given level was that of the original picture; the remaining noise is measured
        request = replace(request, sigma=None)
    elif request.sigma is not None:
        options["sigma"] = request.sigma
    if request.method is not None:
        options |= {"quality": None, "look": None}  # which determine the method unless the visitor chooses one
    return request.with_options({"task": task, **options})


def fit_size(box: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """The largest (width, height) with the proportions of `size` that fits into a box."""
    ratio = min(box[0] / size[0], box[1] / size[1])
    if ratio <= 1:
        found = f"{size[0]} x {size[1]}"
        raise UsageError(f"The picture has {found} pixels, which is already the requested size or more; ask for a larger size.")
    return max(size[0], round(ratio * size[0])), max(size[1], round(ratio * size[1]))


def mask_of(painted: str, size: tuple[int, int]) -> NDArray[np.float32]:
    """[H, W], 1 where the picture of `size` is known, from a mask painted over a view of it."""
    if not painted.startswith(PNG) or len(painted) > MOST_MASK:
        raise LeaderError("The painted mask did not arrive as a picture; paint the missing parts again.")
    try:
        with Image.open(io.BytesIO(base64.b64decode(painted[len(PNG) :], validate=True)), formats=("PNG",)) as image:
            if image.width * image.height > MOST_PAINTED:
                raise LeaderError("The painted mask is larger than the page's canvas; paint the missing parts again.")
            covered = image.convert("RGBA").getchannel("A").resize(size, Image.Resampling.BILINEAR)
    except (binascii.Error, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise error if isinstance(error, LeaderError) else LeaderError(NO_MASK) from error
    missing = np.asarray(covered) > 127
    if not missing.any():
        raise LeaderError(NOTHING_PAINTED)
    if missing.all():
        raise LeaderError(ALL_PAINTED)
    known: NDArray[np.float32] = (~missing).astype(np.float32)
    return known


def draw_mask(missing: NDArray[np.bool_], side: int | None = None) -> bytes:
    """A mask as a PNG in the page's format, opaque where a picture [H, W] is missing; no larger than `side`."""
    cover = Image.fromarray(np.where(missing, 255, 0).astype(np.uint8))
    if side is not None:
        cover.thumbnail((side, side), Image.Resampling.BOX)
    drawn = Image.new("RGBA", cover.size, (220, 38, 38, 255))
    drawn.putalpha(cover.point(lambda value: 255 if value >= 64 else 0))
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    return buffer.getvalue()
