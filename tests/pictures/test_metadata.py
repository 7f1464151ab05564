"""EXIF: what describes the photograph survives, the place only where asked for; hostile blocks never break a run."""

import io
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms
from PIL.TiffImagePlugin import IFDRational

from leader.pictures import Picture, from_pil, read_picture, write_picture
from leader.pictures.exif import ASCII, LONGEST, UNDEFINED, Tag, block_of, directory_bytes, read_block
from leader.pictures.metadata import EXIF, GPS, MAIN, Metadata, Stamp, metadata_in

HOLDING = (".jpg", ".png", ".webp", ".tif", ".avif")
STAMP = Stamp("leader 9.9", "Restored with leader 9.9: task sr.", '{"program":"leader 9.9"}')


def photograph(**fields: Any) -> Image.Exif:
    """EXIF as a camera writes it, by Pillow."""
    exif = Image.Exif()
    exif[271], exif[272], exif[306] = "Maker", "Model 1", "2024:05:06 07:08:09"
    exif[274] = fields.get("orientation", 6)
    exif[305], exif[282] = "Camera firmware 1", IFDRational(72)
    inner = exif.get_ifd(34665)
    inner[33434], inner[33437], inner[34855] = IFDRational(1, 125), IFDRational(28, 10), 400
    inner[36867], inner[37380] = "2024:05:06 07:08:09", IFDRational(-1, 3)
    inner[37500], inner[42033], inner[40962] = b"private notes of the maker", "serial 123", 4000
    place = exif.get_ifd(34853)
    place[1], place[2] = "N", (IFDRational(52), IFDRational(30), IFDRational(123, 10))
    place[29] = "2024:05:06"
    return exif


