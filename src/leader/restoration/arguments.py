"""Reads the arguments of a user in any form: pictures, kernels, masks, noise levels, seeds."""

import math
import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.files import check_readable, printable
from leader.operators import disk_kernel, gaussian_kernel, line_kernel, load_kernel, motion_kernel, random_mask
from leader.pictures import MOST_PIXELS, Picture, from_pil, read_picture
from leader.pictures.container import WIDEST_KERNEL
from leader.pictures.picture import from_samples


@dataclass(frozen=True)
class Exactly:
    """A table from an earlier run: checked, but not scaled again, so that its bits stay the same."""

    values: Tensor


ImageLike = str | Path | Image.Image | NDArray[Any] | Tensor | Picture
TableLike = str | Path | NDArray[Any] | Tensor | Exactly

KERNELS = "gaussian:STD|disk:RADIUS|line:LENGTH:ANGLE|motion:SEED"
"""Kernels that are drawn, as a user writes them."""
SMALLEST_SIDE = 8
LARGEST_VALUE = 3.0
"""Noise can push values of a [0, 1] image beyond its range, but not this far: larger values mean another range."""
LARGEST_SEED = 2**63 - 1
BYTES_PER_NUMBER = 32
"""Most bytes of a number with its separator in a text file."""
HEADER = 1 << 16


def as_picture(image: ImageLike) -> Picture:
    """A path, Pillow image, array [H, W] or [H, W, C], or tensor [H, W], [C, H, W] or [1, C, H, W] as a Picture.

    Numbers: uint8 and uint16 over their full range, floats in [0, 1] (noise may exceed it).
    """
    if isinstance(image, Picture):
        picture = image
    elif isinstance(image, (str, Path)):
        picture = read_picture(Path(image))
    elif isinstance(image, Image.Image):
        picture = from_pil(image)
    elif isinstance(image, Tensor):
        if image.layout != torch.strided or image.is_meta:
            raise UsageError(
                "A sparse tensor, or one on the device 'meta', holds no picture; give a dense one with its values."
            )
        numbers = _channels_last(image.detach().cpu())
        picture = _from_array((numbers.float() if numbers.dtype == torch.bfloat16 else numbers).numpy())  # unknown to NumPy
    elif (
        isinstance(image, (list, tuple))
        and image
        and all(isinstance(item, (str, Path, Image.Image, Picture)) for item in image)
    ):
        raise UsageError(
            f"One picture is taken at a time; found a list of {len(image)}: write a loop over them, or use a folder."
        )
    elif isinstance(image, (bytes, bytearray)) or np.asarray(image).dtype == object or np.ndim(image) == 0:
        raise UsageError(f"A picture is a path, Pillow image, array or tensor; found {type(image).__name__}.")
    else:
        picture = _from_array(np.asarray(image))
    if not picture.pixels.flags.writeable:  # Pillow's own memory, about which torch warns
        picture = replace(picture, pixels=picture.pixels.copy())
    width, height = picture.size
    if min(width, height) < SMALLEST_SIDE:
        raise LeaderError(f"The picture has {width} x {height} pixels; at least {SMALLEST_SIDE} x {SMALLEST_SIDE} are needed.")
    if width * height > MOST_PIXELS:
        raise LeaderError(
            f"The picture has {width} x {height} pixels; at most {MOST_PIXELS // 10**6} million are served, so crop it first."
        )
    return picture


def _channels_last(tensor: Tensor) -> Tensor:
    if tensor.ndim == 4 and tensor.shape[0] == 1:
        tensor = tensor[0]
    return tensor.permute(1, 2, 0) if tensor.ndim == 3 else tensor


def _from_array(array: NDArray[Any]) -> Picture:
    values = array[..., None] if array.ndim == 2 else array
    if values.ndim != 3 or not 1 <= values.shape[2] <= 4:
        raise LeaderError(
            f"An image array needs the shape [H, W] or [H, W, 1 to 4], a tensor [1 to 4, H, W]; found {list(array.shape)}."
        )
    if values.dtype in (np.uint8, np.uint16):
        return from_samples(values, 8 * values.dtype.itemsize, None)
    if values.dtype.kind != "f":
        raise LeaderError(f"An image array must hold uint8, uint16 or decimal numbers; found {values.dtype}.")
    values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise LeaderError("The image contains NaN or infinite values; remove them first.")
    largest = float(np.abs(values).max(initial=0))
    if largest > LARGEST_VALUE:
        raise LeaderError(
            f"The image holds values up to {largest:g}; expected [0, 1], so divide by the largest possible value."
        )
    if values.shape[2] in (2, 4):
        return Picture(values[..., :-1], values[..., -1].clip(0, 1), 16)
    return Picture(values, None, 16)


