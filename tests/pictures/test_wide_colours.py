"""Pictures in Adobe RGB or Display P3 keep their colours: with their profile, or brought to sRGB where a format holds none."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from leader.pictures import read_picture, write_picture
from leader.pictures.picture import Floats, Picture

ADOBE_RGB = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
"""Red, green and blue of Adobe RGB (1998), adapted to D50, as its profile gives them."""
DISPLAY_P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
"""Those of Display P3."""


def rgb_profile(primaries: tuple[tuple[float, float, float], ...], gamma: float = 2.2) -> bytes:
    """An ICC profile, version 2, of a display with these primaries."""

    def fixed(value: float) -> bytes:
        return struct.pack(">i", round(value * 65536))

    def xyz(values: tuple[float, ...]) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(map(fixed, values))

    curve = b"curv\0\0\0\0" + struct.pack(">IHH", 1, round(gamma * 256), 0)
    text = b"by hand\0"
    described = b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + b"\0" * 79
    described += b"\0" * (-len(described) % 4)
    tags = {b"desc": described, b"cprt": b"text\0\0\0\0none\0\0\0\0", b"wtpt": xyz((0.9642, 1.0, 0.8249))}
    tags |= {name: xyz(values) for name, values in zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=True)}
    tags |= dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve)
    begin = 128 + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, content in tags.items():
        table += name + struct.pack(">II", begin + len(body), len(content))
        body += content
    header = struct.pack(">I4sI4s4s4s", begin + len(body), b"none", 0x02400000, b"mntr", b"RGB ", b"XYZ ")
    header += struct.pack(">6H4s", 2024, 1, 1, 0, 0, 0, b"acsp") + b"\0" * 28
    header += b"".join(map(fixed, (0.9642, 1.0, 0.8249))) + b"\0" * 48
    return header + table + body


PROFILES = {"Adobe RGB": rgb_profile(ADOBE_RGB), "Display P3": rgb_profile(DISPLAY_P3)}


def shown(path: Path) -> Floats:
    """What a viewer that knows colour profiles shows of a file: [H, W, 3] of sRGB."""
    with Image.open(path) as image:
        icc, rgb = image.info.get("icc_profile"), image.convert("RGB")
    if icc:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(icc))
        converted = ImageCms.profileToProfile(rgb, profile, ImageCms.createProfile("sRGB"))
        assert converted is not None
        rgb = converted
    return np.asarray(rgb, dtype=np.float32)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif", ".avif", ".bmp", ".ppm", ".jp2"])
def test_colours_are_shown_as_before(tmp_path: Path, suffix: str, name: str) -> None:
    """To within rounding and a lossy format's error; taken for sRGB, the same numbers would be 20 grey levels away."""
    steps = np.linspace(40, 200, 32).astype(np.uint8)
    ramp = np.stack([np.tile(steps, (32, 1)), np.tile(steps[:, None], (1, 32)), np.full((32, 32), 90, np.uint8)], -1)
    Image.fromarray(ramp).save(tmp_path / "in.png", icc_profile=PROFILES[name])
    before = shown(tmp_path / "in.png")
    assert np.abs(before - ramp).max() > 20
    write_picture(tmp_path / f"out{suffix}", read_picture(tmp_path / "in.png"))
    assert np.abs(shown(tmp_path / f"out{suffix}") - before).mean() < 1.5


def test_a_profile_that_nobody_can_apply_changes_nothing(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).random((8, 8, 3)).astype(np.float32)
    write_picture(tmp_path / "out.bmp", Picture(pixels, icc=b"\0" * 16 + b"RGB " + b"\0" * 200))
    assert np.abs(np.asarray(Image.open(tmp_path / "out.bmp")) / 255 - pixels).max() < 0.003