def taken(path: Path, **fields: Any) -> Picture:
    """A photograph with its EXIF, through a JPEG file."""
    pixels = np.random.default_rng(0).integers(0, 256, (12, 20, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path, exif=photograph(**fields))
    return read_picture(path)


def tags_in(path: Path) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:
    """What Pillow finds in a file: main, EXIF, GPS."""
    with Image.open(path) as image:
        image.load()
        exif = image.getexif()
        return dict(exif), dict(exif.get_ifd(34665)), dict(exif.get_ifd(34853))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("suffix", HOLDING)
def test_what_describes_the_photograph_survives(tmp_path: Path, suffix: str, bits: int) -> None:
    picture = taken(tmp_path / "in.jpg")
    assert picture.size == (12, 20)  # upright
    icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    deep = Picture(picture.pixels, None, bits, icc, None, picture.metadata)
    write_picture(tmp_path / f"out{suffix}", deep, stamp=STAMP)
    main, exif, gps = tags_in(tmp_path / f"out{suffix}")
    assert (main[271], main[272], main[306]) == ("Maker", "Model 1", "2024:05:06 07:08:09")
    assert main[305] == "leader 9.9"
    assert main[270] == STAMP.sentence
    assert 274 not in main and gps == {} and 34853 not in main
    assert exif[33434] == IFDRational(1, 125) and exif[33437] == 2.8 and exif[34855] == 400
    assert exif[36867] == "2024:05:06 07:08:09" and exif[37380] == IFDRational(-1, 3)
    assert exif[37395] == STAMP.record
    assert exif[36864] == b"0232"
    assert not {37500, 42033, 40962} & set(exif)
    back = read_picture(tmp_path / f"out{suffix}")
    assert back.size == (12, 20) and back.icc == icc and back.metadata.notes == ()
    assert Image.open(tmp_path / f"out{suffix}").getexif().get_ifd(1) == {}  # no thumbnail


@pytest.mark.parametrize("suffix", HOLDING)
def test_the_place_is_kept_only_where_it_is_asked_for(tmp_path: Path, suffix: str) -> None:
    picture = taken(tmp_path / "in.jpg")
    write_picture(tmp_path / f"out{suffix}", picture, location=True)
    _, _, gps = tags_in(tmp_path / f"out{suffix}")
    assert gps[1] == "N" and gps[2] == (52.0, 30.0, 12.3) and gps[29] == "2024:05:06"
    write_picture(tmp_path / f"without{suffix}", picture)
    assert tags_in(tmp_path / f"without{suffix}")[2] == {}
    assert b"2024:05:06\0" not in (tmp_path / f"without{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", (*HOLDING, ".bmp", ".jp2", ".ppm"))
def test_the_same_bytes_again(tmp_path: Path, suffix: str) -> None:
    picture = taken(tmp_path / "in.jpg")
    for name in ("a", "b"):
        write_picture(tmp_path / f"{name}{suffix}", picture, True, STAMP)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_a_caption_stays_and_our_own_is_replaced() -> None:
    mine = Metadata({270: Tag(ASCII, b"Grandmother\0")}).tree(stamp=STAMP)
    assert mine[270] == Tag(ASCII, b"Grandmother\0")
    ours = Metadata({270: Tag(ASCII, b"Restored with leader 0.0: x\0")}).tree(stamp=STAMP)
    assert ours[270] == Tag(ASCII, STAMP.sentence.encode() + b"\0")
    assert Metadata().block() is None and Metadata(gps={1: Tag(ASCII, b"N\0")}).block() is None


@pytest.mark.parametrize("suffix", HOLDING)
def test_words_of_every_language(tmp_path: Path, suffix: str) -> None:
    words = {315: Tag(ASCII, "Пётр 写真 é\0".encode()), 33432: Tag(ASCII, b"\xff\xfe no text \x80\0")}
    write_picture(tmp_path / f"a{suffix}", Picture(np.zeros((8, 8, 3), np.float32), metadata=Metadata(words)), stamp=STAMP)
    kept = read_picture(tmp_path / f"a{suffix}").metadata.main
    assert kept[315] == words[315] or suffix == ".tif"  # Pillow reads a TIFF's words as letters of one byte
    assert kept[33432].data[:2] == b"\xff\xfe" or suffix == ".tif"


def test_both_byte_orders_hold_the_same(tmp_path: Path) -> None:
    exif = photograph()
    exif.endian = ">"
    large, little = metadata_in(exif.tobytes()), metadata_in(photograph().tobytes())
    assert exif.tobytes()[6:8] == b"MM" and large == little and large.exif
    assert large.exif[33434] == Tag(5, struct.pack("<II", 1, 125))


def test_a_pillow_image_and_a_tiff_bring_theirs(tmp_path: Path) -> None:
    for suffix in (".tif", ".png"):
        write_picture(tmp_path / f"a{suffix}", taken(tmp_path / "in.jpg"), location=True, stamp=STAMP)
        with Image.open(tmp_path / f"a{suffix}") as image:
            assert from_pil(image).metadata.main[271].data.startswith(b"Maker")
        kept = read_picture(tmp_path / f"a{suffix}").metadata
        assert kept.exif[33434] == Tag(5, struct.pack("<II", 1, 125)) and len(kept.gps) == 3
        assert 305 not in kept.main and kept.notes == ()


def test_a_large_tiff_brings_its_own_too(tmp_path: Path) -> None:
    exif = photograph()
    Image.new("RGB", (16, 12)).save(tmp_path / "a.tif", exif=exif, big_tiff=True)
    Image.new("RGB", (16, 12)).save(tmp_path / "b.tif", exif=exif)
    metadata = read_picture(tmp_path / "a.tif").metadata
    assert metadata == read_picture(tmp_path / "b.tif").metadata and metadata.main and metadata.notes == ()


def entry(number: int, kind: int, count: int, value: int) -> bytes:
    return struct.pack("<HHII", number, kind, count, value)


def hostile() -> Iterator[tuple[str, bytes]]:
    head = b"II*\0\x08\0\0\0"
    yield "no TIFF", b"garbage" * 5
    yield "short", b"II*\0"
    yield "no directory", b"II*\0\xff\xff\xff\xff"
    yield "entries beyond the end", head + b"\xff\xff" + entry(999, 2, 4, 0x41414141)
    yield "value beyond the end", head + b"\1\0" + entry(271, 2, 4000, 2**32 - 1) + b"\0" * 4
    yield "a value of four gigabytes", head + b"\1\0" + entry(271, 12, 2**32 - 1, 8) + b"\0" * 4
    yield "an unknown kind", head + b"\1\0" + entry(271, 99, 1, 8) + b"\0" * 4
    yield "too long a value", block_of({270: Tag(ASCII, b"x" * (LONGEST + 1))})


@pytest.mark.parametrize(("what", "block"), list(hostile()), ids=lambda item: item if isinstance(item, str) else "")
def test_hostile_blocks_are_left_out_with_a_note(tmp_path: Path, what: str, block: bytes) -> None:
    """Also through files: the picture comes back, upright as stored, with one sentence."""
    found = metadata_in(block)
    assert found.main == found.exif == found.gps == {}
    assert found.notes == ("The EXIF of the file is damaged; the unusable part is left out.",)
    for suffix in (".jpg", ".png", ".webp"):
        Image.new("RGB", (20, 10), "red").save(tmp_path / f"a{suffix}", exif=b"Exif\0\0" + block)
        picture = read_picture(tmp_path / f"a{suffix}")
        assert picture.size == (20, 10) and picture.metadata == found
        write_picture(tmp_path / f"b{suffix}", picture, True, STAMP)
        assert tags_in(tmp_path / f"b{suffix}")[0][305] == "leader 9.9"


def test_directories_that_point_at_themselves(tmp_path: Path) -> None:
    loop = b"II*\0\x08\0\0\0" + b"\2\0" + entry(271, 2, 4, 0x00434241) + entry(34665, 4, 1, 8) + struct.pack("<I", 8)
    found = metadata_in(loop)
    assert found.main == {271: Tag(ASCII, b"ABC\0")} and found.exif == {} and found.notes == ()
    Image.new("RGB", (20, 10)).save(tmp_path / "a.jpg", exif=b"Exif\0\0" + loop)
    assert read_picture(tmp_path / "a.jpg").metadata == found


def test_damage_of_one_directory_is_told_where_the_next_is_whole() -> None:
    inner = struct.pack("<H", 1) + entry(37380, 3, 1, 7) + bytes(4)
    block = b"II*\0\x08\0\0\0" + b"\2\0" + entry(271, 2, 900, 5000) + entry(34665, 4, 1, 38) + bytes(4) + inner
    found = metadata_in(block)
    assert found.main == {} and list(found.exif) == [37380] and len(found.notes) == 1


def test_many_long_values_are_left_out_together() -> None:
    long = Tag(UNDEFINED, b"x" * LONGEST)
    block = block_of({271: Tag(ASCII, b"Maker\0"), 34665: dict.fromkeys(sorted(EXIF)[:20], long)})
    assert metadata_in(block) == Metadata(notes=("The EXIF of the file is absurdly long; the unusable part is left out.",))
    most = dict.fromkeys(sorted(EXIF)[:14], long)
    kept = metadata_in(block_of({34665: most}))
    assert kept.exif == most and kept.notes == ()
    buffer = io.BytesIO()
    Image.new("L", (8, 8)).save(buffer, "JPEG", exif=kept.block(stamp=STAMP))  # JPEG has room for it


def test_damaged_blocks_of_every_kind_never_raise() -> None:
    whole = photograph().tobytes()
    rng = Random(3)
    for _ in range(300):
        spoiled = bytearray(whole)
        for _ in range(rng.randint(1, 12)):
            spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        block = bytes(spoiled[: rng.randint(1, len(spoiled))] if rng.random() < 0.3 else spoiled)
        found = metadata_in(block)
        again = found.block(location=True, stamp=STAMP)
        assert again is not None and len(again) < 65_000
        assert read_block(again, MAIN, EXIF, GPS)[3]


def test_an_avif_with_damaged_exif_is_read_without_it(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (16, 24, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.avif", exif=photograph(orientation=1).tobytes())
    good = read_picture(tmp_path / "a.avif")
    content = (tmp_path / "a.avif").read_bytes()
    at = content.index(b"MM\0*")
    (tmp_path / "a.avif").write_bytes(content[:at] + b"oops" + content[at + 4 :])
    bad = read_picture(tmp_path / "a.avif")
    np.testing.assert_array_equal(bad.pixels, good.pixels)
    assert good.metadata.main and bad.metadata.main == {} and "damaged" in bad.metadata.notes[0]


def test_long_values_begin_at_even_bytes_and_are_whole() -> None:
    values = {1: b"abcde", 2: b"abcdefg", 3: b"abcdef"}
    made = directory_bytes({number: Tag(2, data) for number, data in values.items()}, 8)
    assert struct.unpack_from("<H", made)[0] == 3
    for place, (number, data) in enumerate(values.items()):
        entry = struct.unpack_from("<HHII", made, 2 + 12 * place)
        assert entry[:3] == (number, 2, len(data)) and entry[3] % 2 == 0
        assert made[entry[3] - 8 :][: len(data)] == data
