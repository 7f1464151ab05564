"""CMYK by a profile made here: relative colorimetric, and the black of the inks becomes black."""

import io
import struct
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from leader.pictures import read_picture

Array = NDArray[np.float64]
INKS: dict[tuple[int, ...], tuple[int, int, int]] = {
    (0, 0, 0, 0): (100, 0, 0),
    (1, 0, 0, 0): (62, -20, -30),
    (0, 1, 0, 0): (58, 45, 5),
    (0, 0, 1, 0): (88, -4, 50),
    (1, 1, 0, 0): (45, 15, -25),
    (0, 0, 0, 1): (25, 0, 0),
}
"""L*, a* and b* of paper, of an ink, of two over each other; all others count as black ink."""
D50 = np.array([0.9642, 1.0, 0.8249])
SRGB_OF_XYZ = np.array([[3.1341, -1.6174, -0.4907], [-0.9788, 1.9161, 0.0335], [0.0719, -0.2290, 1.4052]])
"""Light of red, green and blue from X, Y and Z under D50, adapted."""


def table(inputs: int, outputs: int, corners: list[list[int]]) -> bytes:
    """An ICC table of 8 bits whose curves are straight and whose cube has a point at every corner."""
    straight = bytes(range(256))
    unit = struct.pack(">9i", *(65536 * (row == column) for row in range(3) for column in range(3)))
    cube = b"".join(map(bytes, corners))
    return b"mft1" + bytes(4) + bytes([inputs, outputs, 2, 0]) + unit + inputs * straight + cube + outputs * straight


def cmyk_profile() -> bytes:
    """A printer's profile, version 2: INKS one way, and black ink for all that is dark the other."""
    seen = [INKS.get(inks, INKS[0, 0, 0, 1]) for inks in product((0, 1), repeat=4)]
    stored = [[round(light * 2.55), a + 128, b + 128] for light, a, b in seen]
    white, text = struct.pack(">3i", *np.round(D50 * 65536).astype(int)), b"by hand\0"
    tags = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(80),
        b"wtpt": b"XYZ " + bytes(4) + white,
        b"A2B0": table(4, 3, stored),
        b"B2A0": table(3, 4, [[0, 0, 0, 0 if light else 255] for light, _, _ in product((0, 1), repeat=3)]),
    }
    index, body = struct.pack(">I", len(tags)), b""
    for name, content in tags.items():
        index += struct.pack(">4sII", name, 128 + 4 + 12 * len(tags) + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    head = struct.pack(">I4xI", 128 + len(index) + len(body), 0x02400000) + b"prtrCMYKLab " + bytes(12) + b"acsp" + bytes(28)
    return head + white + bytes(48) + index + body


def shown(inks: tuple[int, ...]) -> Array:
    """sRGB of what is printed, with black brought to black."""

    def xyz(light: float, a: float, b: float) -> Array:
        roots = np.array([(light + 16) / 116 + a / 500, (light + 16) / 116, (light + 16) / 116 - b / 200])
        found: Array = D50 * np.where(roots > 6 / 29, roots**3, 3 * (6 / 29) ** 2 * (roots - 4 / 29))
        return found

    black = xyz(*INKS[0, 0, 0, 1])
    light = SRGB_OF_XYZ @ ((xyz(*INKS[inks]) - black) * D50 / (D50 - black))
    encoded: Array = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light.clip(0, 1) ** (1 / 2.4) - 0.055).clip(0, 1)
    return encoded


def ycck(image: Image.Image, profile: bytes) -> bytes:
    """A JPEG of Adobe's with luma and chroma of its inks, and black; Pillow writes, inverted, what it takes for inks."""
    luma = np.asarray(Image.fromarray(np.asarray(image)[..., :3]).convert("YCbCr"))
    stored = np.concatenate([255 - luma, np.asarray(image)[..., 3:]], axis=2)
    buffer = io.BytesIO()
    Image.fromarray(stored, "CMYK").save(buffer, "JPEG", quality=100, icc_profile=profile)
    content = bytearray(buffer.getvalue())
    content[content.index(b"Adobe") + 11] = 2
    return bytes(content)


@pytest.mark.parametrize("name", ["a.tif", "a.jpg", "ycck.jpg"])
def test_cmyk_is_shown_as_its_profile_says(tmp_path: Path, name: str) -> None:
    """Patches of 16 x 16 pixels, one ink below the other."""
    patches = np.kron(255 * np.array([[inks] for inks in INKS]), np.ones((16, 16, 1))).astype(np.uint8)
    image, profile = Image.fromarray(patches, "CMYK"), cmyk_profile()
    if name == "ycck.jpg":
        (tmp_path / name).write_bytes(ycck(image, profile))
    else:
        image.save(tmp_path / name, icc_profile=profile, quality=100)
    with Image.open(tmp_path / name) as opened:
        assert opened.mode == "CMYK"
    picture = read_picture(tmp_path / name)
    assert picture.size == (16, 96) and picture.icc is None and picture.metadata.notes == ()
    for number, inks in enumerate(INKS):
        found = picture.pixels[16 * number + 4 : 16 * number + 12, 4:12].mean((0, 1))
        assert np.abs(found - shown(inks)).max() < 0.02, inks
