"""Picture files: every format there and back, orientation, alpha, 16 bits, profiles and wide colours; containers."""

import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from leader.errors import LeaderError, UsageError
from leader.pictures import FORMATS, Picture, check_format, container, from_pil, read_picture, write_picture
from leader.pictures.container import Measurement, read_container, write_container
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.picture import Floats

LOSSY = (".jpg", ".jpeg", ".jfif", ".avif")


def random_picture(channels: int, alpha: bool, bits: int, seed: int = 0) -> Picture:
    """Random samples that a file of `bits` can hold exactly."""
    draw = np.random.default_rng(seed)
    top = 2**bits - 1
    pixels = (draw.integers(0, top + 1, (13, 17, channels)) / top).astype(np.float32)
    mask = (draw.integers(0, top + 1, (13, 17)) / top).astype(np.float32) if alpha else None
    return Picture(pixels, mask, bits)


@pytest.mark.parametrize("suffix", sorted(set(FORMATS)))
@pytest.mark.parametrize("channels", [1, 3])
def test_every_format_there_and_back(tmp_path: Path, suffix: str, channels: int) -> None:
    picture = random_picture(channels, False, 8)
    write_picture(tmp_path / f"a{suffix}", picture)
    back = read_picture(tmp_path / f"a{suffix}")
    if suffix in (".webp", ".avif"):  # their decoders give no grey
        back = Picture(back.pixels[..., :channels])
    assert back.pixels.shape == picture.pixels.shape
    tolerance = 0.12 if suffix in LOSSY else 1e-6  # JPEG and AVIF of noise at quality 95
    assert np.abs(back.pixels - picture.pixels).max() <= tolerance
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a{suffix}"]


@pytest.mark.parametrize(("suffix", "channels"), [*((kind, 3) for kind in (".png", ".webp", ".tif", ".jp2")), (".tif", 1)])
def test_alpha_survives(tmp_path: Path, suffix: str, channels: int) -> None:
    picture = random_picture(channels, True, 8)
    assert picture.alpha is not None
    # fully transparent pixels may lose their colour
    picture = Picture(picture.pixels, np.maximum(picture.alpha, np.float32(1 / 255)), 8)
    write_picture(tmp_path / f"a{suffix}", picture)
    back = read_picture(tmp_path / f"a{suffix}")
    assert back.alpha is not None and picture.alpha is not None
    assert np.abs(back.alpha - picture.alpha).max() <= 1e-6
    assert np.abs(back.pixels - picture.pixels).max() <= 1e-6


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize(("channels", "alpha"), [(1, False), (1, True), (3, False), (3, True)])
def test_16_bits_without_loss(tmp_path: Path, suffix: str, channels: int, alpha: bool) -> None:
    picture = random_picture(channels, alpha, 16)
    write_picture(tmp_path / f"a{suffix}", picture)
    back = read_picture(tmp_path / f"a{suffix}")
    assert back.bits == 16
    given = np.broadcast_to(picture.pixels, back.pixels.shape)  # grey with alpha comes back as colour
    np.testing.assert_array_equal(np.round(back.pixels * 65535), np.round(given * 65535))
    if alpha:
        assert back.alpha is not None and picture.alpha is not None
        np.testing.assert_array_equal(np.round(back.alpha * 65535), np.round(picture.alpha * 65535))
        write_picture(tmp_path / f"a{suffix}", replace(picture, icc=bytes(16) + b"GRAY"))
        with Image.open(tmp_path / f"a{suffix}") as image:
            assert "icc_profile" not in image.info, "of grey, where colours are written"


def test_foreign_16_bit_png_with_every_filter(tmp_path: Path) -> None:
    samples = np.random.default_rng(1).integers(0, 65536, (5, 4, 3)).astype(">u2")
    path = tmp_path / "foreign.png"
    path.write_bytes(png(samples, filters=[0, 1, 2, 3, 4]))
    np.testing.assert_array_equal(np.round(read_picture(path).pixels * 65535), samples.astype(int))
    hole = chunk(b"tRNS", struct.pack(">HHH", *samples[2, 1]))  # this colour is transparent
    path.write_bytes(path.read_bytes()[:33] + hole + path.read_bytes()[33:])
    with pytest.raises(LeaderError, match="without loss"):
        read_picture(path)


def png(samples: NDArray[np.generic], filters: list[int]) -> bytes:
    """A 16-bit RGB PNG written row by row with the given filter types, as the specification words them."""
    height, width, _ = samples.shape
    rows = [list(row.tobytes()) for row in samples]
    body = b""
    for index, row in enumerate(rows):
        above = rows[index - 1] if index else [0] * len(row)
        coded = []
        for i, value in enumerate(row):
            left = row[i - 6] if i >= 6 else 0
            up, corner = above[i], (above[i - 6] if i >= 6 else 0)
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(guess - v))
            coded.append((value - [0, left, up, (left + up) // 2, paeth][filters[index]]) % 256)
        body += bytes([filters[index], *coded])
    return png_of(struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0), body)


def png_of(header: bytes, body: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("deep", [False, True])
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int, deep: bool) -> None:
    """To transparency too, as Pillow turns them."""
    image = Image.fromarray(np.random.default_rng(2).integers(0, 256, (6, 9, 3 if deep else 4)).astype(np.uint8))
    exif = Image.Exif()
    exif[274] = orientation
    image.save(tmp_path / "turned.png", exif=exif)
    with Image.open(tmp_path / "turned.png") as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened))
    if deep:  # the same pixels in 16 bits, with the EXIF chunk carried over
        samples = (np.asarray(image).astype(np.uint16) * 257).astype(">u2")
        data = png(samples, [0] * 6)
        tag = chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
        (tmp_path / "turned.png").write_bytes(data[:33] + tag + data[33:])
    picture = read_picture(tmp_path / "turned.png")
    assert picture.bits == (16 if deep else 8)
    found = picture.pixels if picture.alpha is None else np.concatenate([picture.pixels, picture.alpha[..., None]], 2)
    np.testing.assert_array_equal(np.round(found * 255), expected)


