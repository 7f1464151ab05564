"""Colours that a file describes by numbers: Display P3 as its profile would, others with a note."""

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from leader.pictures import read_picture, write_picture
from leader.pictures.deep import write_deep_png
from leader.pictures.metadata import OWN_COLOURS
from tests.pictures.test_pictures import chunk, rgb_profile

Array = NDArray[np.float64]
XYZ_OF_P3 = np.array([[0.48657, 0.26567, 0.19822], [0.22897, 0.69174, 0.07929], [0.0, 0.04511, 1.04394]])
XYZ_OF_SRGB = np.array([[0.41239, 0.35758, 0.18048], [0.21264, 0.71517, 0.07219], [0.01933, 0.11919, 0.95053]])
"""X, Y and Z of the light of red, green and blue, white being D65."""


def decode(values: Array) -> Array:
    found: Array = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return found


def encode(light: Array) -> Array:
    found: Array = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 0) ** (1 / 2.4) - 0.055)
    return found


def add_chunk(path: Path, *chunks: bytes) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:33] + b"".join(chunks) + content[33:])


def cicp(*numbers: int) -> bytes:
    return chunk(b"cICP", bytes(numbers))


@pytest.mark.parametrize("bits", [8, 16])
def test_display_p3_by_numbers_is_shown_as_it_is_meant(tmp_path: Path, bits: int) -> None:
    shown = np.random.default_rng(0).uniform(0.2, 0.95, (9, 14, 3))
    stored = encode(decode(shown) @ XYZ_OF_SRGB.T @ np.linalg.inv(XYZ_OF_P3).T).clip(0, 1)
    if bits == 8:
        Image.fromarray(np.round(255 * stored).astype(np.uint8)).save(tmp_path / "a.png")
    else:
        write_deep_png(tmp_path / "a.png", np.round(65535 * stored).astype(np.uint16), None)
    add_chunk(tmp_path / "a.png", cicp(12, 13, 0, 1))
    picture = read_picture(tmp_path / "a.png")
    assert picture.metadata.notes == () and picture.icc is not None
    np.testing.assert_allclose(picture.pixels, stored, atol=0.5 / (2**bits - 1) + 1e-6)
    write_picture(tmp_path / "a.bmp", picture)
    assert np.abs(read_picture(tmp_path / "a.bmp").pixels - shown).max() < 2.5 / 255


def test_what_other_numbers_say_is_told_and_srgb_is_not(tmp_path: Path) -> None:
    gamma = chunk(b"gAMA", struct.pack(">I", 100_000))
    for chunks, told in (
        ((cicp(1, 13, 0, 1), gamma), ()),  # the numbers take precedence
        *(((cicp(5, curve, 0, 1),), ()) for curve in (1, 2, 6, 14, 15)),  # those of television
        ((cicp(9, 16, 0, 1),), (OWN_COLOURS,)),
        ((cicp(9, 13, 0, 1), chunk(b"sRGB", b"\0")), (OWN_COLOURS,)),
        ((cicp(12, 18, 0, 1),), (OWN_COLOURS,)),
        ((cicp(1, 8, 0, 1),), (OWN_COLOURS,)),
        ((cicp(12, 13, 0, 0),), (OWN_COLOURS,)),  # not the full range
        ((chunk(b"cICP", b"\1"),), ()),  # damaged
    ):
        Image.new("RGB", (7, 5)).save(tmp_path / "a.png")
        add_chunk(tmp_path / "a.png", *chunks)
        picture = read_picture(tmp_path / "a.png")
        assert picture.metadata.notes == told and picture.icc is None


def test_a_profile_in_the_file_and_grey_need_no_numbers(tmp_path: Path) -> None:
    profile = rgb_profile(((0.6, 0.3, 0.0), (0.2, 0.6, 0.1), (0.1, 0.1, 0.7)))
    Image.new("RGB", (7, 5)).save(tmp_path / "a.png", icc_profile=profile)
    Image.new("L", (7, 5)).save(tmp_path / "grey.png")
    for name, icc in (("a.png", profile), ("grey.png", None)):
        add_chunk(tmp_path / name, cicp(12, 13, 0, 1))
        picture = read_picture(tmp_path / name)
        assert picture.icc == icc and picture.metadata.notes == ()
