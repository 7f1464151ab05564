"""What people hand in, in whatever form they have it: pictures, kernels, masks, noise levels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.operators import gaussian_kernel, load_kernel, motion_kernel, random_mask
from leader.pictures import Picture, from_pil, read_picture

ImageLike = str | Path | Image.Image | NDArray[Any] | Tensor | Picture
TableLike = str | Path | NDArray[Any] | Tensor

SMALLEST_SIDE = 8
LARGEST_VALUE = 3.0
"""Noise can push values of a [0, 1] image beyond its range, but not that far: then the range is another one.
"""


def as_picture(image: ImageLike) -> Picture:
    """A path, Pillow image, array [H, W] or [H, W, C], or tensor [H, W], [C, H, W] or [1, C, H, W] as a
    Picture.

    Numbers: uint8 and uint16 over their full range, floats in [0, 1] (noise may exceed it).
    """
    if isinstance(image, Picture):
        picture = image
    elif isinstance(image, (str, Path)):
        picture = read_picture(Path(image))
    elif isinstance(image, Image.Image):
        picture = from_pil(image)
    elif isinstance(image, Tensor):
        picture = _from_array(_channels_last(image.detach().cpu()).numpy())
    else:
        picture = _from_array(np.asarray(image))
    width, height = picture.size
    if min(width, height) < SMALLEST_SIDE:
        raise LeaderError(f"The picture has {width} x {height} pixels; at least {SMALLEST_SIDE} x {SMALLEST_SIDE} are needed.")
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
    if values.dtype == np.uint8 or values.dtype == np.uint16:
        bits = 8 * values.dtype.itemsize
        values = values.astype(np.float32) / float(2**bits - 1)
    elif values.dtype.kind == "f":
        bits = 16
        values = values.astype(np.float32)
    else:
        raise LeaderError(f"An image array must hold uint8, uint16 or decimal numbers; found {values.dtype}.")
    if not np.isfinite(values).all():
        raise LeaderError("The image contains NaN or infinite values; remove them first.")
    largest = float(np.abs(values).max(initial=0))
    if largest > LARGEST_VALUE:
        raise LeaderError(
            f"The image holds values up to {largest:g}; expected [0, 1], so divide by the largest possible value."
        )
    channels = values.shape[2]
    if channels in (2, 4):
        return Picture(values[..., :-1], values[..., -1].clip(0, 1), bits)
    return Picture(values, None, bits)


def as_sigma(sigma: float | str) -> float:
    """A noise level of [0, 1] images, checked."""
    try:
        value = float(sigma)
    except (TypeError, ValueError) as error:
        raise UsageError(f"The noise level must be a number; found '{sigma}'.") from error
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"The noise level must be finite and >= 0 (0.05 is 5 % of the range); found {value}.")
    return value


def as_kernel(kernel: TableLike) -> Tensor:
    """gaussian:STD, motion:SEED, a file (.npy, .txt, .csv or a picture), or a table of numbers -> [kh, kw]
    that sums to 1.
    """
    if isinstance(kernel, str) and kernel.split(":")[0] in ("gaussian", "motion"):
        kind, _, text = kernel.partition(":")
        number = _number(text, f"the kernel '{kernel}'")
        if kind == "gaussian":
            return gaussian_kernel(number)
        if number != int(number) or number < 0:
            raise UsageError(f"The seed of a motion kernel must be an integer >= 0; found '{text}'.")
        return motion_kernel(int(number))
    if isinstance(kernel, (str, Path)):
        return load_kernel(_read_table(Path(kernel), "kernel"))
    return load_kernel(kernel)


def as_mask(mask: TableLike, size: tuple[int, int]) -> Tensor:
    """random:SHARE[:SEED], a file, or a table -> [H, W] float32, 1 where the picture of `size` (width,
    height) is known.
    """
    width, height = size
    if isinstance(mask, str) and mask.split(":")[0] == "random":
        _, _, text = mask.partition(":")
        share, _, seed = text.partition(":")
        return random_mask(
            height,
            width,
            _number(share, f"the mask '{mask}'"),
            int(_number(seed or "0", f"the mask '{mask}'")),
        )
    table = _read_table(Path(mask), "mask") if isinstance(mask, (str, Path)) else np.asarray(mask)
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


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"A number was expected after the colon in {where}; found '{text}'.")
    return value


def _read_table(path: Path, what: str) -> NDArray[Any]:
    """The numbers in a .npy, .txt or .csv file or the brightness of a picture."""
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".txt", ".csv"):
        brightness: NDArray[np.float32] = read_picture(path).pixels.mean(2)
        return brightness
    if not path.is_file():
        raise LeaderError(f"There is no file {path}; check the name of the {what}.")
    try:
        if suffix == ".npy":
            table = np.load(path, allow_pickle=False)
        else:
            table = np.loadtxt(path, delimiter="," if suffix == ".csv" else None, ndmin=2)
    except (OSError, ValueError, EOFError) as error:
        raise LeaderError(f"{path} is not a table of numbers; give the {what} as .npy, .txt, .csv or a picture.") from error
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiub":
        raise LeaderError(f"{path} does not hold numbers; give the {what} as .npy, .txt, .csv or a picture.")
    return table
