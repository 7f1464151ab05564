"""The operators of the tasks by name, with numeric options, for experiments, containers and Python.

The meaning of a task for a picture, and its descriptions, are in `leader.restoration.tasks`. An operator's own `task` is its
name in presets: that of the task, or of its variant ("sr-bicubic", "sr-average"), which is also a valid name.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from leader.by_name import Registry, show_value
from leader.errors import LeaderError, UsageError, unknown_name
from leader.operators.base import LinearOperator
from leader.operators.blur import Blur
from leader.operators.hadamard import WalshHadamard
from leader.operators.jpeg import Jpeg
from leader.operators.kernels import gaussian_kernel, motion_kernel, paper_gaussian_taps
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING, MixedSR, read_mixture
from leader.operators.pointwise import Colourisation, Denoising, Inpainting, box_mask
from leader.operators.published import ReflectedBlur, ReleasedBlur, ReleasedColourisation
from leader.operators.resize import AveragePoolSR, BicubicSR
from leader.operators.separable_blur import SeparableBlur

Shape = tuple[int, int, int]
Option = float | int | str | bool | Tensor | tuple[int, int] | None

BOUNDARIES = ("circular", "reflected")
"""Beyond the border of a blurred image: its other side, or its mirror image, as published with DPS and SITCOM."""
FORMS = ("corrected", "published")
SAMPLINGS = {"4:4:4": (1, 1), "4:2:2": (1, 2), "4:4:0": (2, 1), "4:2:0": (2, 2), "4:1:1": (1, 4)}
"""Rows and columns of luma for one of chroma."""
DOWNSAMPLING: dict[str, Callable[..., LinearOperator]] = {"bicubic": BicubicSR, "average": AveragePoolSR, **PILLOW_DOWNSAMPLING}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {f"sr-{down}": ("sr", {"down": down}) for down in ("bicubic", "average")}
"""Names for a task with some of its options fixed."""


def resolve_task(name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The task and options of a name or variant name; None counts as not given."""
    given = {key: value for key, value in options.items() if value is not None}
    if name in VARIANTS:
        task, fixed = VARIANTS[name]
        for key, value in fixed.items():
            if given.get(key, value) != value:
                raise UsageError(f"The task '{name}' means {key} = {value}; found {given[key]}, so use '{task}' instead.")
        return task, {**given, **fixed}
    if name not in TASKS:
        raise unknown_name("task", name, [*TASKS, *VARIANTS])
    return name, given


def build_task(name: str, image_shape: Shape, **options: Option) -> LinearOperator:
    """The operator of a named task for images (C, H, W); errors for unknown names and options suggest the nearest valid one.

    >>> build_task("sr", (3, 8, 8), factor=2)
    BicubicSR('sr-bicubic', [3, 8, 8])
    """
    task, given = resolve_task(name, options)
    known = list_options(task)
    for key in given:
        if key not in known:
            if not known:
                raise UsageError(f"The task '{task}' has no options; found '{key}'.")
            raise unknown_name(f"option of the task '{task}'", key, known)
    return TASKS[task](image_shape, **given)


def list_options(task: str) -> tuple[str, ...]:
    """The options of a task's operator: the arguments of its builder besides the shape."""
    return tuple(inspect.signature(TASKS[task]).parameters)[1:]


def _super_resolution(
    shape: Shape, factor: float = 4, down: str = "bicubic", small: tuple[int, int] | None = None
) -> LinearOperator:
    """small: rows and columns of the measurement, instead of the factor; down: also a mixture, as in "box:30+lanczos:70"."""
    if read_mixture(down) is not None:
        return MixedSR(shape, factor, small, down)
    if down not in DOWNSAMPLING:
        raise unknown_name("way of downsampling", down, DOWNSAMPLING)
    return DOWNSAMPLING[down](shape, factor, small)


def _gaussian_blur(
    shape: Shape, std: float | None = None, size: int | None = None, boundary: str = "circular", form: str = "corrected"
) -> LinearOperator:
    """form: of the papers' five taps, "published" with the errors of the released classes, "published-ddpg" as in DDPG."""
    every_tap = form == "published-ddpg"
    published = every_tap or _is_published(form)
    if std is not None:
        if published:
            raise UsageError("The form 'published' is that of the papers' five taps; leave out std or the form.")
        return _blur(shape, gaussian_kernel(float(std), size), "deblur-gaussian", boundary)
    if size is not None:
        raise UsageError("The size of a Gaussian kernel was given without its standard deviation; give std too.")
    if boundary != "circular":
        raise UsageError("The papers' five taps have a zero boundary; give std for a Gaussian kernel with another.")
    return ReleasedBlur(shape, paper_gaussian_taps(), every_tap) if published else SeparableBlur(shape, paper_gaussian_taps())


def _motion_blur(
    shape: Shape,
    seed: int = 0,
    size: int = 61,
    intensity: float = 0.5,
    kernel: Tensor | None = None,
    boundary: str = "circular",
) -> LinearOperator:
    drawn = motion_kernel(seed, size, intensity) if kernel is None else kernel
    return _blur(shape, drawn, "deblur-motion", boundary)


