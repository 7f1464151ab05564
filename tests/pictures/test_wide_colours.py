"""Pictures in Adobe RGB or Display P3 keep their colours: with their profile, or brought to sRGB where a format holds none."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from leader.pictures import read_picture, write_picture
from leader.pictures.picture import Floats, Picture
from tests.pictures.profiles import ADOBE_RGB, DISPLAY_P3, rgb_profile

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
