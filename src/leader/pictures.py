"""Picture files: what is in them, upright and as numbers in [0, 1], and back again without loss of what was
there.

Grey, colour, palette, alpha, 16 bits, EXIF orientation and colour profiles are served; CMYK is converted with
its own profile. What cannot be served faithfully (animations, CMYK without a profile, absurd sizes, damaged
files) is refused in one sentence.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, UnidentifiedImageError

from leader.deep_pictures import is_deep, read_deep, write_deep_png, write_deep_tiff
from leader.errors import LeaderError, UsageError
from leader.files import replacing

Floats = NDArray[np.float32]

MOST_PIXELS = 64_000_000
"""Pictures that declare more pixels than this are refused before they are decoded."""

FORMATS: dict[str, str] = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".bmp": "BMP",
    ".ppm": "PPM",
    ".jp2": "JPEG2000",
}
"""What can be written, by suffix. Reading takes whatever Pillow can."""

_HOLDS_ALPHA = ("PNG", "WEBP", "TIFF", "JPEG2000")
_HOLDS_16_BITS = ("PNG", "TIFF")
_SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"lossless": True},
    "TIFF": {"compression": "tiff_deflate"},
}


@dataclass(frozen=True)
class Picture:
    """A picture, upright.

    pixels  [H, W, C] float32 in [0, 1], C = 1 (grey) or 3 (RGB)
    alpha   [H, W] float32 in [0, 1], or None
    bits    8 or 16 per sample in the file it came from
    icc     its colour profile, or None
    """

    pixels: Floats
    alpha: Floats | None = None
    bits: int = 8
    icc: bytes | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)."""
        return self.pixels.shape[1], self.pixels.shape[0]

    def to_pil(self) -> Image.Image:
        """The picture in 8 bits, alpha included."""
        samples = np.round(_samples(self) * 255).astype(np.uint8)
        image = Image.fromarray(samples[..., 0] if samples.shape[2] == 1 else samples)
        if self.icc:
            image.info["icc_profile"] = self.icc
        return image

    def with_pixels(self, pixels: Floats) -> Picture:
        """The picture with other pixels of any size; its alpha follows the size, its profile the number of
        channels.
        """
        alpha = self.alpha
        if alpha is not None and alpha.shape != pixels.shape[:2]:
            resized = Image.fromarray(alpha).resize((pixels.shape[1], pixels.shape[0]), Image.Resampling.BICUBIC)
            alpha = np.asarray(resized, dtype=np.float32).clip(0, 1)
        return Picture(pixels, alpha, self.bits, _matching_profile(self.icc, pixels.shape[2]))


def read_picture(path: Path) -> Picture:
    """The picture in a file."""
    with _explaining(path), Image.open(path) as image:
        _check_header(image, str(path))
        if is_deep(image) and image.mode != "CMYK":  # asked before getexif, which decodes a PNG
            picture = _split(read_deep(path), 16, image.info.get("icc_profile"))
        else:
            picture = _from_loaded(image, str(path))
        return _upright(picture, _orientation(image))


def from_pil(image: Image.Image) -> Picture:
    """The picture in a Pillow image."""
    with _explaining(Path("the image")):
        _check_header(image, "the image")
        return _upright(_from_loaded(image, "the image"), _orientation(image))


def _orientation(image: Image.Image) -> int:
    """EXIF's number from 1 (upright) to 8."""
    found = image.getexif().get(274, 1)
    return found if isinstance(found, int) else 1


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Turns whatever a decoder raises into one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
            yield
    except LeaderError:
        raise
    except FileNotFoundError as error:
        raise LeaderError(f"There is no file {path}; check its name.") from error
    except IsADirectoryError as error:
        raise LeaderError(f"{path} is a folder; give the name of a picture file.") from error
    except PermissionError as error:
        raise LeaderError(f"{path} may not be read; change its permissions.") from error
    except Image.DecompressionBombError as error:
        raise _too_large(str(path), "far too many") from error
    except UnidentifiedImageError as error:
        kind = "is empty" if path.exists() and path.stat().st_size == 0 else "is not a picture in a known format"
        raise LeaderError(f"{path} {kind}; give a PNG, JPEG, WebP, TIFF or BMP file.") from error
    except MemoryError:
        raise
    except Exception as error:  # decoders of damaged files raise errors of every kind
        raise LeaderError(f"{path} is damaged and cannot be decoded ({error}); get an intact copy.") from error


def _check_header(image: Image.Image, name: str) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise _too_large(name, f"{width} x {height}")
    # phones store a depth map or preview as a second picture (MPO): the first one is the photograph
    if getattr(image, "n_frames", 1) > 1 and image.format != "MPO":
        raise LeaderError(f"{name} holds several frames or pages; extract the one to restore into a file of its own.")


def _too_large(name: str, found: str) -> LeaderError:
    return LeaderError(f"{name} declares {found} pixels; at most {MOST_PIXELS // 10**6} million are served, so crop it first.")


