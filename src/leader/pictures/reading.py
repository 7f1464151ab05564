"""Reading picture files: upright, as numbers in [0, 1].

Grey, colour, palette, alpha, 16 bits, EXIF and its orientation and colour profiles are supported; CMYK is converted with its
own profile. Files that cannot be read faithfully (animations, CMYK without a profile, absurd sizes, damaged files) are rejected
with a one-sentence error.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms, UnidentifiedImageError

from leader.errors import LeaderError
from leader.files import check_readable, printable
from leader.pictures.colours import profile_of, read_cicp
from leader.pictures.deep import BITS, check_jpeg2000, is_deep, raw_mode, read_deep
from leader.pictures.formats import AVIF, HEIF, READ, SERVED, format_by_mark
from leader.pictures.heif import can_avif, find_losses, kind_of, read_still
from leader.pictures.jpeg_history import read_history
from leader.pictures.metadata import UNDERSTOOD, metadata_of, orientation_of
from leader.pictures.picture import MOST_PIXELS, Floats, Picture, from_samples, matching_profile

SAMPLE_FORMAT, SIGNED = 339, 2
PHOTOMETRIC, WHITE_IS_ZERO = 262, 0
SUBFILE, REDUCED = 254, 1
"""Tags of a TIFF, and values of theirs."""
SMALL = 1_000_000
"""A picture with this many pixels fits into any memory."""


def read_picture(path: Path, most_pixels: int = MOST_PIXELS) -> Picture:
    """The picture in a file; one that declares more than `most_pixels` is rejected before it is decoded."""
    name = printable(path)
    if check_readable(path, "picture file").st_size == 0:
        raise LeaderError(f"{name} is empty; give a {SERVED} file.")
    with _explaining(name, path):
        kind = kind_of(path)
        if kind == HEIF:
            return read_still(path, name, lambda size: _check_size(size, name, most_pixels))
        with _open_image(path, name, kind) as image:
            _check_header(image, name, most_pixels)
            if image.format == "JPEG2000":
                check_jpeg2000(image, name)
            with _within_reason(image):
                if is_deep(image) and image.mode != "CMYK":  # asked before getexif, which decodes a PNG
                    deep = from_samples(read_deep(image, path, READ), 16, image.info.get("icc_profile"))
                    return _upright(replace(deep, metadata=metadata_of(image)), orientation_of(image))
                picture = _upright(_with_history(image, name), orientation_of(image))
            if kind == AVIF:
                icc, losses = find_losses(path)
                notes = (*picture.metadata.notes, *losses)
                profile = matching_profile(picture.icc or icc, picture.pixels.shape[2])
                picture = replace(picture, icc=profile, metadata=replace(picture.metadata, notes=notes))
            return picture


def _open_image(path: Path, name: str, kind: str | None) -> Image.Image:
    """The image of a file other than HEIC, not yet decoded."""
    if kind != AVIF:
        Image.preinit()  # the usual formats: Pillow loads all of its own where one that it is asked for is missing
        image = Image.open(path, formats=READ)
        image.filename = ""  # otherwise Pillow maps the file into memory, and shears the rows of TIFFs to be turned
        if image.format == "PNG":
            _take_numbers(image)
        return image
    if not can_avif():
        raise LeaderError(f"{name} is an AVIF file, which this Pillow cannot read; install Pillow 11.3 or newer.")
    try:
        return Image.open(path, formats=(AVIF,))
    except (UnidentifiedImageError, ValueError):
        return _without_exif(path.read_bytes())


def _take_numbers(image: Any) -> None:
    """Colours that a PNG describes by numbers, which Pillow passes over, as a profile; one that the file holds goes first."""
    numbers = read_cicp(image.fp)
    if numbers is None or "icc_profile" in image.info:
        return
    icc, understood = profile_of(numbers[0], numbers[1])
    image.info[UNDERSTOOD] = understood and numbers[2:] == b"\0\1"
    if icc is not None and image.info[UNDERSTOOD]:
        image.info["icc_profile"] = icc


def _without_exif(content: bytes) -> Image.Image:
    """The image of an AVIF file that the decoder rejects, perhaps because of its EXIF: that part is renamed to be ignored."""
    try:
        image = Image.open(io.BytesIO(content.replace(b"Exif", b"skip")), formats=(AVIF,))
    except UnidentifiedImageError as error:
        raise ValueError("its parts do not fit together") from error
    image.info.setdefault("exif", b"damaged")
    return image


def from_pil(image: Image.Image) -> Picture:
    """The picture in a Pillow image."""
    with _explaining("the image"):
        _check_header(image, "the image", MOST_PIXELS)
        return _upright(_with_history(image, "the image"), orientation_of(image))


@contextmanager
def _explaining(name: str, path: Path | None = None) -> Iterator[None]:
    """Converts any error of a decoder to one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # decoders warn about harmless oddities, and about sizes below our own limit
            yield
    except LeaderError:
        raise
    except MemoryError as error:  # opening takes a few bytes: if even that fails, a length in the file is wrong
        if path is None or _opens(path):
            raise
        raise LeaderError(f"{name} is damaged: a part of it declares an absurd length; get an intact copy.") from error
    except Image.DecompressionBombError as error:
        raise _too_large(name, "far too many", MOST_PIXELS) from error
    except UnidentifiedImageError as error:
        raise LeaderError(_describe_unknown(name, None if path is None else _beginning(path))) from error
    except Exception as error:  # decoders of damaged files raise errors of every kind
        raise LeaderError(
            f"{name} cannot be decoded ({printable(str(error))}): it is damaged or of an unsupported variant; get an "
            "intact copy, or save it again as an ordinary PNG, JPEG or TIFF file."
        ) from error


