"""Files that other programs write and few readers know: a picture, or one sentence that says what is wrong with them."""

import io
import os
import stat
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

from leader.errors import LeaderError
from leader.pictures import FORMATS, SUFFIXES, Picture, from_pil, list_pictures, read_picture, write_picture
from leader.pictures.deep import write_tiff
from leader.pictures.exif import SHORT, Tag
from leader.pictures.metadata import OWN_COLOURS
from leader.restoration.arguments import as_picture
from leader.train.data import decode, open_photographs
from tests.forensics.fields import colour, find_in, peppered
from tests.forensics.noise.reading import measure_noise
from tests.pictures.test_pictures import chunk, header_only, png_of

PICTURE = Image.fromarray(colour(96, 1))


def jpeg(image: Image.Image, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


def twelve_bits() -> bytes:
    """A JPEG whose frame declares 12 bits a sample."""
    content = bytearray(jpeg(PICTURE))
    content[content.find(b"\xff\xc0") + 4] = 12
    return bytes(content)


def deep_planes() -> bytes:
    """A TIFF of 16-bit colour whose channels lie one after the other."""
    side = 8
    shorts = {256: side, 257: side, 259: 1, 262: 2, 277: 3, 278: side, 284: 2}
    samples_at = 8 + 2 + 12 * (len(shorts) + 3) + 4 + 6 + 24
    entries = [struct.pack("<HHII", tag, 3, 1, value) for tag, value in shorts.items()]
    lists = samples_at - 30
    entries += [struct.pack("<HHII", 258, 3, 3, lists)]
    entries += [struct.pack("<HHII", tag, 4, 3, at) for tag, at in ((273, lists + 6), (279, lists + 18))]
    entries.sort(key=lambda entry: struct.unpack("<H", entry[:2]))
    plane = 2 * side * side
    places = struct.pack("<6I", *(samples_at + plane * band for band in range(3)), plane, plane, plane)
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries) + bytes(4) + struct.pack("<3H", 16, 16, 16)
    return head + places + np.arange(3 * side * side, dtype="<u2").tobytes()


def jpeg_2000(at: int, value: int) -> bytes:
    """Colours in JPEG 2000; a byte of what its codestream declares is another: depth and steps of a channel after byte 42."""
    buffer = io.BytesIO()
    PICTURE.save(buffer, "JPEG2000")
    content = bytearray(buffer.getvalue())
    content[content.index(b"\xff\x4f\xff\x51") + at] = value
    return bytes(content)


def animated_gif() -> bytes:
    buffer = io.BytesIO()
    frames = [Image.new("L", (16, 16), shade) for shade in (0, 255)]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
REFUSED = {
    "twelve.jpg": (twelve_bits(), "starts as a JPEG file, but it is damaged or of an unsupported variant"),
    "floats.tif": (b"II*\0\x08\0\0\0\0\0", "starts as a TIFF file"),
    "planes.tif": (deep_planes(), "16-bit samples in a layout that cannot be read without loss"),
    "empty.png": (b"", "is empty"),
    "huge.png": (header_only(100_000, 100_000), "declares far too many pixels; at most"),
    "large.png": (header_only(9_000, 9_000), "declares 9000 x 9000 pixels; at most"),
    "moving.gif": (animated_gif(), "several frames"),
    "page.jpg": (b"<html>404</html>", "is not a picture in a known format"),
    "half.jpg": (jpeg(PICTURE)[:1500], "it is damaged or of an unsupported variant"),
    "cmyk.jpg": (jpeg(PICTURE.convert("CMYK")), "CMYK without a colour profile"),
    "deep.ppm": (b"P6 2 1 65535 " + bytes(12), "16-bit samples in a layout that cannot be read without loss"),
    "deep.jp2": (jpeg_2000(42 + 3, 11), "more than 8 bits"),
    "wide.jp2": (jpeg_2000(42 + 7, 2), "fewer pixels than brightness"),
    "tall.jp2": (jpeg_2000(42 + 5, 2), "fewer pixels than brightness"),
    "wrong.jpg": (jpeg(PICTURE.convert("CMYK"), icc_profile=SRGB), "with a colour profile that cannot be applied"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: Path, name: str) -> None:
    content, words = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LeaderError) as error:
        read_picture(tmp_path / name)
    assert words in str(error.value) and str(error.value).endswith(".") and "\n" not in str(error.value)
    for missing, said in ((tmp_path / "none.png", "no file"), (tmp_path, "folder")):
        with pytest.raises(LeaderError, match=said):
            read_picture(missing)


