"""One reader for restoring, benchmarks and training: the same values everywhere, only served formats, only regular files."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leader.errors import LeaderError
from leader.pictures import FORMATS, SUFFIXES, Picture, list_pictures, read_picture, write_picture
from leader.restoration.arguments import as_picture
from leader.train.data import decode, open_photographs


def deep_grey(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A ramp over the whole 16-bit range; returns its values in [0, 1]."""
    values = np.linspace(0, 65535, 32 * 32).round().astype(np.uint16).reshape(32, 32)
    Image.fromarray(values).save(path)
    exact: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = values / 65535
    return exact


def test_16_bit_grey_has_the_same_values_in_restoration_and_training(tmp_path: Path) -> None:
    exact = deep_grey(tmp_path / "ramp.png")
    np.testing.assert_allclose(as_picture(tmp_path / "ramp.png").pixels[..., 0], exact, atol=1e-6)
    trained = np.asarray(decode(tmp_path / "ramp.png")).astype(float) / 255
    assert trained.shape == (32, 32, 3)
    for channel in range(3):
        assert np.abs(trained[..., channel] - exact).max() <= 0.5 / 255 + 1e-6
    stored = open_photographs(tmp_path, tmp_path / "cache")["full"][0].astype(float) / 255
    np.testing.assert_array_equal(stored, trained)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "LA", "1"])
def test_8_bit_pictures_are_what_pillow_makes_of_them(tmp_path: Path, mode: str) -> None:
    colours = Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8))
    image = colours.quantize(32) if mode == "P" else colours.convert(mode)
    image.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as opened:
        expected = np.asarray(opened.convert("RGB"))
    rgb = read_picture(tmp_path / "a.png").rgb()
    assert rgb.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(rgb), expected)


def test_training_sees_photographs_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    Image.new("RGB", (30, 20)).save(tmp_path / "turned.jpg", exif=exif)
    assert decode(tmp_path / "turned.jpg").size == (20, 30)


def test_listing(tmp_path: Path) -> None:
    assert (*FORMATS, ".heic", ".heif", ".hif") == SUFFIXES
    for name in ("b.png", "a.JPG", "c.tiff", ".hidden.png", "notes.txt", "d.jp2"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    assert [path.name for path in list_pictures(tmp_path)] == ["a.JPG", "b.png", "c.tiff", "d.jp2"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(LeaderError, match="No pictures"):
        list_pictures(tmp_path / "empty")
    with pytest.raises(LeaderError, match="no folder"):
        list_pictures(tmp_path / "none")


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize("name", ["evil.jpg", "evil.eps", "evil.png"])
def test_no_program_is_started_by_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Pillow's EPS reader asks the path for Ghostscript and runs it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "gs"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (tmp_path / name).write_bytes(EPS)
    with pytest.raises(LeaderError, match="not a picture in a known format"):
        read_picture(tmp_path / name)
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("kind", ["TGA", "PCX", "ICO", "SGI"])
def test_formats_that_are_not_served_are_not_opened(tmp_path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16)).save(buffer, kind)
    (tmp_path / "a.png").write_bytes(buffer.getvalue())
    with pytest.raises(LeaderError, match="known format"):
        read_picture(tmp_path / "a.png")


def test_pipes_and_devices_do_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero"), Path("/dev/stdin")):
        if path.exists() and not path.is_file():
            with pytest.raises(LeaderError, match="pipe or a device"):
                read_picture(path)


def test_a_limit_of_pixels_can_be_given(tmp_path: Path) -> None:
    Image.new("L", (40, 30)).save(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png", 1200).size == (40, 30)
    with pytest.raises(LeaderError, match="40 x 30 pixels; at most 1199"):
        read_picture(tmp_path / "a.png", 1199)


def test_a_picture_shows_itself(tmp_path: Path) -> None:
    picture = Picture(np.full((6, 9, 3), 0.25, np.float32), np.ones((6, 9), np.float32), 16)
    assert repr(picture) == "<Picture 9 x 6, RGB with alpha, 16 bits>"
    with Image.open(io.BytesIO(picture._repr_png_())) as shown:
        assert shown.size == (9, 6) and shown.getpixel((3, 2)) == (64, 64, 64, 255)
    write_picture(tmp_path / "a.png", picture)
    assert read_picture(tmp_path / "a.png").bits == 16