def _opens(path: Path) -> bool:
    """Whether there is enough memory to open a file, which decodes nothing."""
    try:
        Image.open(path, formats=READ).close()
    except MemoryError:
        return False
    except UnidentifiedImageError:  # another decoder's, such as AVIF's
        return True
    return True


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _describe_unknown(name: str, begin: bytes | None) -> str:
    """The error for a file that no decoder accepts."""
    kind = None if begin is None else format_by_mark(begin)
    if kind is None:
        return f"{name} is not a picture in a known format; give a {SERVED} file."
    return (
        f"{name} starts as a {kind} file, but it is damaged or of an unsupported variant (such as floating-point colours, or "
        "12 bits); save it again as an ordinary PNG, JPEG or TIFF file."
    )


@contextmanager
def _within_reason(image: Image.Image) -> Iterator[None]:
    """A small picture that needs all available memory has a damaged length somewhere."""
    try:
        yield
    except MemoryError as error:
        if image.width * image.height > SMALL:
            raise
        raise ValueError("a part of it declares an absurd length") from error


def _check_header(image: Image.Image, name: str, most_pixels: int) -> None:
    _check_size(image.size, name, most_pixels)
    if _count_pages(image) > 1:
        raise LeaderError(f"{name} holds several frames or pages; extract the one to restore into a file of its own.")


def _count_pages(image: Any) -> int:
    """Frames that are pictures of their own. Phones add a depth map or preview to theirs (MPO); cameras and scanners add
    smaller copies to a TIFF.
    """
    frames = int(getattr(image, "n_frames", 1))
    if image.format == "MPO" or frames == 1:
        return 1
    if image.format != "TIFF" or image.tag_v2.get(SUBFILE, 0) & REDUCED:
        return frames
    own = 1
    for number in range(1, frames):
        image.seek(number)
        own += not image.tag_v2.get(SUBFILE, 0) & REDUCED
    image.seek(0)
    return own


def _check_size(size: tuple[int, int], name: str, most_pixels: int) -> None:
    width, height = size
    if width * height > most_pixels:
        raise _too_large(name, f"{width} x {height}", most_pixels)