READ: dict[str, tuple[str, dict[str, Any]]] = {
    "progressive.jpg": ("JPEG", {"progressive": True}),
    "phone.jpg": ("MPO", {"save_all": True, "append_images": [PICTURE.resize((32, 32))]}),
    "rgb.jpg": ("JPEG", {"keep_rgb": True}),
    "lzw.tif": ("TIFF", {"compression": "tiff_lzw"}),
    "still.gif": ("GIF", {}),
    "lossless.webp": ("WEBP", {"lossless": True}),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_unusual_is_read(tmp_path: Path, name: str) -> None:
    """The first picture of a phone's two, and colours that were not turned into luma and chroma."""
    kind, options = READ[name]
    PICTURE.save(tmp_path / name, kind, **options)
    picture = read_picture(tmp_path / name)
    assert picture.size == (96, 96) and np.abs(picture.pixels - np.asarray(PICTURE) / 255).mean() < 0.03


def test_dithering_is_no_defect() -> None:
    """A picture with a palette has neighbours that differ by design; in all its colours, specks are found."""
    palette = PICTURE.convert("P")
    assert find_in(from_pil(palette)).kinds == ()
    spoiled, truth = peppered(colour(96, 1), 0.02, 0)
    assert (~find_in(from_pil(Image.fromarray(spoiled))).known & truth).sum() >= 0.9 * truth.sum()
    grey = np.repeat(spoiled[..., 1:2], 3, axis=2)  # 256 shades are all that grey has
    assert "salt and pepper" in find_in(from_pil(Image.fromarray(grey))).kinds


def test_nothing_but_black_white_and_two_greys_has_a_noise_level_without_a_warning() -> None:
    shades = np.random.default_rng(0).integers(0, 4, (72, 96, 1)).astype(np.float32) / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0.3 < measure_noise(shades).sigma < 0.5


def deep_grey(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A ramp over the whole 16-bit range; returns its values in [0, 1]."""
    values = np.linspace(0, 65535, 32 * 32).round().astype(np.uint16).reshape(32, 32)
    Image.fromarray(values).save(path)
    exact: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = values / 65535
    return exact


def test_16_bit_grey_has_the_same_values_in_restoration_and_training(tmp_path: Path) -> None:
    exact = deep_grey(tmp_path / "ramp.png")
    deep_grey(tmp_path / "ramp.jp2")
    np.testing.assert_allclose(read_picture(tmp_path / "ramp.jp2").pixels[..., 0], exact, atol=1e-6)
    np.testing.assert_allclose(as_picture(tmp_path / "ramp.png").pixels[..., 0], exact, atol=1e-6)
    trained = np.asarray(decode(tmp_path / "ramp.png")).astype(float) / 255
    assert trained.shape == (32, 32, 3)
    for channel in range(3):
        assert np.abs(trained[..., channel] - exact).max() <= 0.5 / 255 + 1e-6
    stored = open_photographs(tmp_path, tmp_path / "cache")["full"][0].astype(float) / 255
    np.testing.assert_array_equal(stored, trained)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_tiff_of_16_bits_is_upright_once(tmp_path: Path, orientation: int) -> None:
    """Pillow turns TIFFs by itself, and shears the rows of those that it maps into memory."""
    deep = (np.random.default_rng(0).integers(0, 2**16, (9, 14, 3))).astype(np.uint16)
    upright = deep.swapaxes(0, 1) if orientation in (5, 6, 7, 8) else deep
    upright = upright[:: -1 if orientation in (3, 4, 7, 8) else 1, :: -1 if orientation in (2, 3, 6, 7) else 1]
    write_tiff(tmp_path / "colour.tif", deep, None, {274: Tag(SHORT, struct.pack("<H", orientation))})
    Image.fromarray(deep[..., 0]).save(tmp_path / "grey.tif", tiffinfo={274: orientation})
    for name, channels in (("colour.tif", 3), ("grey.tif", 1)):
        np.testing.assert_allclose(read_picture(tmp_path / name).pixels, upright[..., :channels] / 65535, atol=1e-6)


def grey_tiff(samples: bytes, side: int, bits: int, **tags: int) -> bytes:
    """An uncompressed square grey TIFF; black is zero and numbers have no sign unless `tags` say so."""
    shorts = {256: side, 257: side, 258: bits, 259: 1, 262: tags.get("photometric", 1), 273: 8, 277: 1, 278: side}
    shorts |= {279: len(samples), 339: tags.get("sample_format", 1)}
    entries = b"".join(struct.pack("<HHII", tag, 3, 1, value) for tag, value in shorts.items())
    return b"II*\0" + struct.pack("<I", 8 + len(samples)) + samples + struct.pack("<H", len(shorts)) + entries + bytes(4)


def test_the_numbers_of_a_tiff_are_what_its_tags_say(tmp_path: Path) -> None:
    values = np.arange(0, 64).reshape(8, 8)
    twelve = b"".join(struct.pack(">I", int(one) << 20 | int(two) << 8)[:3] for one, two in (values * 65).reshape(-1, 2))
    read = {
        "white.tif": grey_tiff((65535 - values * 1040).astype("<u2").tobytes(), 8, 16, photometric=0),
        "twelve.tif": grey_tiff(twelve, 8, 12),
    }
    for name, content in read.items():
        (tmp_path / name).write_bytes(content)
        np.testing.assert_allclose(read_picture(tmp_path / name).pixels[..., 0], values / 63, atol=1e-3)
    signed = grey_tiff(values.astype("<i2").tobytes(), 8, 16, sample_format=2)
    for content in (signed, grey_tiff(values.astype("<u4").tobytes(), 8, 32)):
        (tmp_path / "undefined.tif").write_bytes(content)
        with pytest.raises(LeaderError, match="of which none is white"):
            read_picture(tmp_path / "undefined.tif")


def test_three_samples_packed_into_16_bits_are_not_16_bits_each(tmp_path: Path) -> None:
    samples = np.array([[[31, 0, 0], [0, 63, 0]], [[0, 0, 31], [31, 63, 31]], [[0, 0, 0], [31, 0, 31]]])
    packed = (samples[::-1] @ np.array([1 << 11, 1 << 5, 1])).astype("<u2").tobytes()
    header = struct.pack("<IiiHHIIiiII", 40, 2, 3, 1, 16, 3, len(packed), 0, 0, 0, 0) + struct.pack("<3I", 0xF800, 0x7E0, 0x1F)
    (tmp_path / "a.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 66 + len(packed), 0, 0, 66) + header + packed)
    picture = read_picture(tmp_path / "a.bmp")
    assert picture.bits == 8
    np.testing.assert_allclose(picture.pixels, samples / (31, 63, 31), atol=1e-6)


def test_colours_that_only_the_file_describes_are_told(tmp_path: Path) -> None:
    gamma, primaries = struct.pack(">I", 100_000), (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
    usual = chunk(b"gAMA", struct.pack(">I", 45_455)) + chunk(b"cHRM", struct.pack(">8I", *primaries))
    content = png_of(struct.pack(">IIBBBBB", 8, 2, 8, 0, 0, 0, 0), bytes(18))
    for more, told in (
        (b"", ()),
        (usual, ()),
        (chunk(b"gAMA", gamma), (OWN_COLOURS,)),
        (chunk(b"cHRM", struct.pack(">8I", *primaries[:-1], 7_500)), (OWN_COLOURS,)),
        (chunk(b"sRGB", b"\0") + chunk(b"gAMA", gamma), ()),
    ):
        (tmp_path / "a.png").write_bytes(content[:33] + more + content[33:])
        assert read_picture(tmp_path / "a.png").metadata.notes == told


@pytest.mark.parametrize(("first", "second", "read"), [(0, 1, True), (0, 0, False), (1, 1, False), (0, 2, False)])
def test_a_smaller_copy_in_a_tiff_is_no_page(tmp_path: Path, first: int, second: int, read: bool) -> None:
    """first, second: NewSubfileType, whose bit 1 is set for a copy."""
    whole, copy = PICTURE.crop((0, 0, 40, 24)), PICTURE.crop((0, 0, 20, 12))
    whole.encoderinfo, copy.encoderinfo = {"tiffinfo": {254: first}}, {"tiffinfo": {254: second}}
    whole.save(tmp_path / "a.tif", save_all=True, append_images=[copy, copy], tiffinfo={254: first})
    if not read:
        with pytest.raises(LeaderError, match="several frames or pages"):
            read_picture(tmp_path / "a.tif")
        return
    np.testing.assert_array_equal(np.asarray(whole), np.asarray(read_picture(tmp_path / "a.tif").rgb()))


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_the_one_transparent_shade_of_a_grey_png(tmp_path: Path, bits: int) -> None:
    values = np.arange(16).reshape(2, 8) % 2**bits
    key = 2**bits - 1 if bits < 8 else 3
    stored = np.unpackbits(values.astype(">u2").view(np.uint8).reshape(2, 8, 2), axis=2)[..., 16 - bits :].reshape(2, -1)
    rows = b"".join(b"\0" + np.packbits(row).tobytes() for row in stored)
    content = png_of(struct.pack(">IIBBBBB", 8, 2, bits, 0, 0, 0, 0), rows)
    (tmp_path / "a.png").write_bytes(content[:33] + chunk(b"tRNS", struct.pack(">H", key)) + content[33:])
    picture = read_picture(tmp_path / "a.png")
    np.testing.assert_array_equal(picture.alpha, values != key)
    np.testing.assert_allclose(picture.pixels[..., 0], values / (2**bits - 1), atol=1e-6)


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
    assert set(SUFFIXES) - set(FORMATS) == {".gif", ".heic", ".heif", ".hif"} and set(FORMATS) <= set(SUFFIXES)
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