def as_sigma(sigma: float | str) -> float:
    """A noise level of [0, 1] images, checked."""
    try:
        if isinstance(sigma, bool):  # which Python would take for 0 or 1
            raise TypeError
        value = float(sigma) + 0.0  # minus zero is zero
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"The noise level must be a number; found '{str(sigma)[:40]}'.") from error
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"The noise level must be finite and >= 0 (0.05 is 5 % of the range); found {value}.")
    if value > 1:
        hint = f": {value:g} looks like a 0-255 level, and {value:g}/255 = {value / 255:.3f}" if value <= 255 else ""
        raise UsageError(f"The noise level must be at most 1, the whole range of the picture; found {value:g}{hint}.")
    return value


def as_seed(seed: Any, what: str = "seed") -> int:
    """A seed, or the id of an image: an integer from 0 to 2^63 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= int(seed) <= LARGEST_SEED:
        raise UsageError(f"The {what} must be an integer from 0 to 2^63 - 1; found {str(seed)[:40]}.")
    return int(seed)


SHAPES = ("gaussian", "disk", "line", "motion")


def as_kernel(kernel: TableLike) -> Tensor:
    """gaussian:STD, disk:RADIUS, line:LENGTH:ANGLE, motion:SEED, a file (.npy, .txt, .csv or a picture), or a table of
    numbers -> [kh, kw] that sums to 1.
    """
    if isinstance(kernel, Exactly):
        return _exact_kernel(kernel.values)
    drawn = _words(kernel, SHAPES)
    if drawn is not None:
        kind, text = drawn
        if kind == "motion":
            return motion_kernel(_integer(text, f"The seed of the motion kernel '{kernel}'"))
        if kind == "gaussian":
            return gaussian_kernel(gaussian_std(kernel))
        size, colon, angle = text.partition(":")
        if kind == "disk":
            return disk_kernel(_width(text, kernel, "RADIUS", (WIDEST_KERNEL - 1) / 2))
        degrees = _number(angle, f"the kernel '{kernel}'") if colon else 0.0
        return line_kernel(_width(size, kernel, "LENGTH", WIDEST_KERNEL - 1), degrees)
    if isinstance(kernel, (str, Path)):
        if isinstance(kernel, str) and (":" in kernel or not Path(kernel).suffix) and not os.path.exists(kernel):
            raise UsageError(f"Unknown kernel '{printable(kernel)}': use one of {KERNELS.replace('|', ', ')}, or a file.")
        return load_kernel(_narrow(read_table(Path(kernel), "kernel", WIDEST_KERNEL**2)))
    return load_kernel(_narrow(kernel))


def is_drawn(kernel: TableLike) -> bool:
    """Whether a kernel is named, as in gaussian:STD, not a table or a file."""
    return not isinstance(kernel, Exactly) and _words(kernel, SHAPES) is not None


def gaussian_std(kernel: TableLike) -> float:
    """The standard deviation, in pixels, of a kernel given as gaussian:STD; anything else is rejected."""
    drawn = _words(kernel, ("gaussian",))
    if drawn is None:
        raise UsageError("The task 'deblur-gaussian' takes the kernel gaussian:STD; use the task 'deblur' for one of your own.")
    std = _number(drawn[1], f"the kernel '{kernel}'")
    if 8 * std + 1 > WIDEST_KERNEL:
        raise UsageError(
            f"The kernel '{kernel}' would be about {8 * std:g} pixels wide; STD is in pixels and at most {WIDEST_KERNEL // 8}."
        )
    return std


def _width(text: str, kernel: TableLike, name: str, largest: float) -> float:
    value = _number(text, f"the kernel '{kernel}'")
    if not 0 < value <= largest:
        raise UsageError(f"The {name} of the kernel '{kernel}' is in pixels, above 0 and at most {largest:g}; found {text}.")
    return value


def _exact_kernel(values: Tensor) -> Tensor:
    scaled = load_kernel(_narrow(values))
    if values.dtype != torch.float64 or not torch.allclose(scaled, values, rtol=1e-9):
        raise LeaderError("The stored kernel does not sum to 1; it was changed since the run that stored it.")
    return values


def _narrow(kernel: NDArray[Any] | Tensor) -> NDArray[Any] | Tensor:
    table = kernel if isinstance(kernel, Tensor) else np.asarray(kernel)
    if isinstance(table, np.ndarray) and table.dtype.kind not in "fiub":
        raise LeaderError(f"A kernel must hold numbers; found {table.dtype}.")
    if any(side > WIDEST_KERNEL for side in table.shape):
        found = " x ".join(str(side) for side in reversed(table.shape))
        raise LeaderError(f"The kernel has {found} numbers; at most {WIDEST_KERNEL} x {WIDEST_KERNEL} are served, so crop it.")
    return table


def as_mask(mask: TableLike, size: tuple[int, int]) -> Tensor:
    """random:SHARE[:SEED], a file, or a table -> [H, W] float32, 1 where the picture of `size` (width,
    height) is known. SHARE is that of the missing pixels.
    """
    width, height = size
    drawn = _words(mask, ("random",))
    if drawn is not None:
        share, _, seed = drawn[1].partition(":")
        missing = _number(share, f"the mask '{mask}'")
        if not 0 <= missing < 1:
            raise UsageError(f"The share of missing pixels must lie in [0, 1); found '{share}' in the mask '{mask}'.")
        return random_mask(height, width, missing, _integer(seed or "0", f"The seed of the mask '{mask}'"))
    if isinstance(mask, Exactly):
        mask = mask.values
    table = read_table(Path(mask), "mask", MOST_PIXELS) if isinstance(mask, (str, Path)) else np.asarray(mask)
    if table.dtype.kind not in "fiub":
        raise LeaderError(f"A mask must hold numbers, 0 (missing) and 1 (known); found {table.dtype}.")
    if table.ndim == 3:
        table = table.mean(0 if table.shape[0] in (1, 3) else 2)
    if table.shape != (height, width):
        found = " x ".join(str(n) for n in table.shape[::-1])
        raise LeaderError(f"The mask has {found} pixels, the picture {width} x {height}; they must have the same size.")
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        raise LeaderError("The mask contains NaN or infinite values; it may hold 0 (missing) and 1 (known).")
    largest = float(table.max(initial=0))
    known = table > (largest if largest > 1 else 1.0) / 2
    if not known.any():
        raise LeaderError("The mask leaves no pixel known; white (1) marks what is known, black (0) what is missing.")
    return torch.from_numpy(known.astype(np.float32))


def _words(given: object, kinds: tuple[str, ...]) -> tuple[str, str] | None:
    """(kind, rest) of a text such as gaussian:2.5, or None if it is a file name or a table."""
    if not isinstance(given, str):
        return None
    kind, _, rest = given.partition(":")
    return (kind, rest) if kind in kinds else None


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"A number was expected after the colon in {where}; found '{text}'.")
    return value


def _integer(text: str, what: str) -> int:
    try:
        value = int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError:
        value = math.nan
    if not (0 <= value <= LARGEST_SEED and value == int(value)):
        raise UsageError(f"{what} must be an integer from 0 to 2^63 - 1; found '{text}'.")
    return int(value)


def read_table(path: Path, what: str, most: int) -> NDArray[Any]:
    """The numbers in a .npy, .txt or .csv file, or the brightness of a picture; at most `most` of them.

    what  "kernel" or "mask", for the sentences of errors
    """
    name, suffix = printable(path), path.suffix.lower()
    if suffix not in (".npy", ".txt", ".csv"):
        picture = read_picture(path, most)
        if picture.alpha is not None and picture.alpha.min() < 1:  # erased, or never painted?
            raise LeaderError(f"{name} is partly transparent, which means nothing in a {what}; save it without transparency.")
        brightness: NDArray[np.float32] = picture.pixels.mean(2)
        return brightness
    size = check_readable(path, what).st_size
    if size > BYTES_PER_NUMBER * most + HEADER:
        raise LeaderError(f"{name} has {size} bytes, too many for a {what}; at most {most} numbers are served.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of empty files; the checks below refuse them
            if suffix == ".npy":  # mapped: a header that asks for more than the file holds is refused before memory is taken
                table = np.load(path, mmap_mode="r", allow_pickle=False)
            else:
                with path.open("r", encoding="utf-8-sig") as file:
                    table = np.loadtxt(file, delimiter="," if suffix == ".csv" else None, ndmin=2)
    except Exception as error:  # damaged files raise errors of every kind
        raise LeaderError(f"{name} is not a table of numbers; give the {what} as .npy, .txt, .csv or a picture.") from error
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiub":
        raise LeaderError(f"{name} does not hold numbers; give the {what} as .npy, .txt, .csv or a picture.")
    if table.size > most:
        shape = " x ".join(str(n) for n in table.shape)
        raise LeaderError(f"{name} holds {shape} numbers, too many for a {what}; at most {most} are served.")
    return np.array(table)
