"""Photographs for training: decoded once into a memory-mapped cache, cropped at random at several scales.

A batch depends only on (seed, step): a resumed run continues with the same crops as an uninterrupted one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from leader.errors import LeaderError
from leader.files import replacing
from leader.pictures import list_pictures, read_picture

Bytes = npt.NDArray[np.uint8]
Images = Path | Sequence[Path]
"""A folder of photographs, or the files of some."""


def list_images(images: Images) -> list[Path]:
    """The files, those of a folder in the order of their names."""
    return list_pictures(images) if isinstance(images, Path) else list(images)


def decode(path: Path) -> Image.Image:
    """A picture file as 8-bit RGB, upright."""
    return read_picture(path).rgb()


def halved(picture: Image.Image) -> Image.Image:
    """Half the size by box averaging (as the pyramid averages)."""
    return picture.resize((max(1, picture.width // 2), max(1, picture.height // 2)), Image.Resampling.BOX)


def crop_centre(picture: Image.Image, size: int) -> Tensor | None:
    """The central crop [3, size, size] in [0, 1]; None if the picture is too small."""
    pixels = np.asarray(picture)
    top, left = (pixels.shape[0] - size) // 2, (pixels.shape[1] - size) // 2
    if min(top, left) < 0:
        return None
    return to_tensor(pixels[top : top + size, left : left + size])


def to_tensor(pixels: Bytes) -> Tensor:
    """[H, W, 3] bytes as a tensor [3, H, W] in [0, 1]."""
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255


def central_crops(images: Images, size: int = 256, half: bool = True) -> Tensor:
    """Central crops [N, 3, size, size] in [0, 1] of pictures, with `half` at half their size where that is large enough."""
    found = []
    for picture in (decode(path) for path in list_images(images)):
        small = crop_centre(halved(picture), size) if half else None
        found.append(crop_centre(picture, size) if small is None else small)
    return _stack_crops(found, size)


def crops_of_both_sizes(images: Images, size: int = 256) -> Tensor:
    """Central crops of pictures at half and at full size, if they are large enough."""
    files = list_images(images)
    small = [crop_centre(halved(decode(path)), size) for path in files]
    return _stack_crops([*small, *(crop_centre(decode(path), size) for path in files)], size)


def _stack_crops(crops: Sequence[Tensor | None], size: int) -> Tensor:
    large = [crop for crop in crops if crop is not None]
    if not large:
        raise LeaderError(f"None of the pictures is {size} pixels high and wide: give larger ones.")
    return torch.stack(large)


@dataclass(frozen=True)
class Photographs:
    """Decoded pictures of one scale in a single memory-mapped byte array."""

    pixels: Bytes
    shapes: list[tuple[int, int]]
    offsets: list[int]

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: int) -> Bytes:
        """[H, W, 3] bytes, not copied."""
        height, width = self.shapes[index]
        start = self.offsets[index]
        return self.pixels[start : start + height * width * 3].reshape(height, width, 3)


def open_photographs(folder: Path, cache: Path) -> dict[str, Photographs]:
    """The folder's pictures at "full" and "half" size, decoded into `cache` unless already there."""
    files = list_pictures(folder)
    # a file's identity changes if it is replaced, even by one of equal name and size
    names = [f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files]
    index_file = cache / "index.json"
    if not index_file.exists() or json.loads(index_file.read_text())["names"] != names:
        _decode_all(files, names, cache)
    index = json.loads(index_file.read_text())
    return {scale: _open(cache / f"{scale}.npy", index[scale]) for scale in ("full", "half")}


def _decode_all(files: list[Path], names: list[str], cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    full = [decode(path) for path in files]
    index: dict[str, object] = {"names": names}
    for scale, pictures in (("full", full), ("half", [halved(picture) for picture in full])):
        with replacing(cache / f"{scale}.npy") as temporary:
            np.save(temporary, np.concatenate([np.asarray(picture).ravel() for picture in pictures]))
        index[scale] = [(picture.height, picture.width) for picture in pictures]
    with replacing(cache / "index.json") as temporary:
        temporary.write_text(json.dumps(index))


def _open(path: Path, shapes: list[list[int]]) -> Photographs:
    sizes = [height * width * 3 for height, width in shapes]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int).tolist()
    return Photographs(np.load(path, mmap_mode="r"), [(h, w) for h, w in shapes], starts)


FULL_SHARE = 0.45
"""Share of the crops from pictures at full size."""
FLAT_STD, FLAT_KEPT, ATTEMPTS = 0.03, 0.15, 20
"""Crops below this standard deviation count as flat; share of them that is kept; how often others are drawn instead."""


def draw_crop(rng: np.random.Generator, photos: dict[str, Photographs], size: int) -> Tensor:
    """A random square crop [3, size, size] in [0, 1] of a picture that is large enough, flipped and turned.

    Flat crops are mostly drawn again.
    """
    large = [index for index, shape in enumerate(photos["full"].shapes) if min(shape) >= size]
    if not large:
        raise LeaderError(f"No picture of the training folder has {size} pixels on both sides: give larger pictures.")
    for _ in range(ATTEMPTS):
        piece = _random_piece(rng, photos, large, size)
        flat = float(piece[::2, ::2].astype(np.float32).std(axis=(0, 1)).mean()) / 255 < FLAT_STD
        if not flat or rng.random() < FLAT_KEPT:
            break
    piece = np.rot90(piece, int(rng.integers(4)))
    if rng.random() < 0.5:
        piece = piece[:, ::-1]
    return to_tensor(piece)


def _random_piece(rng: np.random.Generator, photos: dict[str, Photographs], large: list[int], size: int) -> Bytes:
    """A square of one of the pictures numbered `large`, at half size if that is large enough too."""
    index = large[int(rng.integers(len(large)))]
    photo = photos["full" if rng.random() < FULL_SHARE else "half"][index]
    if min(photo.shape[:2]) < size:
        photo = photos["full"][index]
    height, width = photo.shape[:2]
    top, left = int(rng.integers(height - size + 1)), int(rng.integers(width - size + 1))
    return photo[top : top + size, left : left + size]


def draw_level_crop(rng: np.random.Generator, photos: dict[str, Photographs], size: int, level: int) -> tuple[Tensor, Tensor]:
    """A clean crop at full resolution [3, size 2^level, ...] and its block averages [3, size, size]."""
    full = draw_crop(rng, photos, size * 2**level)
    return full, F.avg_pool2d(full[None], 2**level)[0] if level else full