def _user_blur(shape: Shape, kernel: Tensor | None = None, boundary: str = "circular") -> LinearOperator:
    if kernel is None:
        raise LeaderError("The task 'deblur' needs the kernel of the blur; give one, or use 'deblur-gaussian'.")
    return _blur(shape, kernel, "deblur", boundary)


def _inpainting(
    shape: Shape, mask: Tensor | None = None, keep: float | None = None, seed: int = 0, box: Sequence[int] | None = None
) -> LinearOperator:
    """mask: 1 where the picture is known; or keep: that share of the pixels, drawn with the seed; or box: all but a hole."""
    given = [name for name, value in (("mask", mask), ("keep", keep), ("box", box)) if value is not None]
    if not given:
        raise LeaderError("The task 'inpaint' needs a mask; give one that is 1 where the picture is known.")
    if len(given) > 1:
        raise UsageError(f"The task 'inpaint' takes one mask; found {' and '.join(given)}, so leave out all but one.")
    if keep is not None:
        mask = draw_mask(shape[1:], keep, seed)
    elif box is not None:
        mask = cut_hole(shape[1:], box)
    assert mask is not None
    return Inpainting(shape, mask)


def draw_mask(size: tuple[int, int], keep: float, seed: int = 0) -> Tensor:
    """1 with probability `keep`, pixel by pixel, else 0: [H, W]."""
    if not 0 < keep < 1:
        raise UsageError(f"The share of known pixels must lie between 0 and 1; found {keep}.")
    known: Tensor = torch.rand(size, generator=torch.Generator().manual_seed(seed)) < keep
    return known.float()


def cut_hole(size: tuple[int, int], box: Sequence[int]) -> Tensor:
    """1 except for a rectangle of 0, box = (top, left, height, width) in pixels: [H, W]."""
    numbers = [value for value in box if isinstance(value, int) and value >= 0] if isinstance(box, Sequence) else []
    if len(numbers) != 4 or len(box) != 4 or 0 in numbers[2:] or any(numbers[k] + numbers[k + 2] > size[k] for k in (0, 1)):
        raise UsageError(f"A hole is top, left, height and width inside {size[1]} x {size[0]} pixels; found {box}.")
    return box_mask(*size, *numbers)


def _colourisation(shape: Shape, form: str = "corrected") -> LinearOperator:
    """form: "published" for the released grey row (0.3333, 0.3334, 0.3333)."""
    return ReleasedColourisation(shape) if _is_published(form) else Colourisation(shape)


def _jpeg(shape: Shape, luma: Tensor | None = None, chroma: Tensor | None = None, sampling: str = "4:2:0") -> LinearOperator:
    """luma, chroma: quantisation tables [8, 8], the second for colour images."""
    if luma is None:
        raise LeaderError("The task 'jpeg' needs the quantisation table of luma, and that of chroma for colour images.")
    if sampling not in SAMPLINGS:
        raise unknown_name("sampling of chroma", sampling, SAMPLINGS)
    return Jpeg(shape, luma, chroma, SAMPLINGS[sampling] if chroma is not None else (1, 1))


def _blur(shape: Shape, kernel: Tensor, task: str, boundary: str) -> LinearOperator:
    if boundary not in BOUNDARIES:
        raise unknown_name("boundary", boundary, BOUNDARIES)
    operator = Blur(shape, kernel) if boundary == "circular" else ReflectedBlur(shape, kernel)
    operator.task = task
    return operator


def _is_published(form: str) -> bool:
    if form not in FORMS:
        raise unknown_name("form", form, FORMS)
    return form == "published"


_OWN: dict[str, Callable[..., LinearOperator]] = {
    "sr": _super_resolution,
    "deblur-gaussian": _gaussian_blur,
    "deblur-motion": _motion_blur,
    "deblur": _user_blur,
    "inpaint": _inpainting,
    "cs": WalshHadamard,
    "colourise": _colourisation,
    "denoise": Denoising,
    "jpeg": _jpeg,
}


def _adapt(found: Any, name: str) -> Callable[..., LinearOperator]:
    """A user-defined operator, called with a shape and options; or a user-defined task with such an `operator`."""
    operator = getattr(found, "operator", found)
    if not (isinstance(operator, type) and issubclass(operator, LinearOperator)):
        raise TypeError(f"expected a subclass of leader.operators.LinearOperator, found {show_value(found)}")
    kind: type[LinearOperator] = operator

    def build(image_shape: Shape, **options: Any) -> LinearOperator:
        made = kind(image_shape, **options)
        made.task = name if made.task == LinearOperator.task else made.task
        return made

    build.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return build


TASKS: Registry[Callable[..., LinearOperator]] = Registry("task", "leader.operators,leader.tasks", _OWN, _adapt)
"""Builders by task: the shape (C, H, W) of images and options -> operator."""