def _too_large(name: str, found: str, most: int) -> LeaderError:
    limit = f"{most // 10**6} million" if most >= 10**6 else str(most)
    return LeaderError(f"{name} declares {found} pixels; at most {limit} are supported, so crop it first.")


def _with_history(image: Image.Image, name: str) -> Picture:
    """The picture as stored, with the compression recorded in its file."""
    return replace(_from_loaded(image, name), history=read_history(image), metadata=metadata_of(image))


def _from_loaded(image: Image.Image, name: str) -> Picture:
    """The picture as stored, not yet turned upright."""
    icc = image.info.get("icc_profile")
    mode = image.mode
    if mode == "CMYK":
        return _from_cmyk(image, icc, name)
    tags, stored = getattr(image, "tag_v2", {}), next(map(raw_mode, getattr(image, "tile", ())), mode)
    if SIGNED in tags.get(SAMPLE_FORMAT, ()) or (mode == "I" and BITS in tags):
        raise LeaderError(f"{name} holds signed or 32-bit numbers, of which none is white; convert it to 16 bits first.")
    if mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise LeaderError(f"{name} holds 32-bit numbers outside 0..65535; convert it to 16 bits first.")
        values, depth = values.astype(np.uint16), 12 if 12 in tags.get(BITS, ()) else 16
        if tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:  # which Pillow heeds in 8 bits only
            values = 2**depth - 1 - values
        return _without_key(from_samples(values[..., None], depth, icc), image, 65535)
    if mode == "F":
        floats = np.asarray(image, dtype=np.float32)
        if not np.isfinite(floats).all() or floats.min() < 0 or floats.max() > 1:
            raise LeaderError(f"{name} holds decimal numbers outside 0..1; scale them to 0..1 or convert it to 16 bits.")
        return Picture(floats[..., None], None, 16, icc)
    see_through = "transparency" in image.info
    target = {
        "1": "L",
        "L": "L",
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
        raise LeaderError(f"{name} stores colours as {mode}, which is not supported; convert it to RGB first.")
    samples = np.asarray(image if mode == target else image.convert(target))
    if samples.ndim == 2:
        return _without_key(from_samples(samples[..., None], 8, icc), image, {"1": 1, "L;2": 3, "L;4": 15}.get(stored, 255))
    return from_samples(samples, 8, icc)


def _without_key(grey: Picture, image: Image.Image, white: int) -> Picture:
    """A grey picture with the alpha of its file, if that declares one shade transparent: one of 0..white."""
    key = image.info.get("transparency")
    if not isinstance(key, int):
        return grey
    key = min(key, white)  # Pillow says 255 for the white of one bit
    return replace(grey, alpha=(np.round(grey.pixels[..., 0] * white) != key).astype(np.float32))


def _from_cmyk(image: Image.Image, icc: bytes | None, name: str) -> Picture:
    if is_deep(image):
        raise LeaderError(f"{name} holds 16-bit CMYK, which cannot be read without loss; convert it to RGB first.")
    if not icc:
        raise LeaderError(f"{name} is CMYK without a colour profile, so its colours are not defined; convert it to RGB first.")
    target = ImageCms.createProfile("sRGB")
    try:
        converted = ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(io.BytesIO(icc)),
            target,
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
            outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,  # the ink's black becomes black
        )
    except (ImageCms.PyCMSError, OSError):  # a profile for another colour space, or none at all
        converted = None
    if converted is None:
        raise LeaderError(f"{name} is CMYK with a colour profile that cannot be applied; convert it to RGB first.")
    return from_samples(np.asarray(converted), 8, None)


def _upright(picture: Picture, orientation: int) -> Picture:
    """The picture turned upright according to its EXIF orientation (1 to 8)."""

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
        history = picture.history
        if history is not None:
            history = history.turned(orientation, *picture.pixels.shape[:2])
        return replace(picture, pixels=turn(picture.pixels), alpha=alpha, history=history)
    return picture