def _from_loaded(image: Image.Image, name: str) -> Picture:
    """The picture as stored, not yet turned upright."""
    icc = image.info.get("icc_profile")
    mode = image.mode
    if mode == "CMYK":
        return _from_cmyk(image, icc, name)
    if mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise LeaderError(f"{name} holds 32-bit numbers outside 0..65535; convert it to 16 bits first.")
        return _split(values.astype(np.uint16)[..., None], 16, icc)
    if mode == "F":
        floats = np.asarray(image, dtype=np.float32)
        if not np.isfinite(floats).all() or floats.min() < 0 or floats.max() > 1:
            raise LeaderError(f"{name} holds decimal numbers outside 0..1; scale them to 0..1 or convert it to 16 bits.")
        return Picture(floats[..., None], None, 16, icc)
    see_through = "transparency" in image.info
    target = {
        "1": "L",
        "L": "LA" if see_through else "L",
        "LA": "LA",
        "La": "LA",
        "P": "RGBA" if see_through else "RGB",
        "PA": "RGBA",
        "RGB": "RGBA" if see_through else "RGB",
        "RGBX": "RGB",
        "RGBA": "RGBA",
        "RGBa": "RGBA",
        "YCbCr": "RGB",
    }.get(mode)
    if target is None:
        raise LeaderError(f"{name} stores colours as {mode}, which is not served; convert it to RGB first.")
    samples = np.asarray(image if mode == target else image.convert(target))
    return _split(samples[..., None] if samples.ndim == 2 else samples, 8, icc)


def _from_cmyk(image: Image.Image, icc: bytes | None, name: str) -> Picture:
    if is_deep(image):
        raise LeaderError(f"{name} holds 16-bit CMYK, which cannot be read without loss; convert it to RGB first.")
    if not icc:
        raise LeaderError(f"{name} is CMYK without a colour profile, so its colours are not defined; convert it to RGB first.")
    target = ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(image, ImageCms.ImageCmsProfile(io.BytesIO(icc)), target, outputMode="RGB")
    if converted is None:
        raise LeaderError(f"The colour profile of {name} could not be applied; convert it to RGB first.")
    return _split(np.asarray(converted), 8, None)


def _split(samples: NDArray[Any], bits: int, icc: bytes | None) -> Picture:
    """samples [H, W, 1 to 4] of unsigned integers -> Picture; an even number of channels ends in alpha."""
    values = samples.astype(np.float32) / float(2**bits - 1)
    channels = values.shape[2]
    if channels in (2, 4):
        return Picture(values[..., :-1], values[..., -1], bits, _matching_profile(icc, channels - 1))
    return Picture(values, None, bits, _matching_profile(icc, channels))


def _matching_profile(icc: bytes | None, channels: int) -> bytes | None:
    """A profile only describes pixels of its own colour space, named in bytes 16 to 20 of its header."""
    return icc if icc and icc[16:20] == (b"GRAY" if channels == 1 else b"RGB ") else None


def _upright(picture: Picture, orientation: int) -> Picture:
    """The picture turned as its EXIF orientation (1 to 8) asks."""

    def turn(array: Floats) -> Floats:
        if orientation in (5, 6, 7, 8):
            array = array.swapaxes(0, 1)
        if orientation in (3, 4, 7, 8):
            array = array[::-1]
        if orientation in (2, 3, 6, 7):
            array = array[:, ::-1]
        return np.ascontiguousarray(array)

    if orientation in range(2, 9):
        alpha = None if picture.alpha is None else turn(picture.alpha)
        return replace(picture, pixels=turn(picture.pixels), alpha=alpha)
    return picture


def check_format(path: Path, alpha: bool = False) -> str:
    """The format a file name asks for; refuses what cannot be written or would lose an alpha channel."""
    if path.suffix.lower() not in FORMATS:
        found = f"'{path.suffix}'" if path.suffix else "no suffix"
        raise UsageError(f"{path} has {found}; pictures are written as {', '.join(FORMATS)}.")
    name = FORMATS[path.suffix.lower()]
    if alpha and name not in _HOLDS_ALPHA:
        raise LeaderError(
            f"{name} cannot hold the transparency of the picture; write PNG, WebP or TIFF instead of {path.name}."
        )
    return name


def write_picture(path: Path, picture: Picture) -> None:
    """Writes the picture whole or not at all, with 16 bits where it has them and the format can hold them."""
    name = check_format(path, picture.alpha is not None)
    with replacing(path) as temporary:
        if picture.bits == 16 and name in _HOLDS_16_BITS:
            samples = _samples(picture)
            if samples.shape[2] == 2:
                samples = np.concatenate([np.repeat(samples[..., :1], 3, axis=2), samples[..., 1:]], axis=2)
            deep = np.round(samples * 65535).astype(np.uint16)
            (write_deep_png if name == "PNG" else write_deep_tiff)(temporary, deep, _profile_for(picture, deep.shape[2]))
            return
        options = dict(_SAVE_OPTIONS.get(name, {}))
        if picture.icc:
            options["icc_profile"] = picture.icc
        picture.to_pil().save(temporary, name, **options)


def _profile_for(picture: Picture, channels: int) -> bytes | None:
    return _matching_profile(picture.icc, 1 if channels == 1 else 3)


def _samples(picture: Picture) -> Floats:
    """[H, W, 1 to 4] in [0, 1], alpha last."""
    pixels = picture.pixels.clip(0, 1)
    return pixels if picture.alpha is None else np.concatenate([pixels, picture.alpha[..., None]], axis=2)
