"""The pictures of an experiment: where they are and how they are brought to size."""

from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leader.errors import LeaderError, unknown_name
from leader.files import sha256_once
from leader.pictures import list_pictures, read_picture

FITS = ("crop", "half", "square", "host")
"""crop: the central crop; half: half size (Lanczos), then the central crop; square: the central square, resized (Lanczos);
host: the same with Pillow's bilinear filter, as in DDNM, DDRM, DDPG and methods built on them.
"""
_FILTERS = {"square": Image.Resampling.LANCZOS, "host": Image.Resampling.BILINEAR}


def list_images(source: str) -> list[Path]:
    """The pictures of a folder, sorted by name; "test" means the shipped crops."""
    return list_pictures(Path(str(resources.files("leader") / "samples" / "test")) if source == "test" else source)


def load_image(path: Path, fit: str, size: int) -> Tensor:
    """A picture as [1, 3, size, size] float32 in [0, 1]; grey is repeated, transparency dropped, 8 bits per sample."""
    if fit not in FITS:
        raise unknown_name("way of bringing pictures to size", fit, FITS)
    return _load_content(path, file_hash(path), fit, size)


@lru_cache(maxsize=64)
def _load_content(path: Path, content: str, fit: str, size: int) -> Tensor:
    picture = read_picture(path).rgb()
    if fit == "half":
        picture = picture.resize((max(1, picture.width // 2), max(1, picture.height // 2)), Image.Resampling.LANCZOS)
    if fit in _FILTERS:
        picture = _central(picture, min(picture.size)).resize((size, size), _FILTERS[fit])
    if min(picture.size) < size:
        raise LeaderError(
            f"'{path.name}' is {picture.width} x {picture.height} after '{fit}', too small for "
            f"a crop of {size}; choose larger pictures or a smaller size."
        )
    pixels = np.array(_central(picture, size), dtype=np.float32) / 255
    return torch.from_numpy(pixels).permute(2, 0, 1)[None].contiguous()


def file_hash(path: Path) -> str:
    return sha256_once(path)[:16]


def to_pixels(picture: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """A picture [3 or 1, H, W] in [0, 1] as 8 bits, [H, W, 3]."""
    rounded = (picture.clamp(0, 1) * 255).round().to(torch.uint8).expand(3, -1, -1)
    pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = rounded.permute(1, 2, 0).cpu().numpy()
    return pixels


def _central(picture: Image.Image, side: int) -> Image.Image:
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side))
