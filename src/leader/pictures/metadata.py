"""The metadata of a photograph: what a restored picture inherits, and what is added.

Kept are the tags that describe the photograph: camera, lens, dates, exposure, caption, author and copyright. The location (GPS)
is kept only on request. Left out are tags that no longer apply to the new pixels (orientation, size, thumbnail), maker notes,
serial numbers, and everything besides EXIF (XMP, IPTC, comments).
"""

from dataclasses import dataclass, field

from PIL import Image

from leader.pictures.exif import EXIF_AT, GPS_AT, PREFIX, UNDEFINED, Directory, Tag, Tree, block_of, read_block, text

DESCRIPTION, SOFTWARE, VERSION, HISTORY = 270, 305, 36864, 37395
"""Numbers of tags: caption, program, version of EXIF, and what was done to the picture."""
ORIENTATION = 274
MAIN = frozenset({DESCRIPTION, 271, 272, 306, 315, 33432})
"""Caption, make, model, date of change, author, copyright."""
EXIF = frozenset(
    {
        *(33434, 33437, 34850, 34855, 34864, 34866),  # exposure time, aperture, programme, sensitivity
        *(36867, 36868, 36880, 36881, 36882, 37520, 37521, 37522),  # dates, zones, fractions of seconds
        *range(37377, 37387),  # APEX values, distance, metering, light, flash, focal length
        *(37510, 41495, *range(41985, 41995), 41996),  # comment; how it was taken
        *(42034, 42035, 42036),  # lens
    }
)
GPS = frozenset(range(32))
OURS = "Restored with leader"
"""The beginning of the caption that a restoration adds."""
LONGEST_BLOCK = 60_000
"""Largest size in bytes; JPEG has room for 65,000."""


OWN_COLOURS = (
    "The file describes its colours without a profile that other formats can hold; they may look paler, lighter or darker."
)
UNDERSTOOD = "colours by numbers understood"
"""Among what is known of a Pillow image: whether what its numbers (cICP) mean is known."""
SRGB_GAMMA, SRGB_PRIMARIES = 0.45455, (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
"""Of sRGB in a PNG: the exponent, and x and y of white, red, green and blue."""


@dataclass(frozen=True)
class Stamp:
    """The metadata that a restoration adds: the program with its version, a sentence, and the same in machine-readable form."""

    program: str
    sentence: str
    record: str


@dataclass(frozen=True)
class Metadata:
    """The tags of a picture that may be kept.

    main, exif, gps  by directory
    notes            one sentence for each tag left out because it could not be read
    """

    main: Directory = field(default_factory=dict)
    exif: Directory = field(default_factory=dict)
    gps: Directory = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def tree(self, location: bool = False, stamp: Stamp | None = None) -> Tree:
        """The directories to write; `location` adds GPS. Empty if there is nothing to write."""
        main, exif = dict(self.main), dict(self.exif)
        if stamp is not None:
            main[SOFTWARE] = text(stamp.program)
            exif[HISTORY] = text(stamp.record)
            if DESCRIPTION not in main or main[DESCRIPTION].data.startswith(OURS.encode()):
                main[DESCRIPTION] = text(stamp.sentence)
        tree: dict[int, Tag | Tree] = dict(main)
        if exif:
            tree[EXIF_AT] = {VERSION: Tag(UNDEFINED, b"0232"), **exif}
        if location and self.gps:
            tree[GPS_AT] = dict(self.gps)
        return tree

    def block(self, location: bool = False, stamp: Stamp | None = None) -> bytes | None:
        """The EXIF block to write, with its prefix, or None if there is nothing to write."""
        tree = self.tree(location, stamp)
        return PREFIX + block_of(tree) if tree else None


def metadata_in(block: bytes, *more_notes: str) -> Metadata:
    """The tags of an EXIF block that may be kept."""
    main, exif, gps, whole = read_block(block, MAIN, EXIF, GPS)
    if sum(len(tag.data) for part in (main, exif, gps) for tag in part.values()) > LONGEST_BLOCK:
        return Metadata(notes=(_report_omitted("is absurdly long"), *more_notes))
    return Metadata(main, exif, gps, (*(() if whole else (_report_omitted("is damaged"),)), *more_notes))


def _report_omitted(why: str) -> str:
    return f"The EXIF of the file {why}; the unusable part is left out."


def metadata_of(image: Image.Image) -> Metadata:
    """The metadata of a decoded image that may be kept; damaged EXIF never raises."""
    stored = image.info.get("exif")
    notes = (OWN_COLOURS,) if _has_own_colours(image) else ()
    if isinstance(stored, bytes) and stored:
        return metadata_in(stored, *notes)
    try:
        tags = image.getexif()
        tags.bigtiff = False  # as a block, it is written in the simple form
        return metadata_in(tags.tobytes(), *notes) if len(tags) else Metadata(notes=notes)
    except Exception:  # Pillow raises errors of every kind for damaged EXIF
        return Metadata(notes=(_report_omitted("is damaged"), *notes))


def _has_own_colours(image: Image.Image) -> bool:
    """Whether a PNG declares colours of its own, and nothing that takes precedence: a profile, numbers, sRGB, a gamma."""
    if "icc_profile" in image.info:
        return False
    if UNDERSTOOD in image.info or "srgb" in image.info:
        return not image.info.get(UNDERSTOOD, True)
    gamma, primaries = image.info.get("gamma", SRGB_GAMMA), image.info.get("chromaticity", SRGB_PRIMARIES)
    return abs(gamma - SRGB_GAMMA) > 0.02 or any(abs(a - b) > 0.01 for a, b in zip(primaries, SRGB_PRIMARIES))


def orientation_of(image: Image.Image) -> int:
    """The EXIF orientation from 1 (upright) to 8; 1 if it cannot be read."""
    try:
        found = image.getexif().get(ORIENTATION, 1)
    except Exception:  # Pillow raises errors of every kind for damaged EXIF
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1