def test_palette_grey_alpha_and_bilevel() -> None:
    colours = Image.fromarray(np.random.default_rng(3).integers(0, 256, (9, 9, 3)).astype(np.uint8))
    palette = colours.quantize(16)
    np.testing.assert_array_equal(np.round(from_pil(palette).pixels * 255), np.asarray(palette.convert("RGB")))
    palette.info["transparency"] = 3
    see_through = from_pil(palette)
    assert see_through.alpha is not None
    np.testing.assert_array_equal(see_through.alpha == 0, np.asarray(palette) == 3)
    assert from_pil(Image.new("PA", (3, 2))).alpha is not None and from_pil(Image.new("RGBX", (3, 2))).alpha is None
    for wrong in (-1, 65536):
        with pytest.raises(LeaderError, match=r"outside 0\.\.65535"):
            from_pil(Image.fromarray(np.array([[7, wrong]], np.int32)))
    grey = from_pil(colours.convert("LA"))
    assert grey.pixels.shape[2] == 1 and grey.alpha is not None
    assert set(np.unique(from_pil(colours.convert("1")).pixels)) <= {0.0, 1.0}


def test_alpha_follows_the_size() -> None:
    alpha = np.linspace(0, 1, 8 * 10, dtype=np.float32).reshape(8, 10)
    picture = Picture(np.zeros((8, 10, 3), np.float32), alpha, 16)
    larger = picture.with_pixels(np.zeros((32, 40, 3), np.float32))
    assert larger.alpha is not None and larger.alpha.shape == (32, 40) and larger.bits == 16
    assert np.diff(larger.alpha[16, 4:-4]).min() > 0, "no steps"
    means = larger.alpha.reshape(8, 4, 10, 4).mean((1, 3))
    assert np.abs(means - alpha)[1:-1, 1:-1].max() < 0.01
    coloured = replace(picture, icc=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    assert coloured.with_pixels(picture.pixels).icc == coloured.icc
    assert coloured.with_pixels(picture.pixels[..., :1]).icc is None, "an RGB profile says nothing of grey"
    assert replace(picture, history=JpegHistory((8,) * 64)).with_pixels(picture.pixels).history is None, "never compressed"
    hole = Picture(np.zeros((8, 10, 3), np.float32), np.round(alpha)).with_pixels(np.zeros((32, 40, 3), np.float32)).alpha
    assert hole is not None and hole.min() == 0 and hole.max() == 1, "bicubic interpolation overshoots at the edge of a hole"


def header_only(width: int, height: int) -> bytes:
    return png_of(struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0), b"\0" * 100)


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = random_picture(3, True, 8)
    with pytest.raises(UsageError, match="written as"):
        check_format(tmp_path / "a.xyz")
    with pytest.raises(LeaderError, match="transparency"):
        write_picture(tmp_path / "a.jpg", picture)
    with pytest.raises(LeaderError, match="does not exist"):
        write_picture(tmp_path / "none" / "a.png", picture)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.png").write_bytes(b"before")
    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(LeaderError, match="No space left"):
        write_picture(tmp_path / "a.png", picture)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"before"


def test_a_small_file_that_wants_all_memory_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PNG's chunk may declare four gigabytes; where a picture is large, the memory is what is short."""
    Image.new("L", (20, 12)).save(tmp_path / "a.png")

    def load(self: Image.Image) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "load", load)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    with pytest.raises(LeaderError, match=r"a\.png .* absurd length\): it is damaged"):
        read_picture(tmp_path / "a.png")
    monkeypatch.setattr("leader.pictures.reading.SMALL", 100)
    with pytest.raises(MemoryError):
        read_picture(tmp_path / "a.png")


def test_a_file_that_memory_does_not_suffice_to_open_is_damaged(tmp_path: Path) -> None:
    """A box of a JPEG 2000 file may declare four gigabytes, which are asked for before a size is known."""
    Image.new("RGB", (20, 12)).save(tmp_path / "a.jp2")
    content = bytearray((tmp_path / "a.jp2").read_bytes())
    at = content.index(b"jp2h") - 4
    content[at : at + 4] = (2**32 - 2**16).to_bytes(4, "big")
    (tmp_path / "a.jp2").write_bytes(content)
    program = (
        "import pathlib, resource, sys\n"
        "from leader.pictures import read_picture\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "read_picture(pathlib.Path(sys.argv[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.jp2")], capture_output=True, text=True)
    assert "a.jp2 is damaged: a part of it declares an absurd length; get an intact copy." in done.stderr


@pytest.mark.parametrize("suffix", ["png", "avif"])
def test_memory_that_runs_out_in_decoding_stays_what_it_is(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (20, 12)).save(tmp_path / f"a.{suffix}")
    monkeypatch.setattr("leader.pictures.reading.SMALL", 100)
    monkeypatch.setattr("leader.pictures.reading._with_history", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        read_picture(tmp_path / f"a.{suffix}")


@pytest.mark.parametrize("suffix", [suffix for suffix, row in FORMATS.items() if row.side is not None])
def test_the_longest_side_of_a_format(tmp_path: Path, suffix: str) -> None:
    side, file = FORMATS[suffix].side, tmp_path / f"long{suffix}"
    assert side is not None
    write_picture(file, Picture(np.zeros((16, side, 3), np.float32)))
    assert read_picture(file).size == (side, 16)
    with pytest.raises(LeaderError, match=str(side)):
        check_format(file, False, (16, side + 1))


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
