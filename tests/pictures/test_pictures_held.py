"""What files keep: containers their noise and bits, figures the right thing in the right panel, JPEGs their colours."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import LeaderError
from leader.pictures import Picture, container, read_picture, write_picture
from leader.pictures.container import Measurement, read_container, write_container

Pixels = np.ndarray[Any, np.dtype[np.float32]]


def ramp(height: int = 6, width: int = 8, channels: int = 3) -> Pixels:
    values = np.linspace(0, 1, height * width * channels, dtype=np.float32)
    return values.reshape(height, width, channels)


def test_a_container_keeps_every_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = ramp(channels=1)[..., 0]
    kernel = torch.tensor([[0.25, 0.75]], dtype=torch.float64)
    written = Measurement("deblur", torch.rand(1, 3, 6, 8), (3, 6, 8), 0.07, {"kernel": kernel}, 16, alpha, b"profile")
    write_container(tmp_path / "m.npz", written)
    read = read_container(tmp_path / "m.npz")
    assert (read.task, read.image_shape, read.sigma, read.bits, read.icc) == ("deblur", (3, 6, 8), 0.07, 16, b"profile")
    assert torch.equal(read.y, written.y) and torch.equal(read.options["kernel"], kernel)
    assert read.alpha is not None and np.array_equal(read.alpha, alpha)
    with np.load(tmp_path / "m.npz") as arrays:  # others read these files too
        about = json.loads(str(arrays["about"]))
    assert about["image_shape"] == [3, 6, 8] and about["sigma"] == 0.07
    write_container(tmp_path / "m.npz", replace(written, sigma=0.0, options={"indices": torch.tensor([3, 1])}))
    clean = read_container(tmp_path / "m.npz")
    assert clean.sigma == 0.0 and torch.equal(clean.options["indices"], torch.tensor([3, 1]))
    assert clean.options["indices"].dtype == torch.int64
    monkeypatch.setattr(np, "savez_compressed", _write_half)
    with pytest.raises(LeaderError, match="could not be written"):
        write_container(tmp_path / "m.npz", written)
    assert read_container(tmp_path / "m.npz").sigma == 0.0, "whole or not at all"


def _write_half(file: IO[bytes], **arrays: object) -> None:
    file.write(b"half of it")
    raise OSError(28, "No space left on device")


def test_a_container_that_would_fill_the_memory_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MOST_BYTES", 10_000)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(5000, np.float32))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("y.npy", buffer.getvalue())
    with pytest.raises(LeaderError, match="would unpack to 20128 bytes"):
        read_container(tmp_path / "bomb.npz")


def test_jpegs_keep_their_colour_resolution_and_webp_every_bit(tmp_path: Path) -> None:
    stripes = np.zeros((16, 16, 3), np.float32)
    stripes[:, ::2, 0] = 1
    stripes[:, 1::2, 2] = 1
    picture = Picture(stripes)
    write_picture(tmp_path / "a.jpg", picture)
    write_picture(tmp_path / "a.webp", picture)
    assert np.abs(read_picture(tmp_path / "a.jpg").pixels - stripes).max() < 0.2
    assert np.array_equal(read_picture(tmp_path / "a.webp").pixels, stripes)


def test_samples_are_rounded_in_8_and_in_16_bits(tmp_path: Path) -> None:
    value = np.float32(0.4999)
    pixels = np.full((2, 2, 3), value, np.float32)
    write_picture(tmp_path / "8.png", Picture(pixels))
    assert np.asarray(Image.open(tmp_path / "8.png")).flat[0] == round(float(value) * 255) == 127
    almost = np.full((2, 2, 3), 199.8 / 255, np.float32)
    assert np.asarray(Picture(almost).to_pil()).flat[0] == 200 == np.asarray(Picture(almost).rgb()).flat[0]
    write_picture(tmp_path / "8.tif", Picture(almost))
    assert np.asarray(Image.open(tmp_path / "8.tif")).flat[0] == 200
    deep = np.full((2, 2, 3), 30000.7 / 65535, np.float32)
    write_picture(tmp_path / "16.png", Picture(deep, bits=16))
    assert read_picture(tmp_path / "16.png").pixels.flat[0] == pytest.approx(30001 / 65535, abs=1e-7)


def test_the_alpha_of_a_deep_tiff_is_not_premultiplied(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.tif", Picture(ramp(), ramp(channels=1)[..., 0], 16))
    with Image.open(tmp_path / "a.tif") as image:
        assert image.tag_v2[338] in (2, (2,))  # type: ignore[attr-defined]
    read = read_picture(tmp_path / "a.tif")
    assert np.allclose(read.pixels, ramp(), atol=1e-4)


def test_a_container_holds_one_measurement(tmp_path: Path) -> None:
    write_container(tmp_path / "two.npz", Measurement("denoise", torch.zeros(2, 1, 8, 8), (1, 8, 8), 0.1))
    with pytest.raises(LeaderError, match="y has shape"):
        read_container(tmp_path / "two.npz")


def test_values_beyond_the_range_are_held_when_a_picture_is_written(tmp_path: Path) -> None:
    loud = Picture(np.array([[[-0.5], [1.5], [0.5]]], np.float32).repeat(8, 0))
    for name, bits, half in (("a.png", 8, 128 / 255), ("b.png", 16, 32768 / 65535)):
        write_picture(tmp_path / name, replace(loud, bits=bits))
        found = read_picture(tmp_path / name)
        np.testing.assert_allclose(found.pixels[0, :, 0], [0, 1, half], atol=1e-6)


@pytest.mark.parametrize("wrong", ['"image_shape": [3, Infinity, 8]', '"bits": Infinity', '"image_shape": [1e400, 8, 8]'])
def test_numbers_without_end_in_a_container_are_told(wrong: str, tmp_path: Path) -> None:
    write_container(tmp_path / "m.npz", Measurement("denoise", torch.zeros(1, 1, 8, 8), (1, 8, 8), 0.1))
    with np.load(tmp_path / "m.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = wrong.partition(":")[0].strip('"')
    about = json.loads(str(arrays["about"]))
    arrays["about"] = np.array(json.dumps({key: value for key, value in about.items() if key != name})[:-1] + f", {wrong}}}")
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(LeaderError, match="missing or wrong entries"):
        read_container(tmp_path / "m.npz")
