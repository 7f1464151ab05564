"""HEIC and AVIF files: samples as another program wrote them, turned, judged before they are decoded; damage in a sentence."""

import io
import struct
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from leader.errors import LeaderError
from leader.folders.names import is_source_name, name_results
from leader.pictures import check_format, heif, read_picture, write_picture
from leader.pictures.heif import DEEP
from leader.pictures.metadata import OWN_COLOURS

pillow_heif = pytest.importorskip("pillow_heif")


def blocks(channels: int = 3) -> NDArray[np.uint8]:
    """[40, 56, C], patches that no chroma averaging can hide."""
    return np.kron(np.random.default_rng(0).integers(0, 256, (5, 7, channels)), np.ones((8, 8, 1))).astype(np.uint8)


def heic(path: Path, image: Image.Image, **options: Any) -> Path:
    pillow_heif.from_pillow(image).save(path, quality=-1, chroma=444, **options)
    return path


def test_a_heic_file_as_it_was_written(tmp_path: Path) -> None:
    icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exif = Image.Exif()
    exif[271] = "Maker"
    image = Image.fromarray(blocks()).crop((0, 0, 37, 29))
    image.info["icc_profile"], image.info["exif"] = icc, exif.tobytes()
    picture = read_picture(heic(tmp_path / "misnamed.jpg", image))
    assert picture.bits == 8 and picture.icc == icc and picture.alpha is None and picture.history is None
    assert picture.metadata.main[271].data == b"Maker\0" and picture.metadata.notes == ()
    assert np.abs(picture.pixels * 255 - blocks()[:29, :37]).max() <= 2  # its colours are stored as luma and chroma


def test_grey_alpha_and_ten_bits(tmp_path: Path) -> None:
    assert read_picture(heic(tmp_path / "a.heic", Image.fromarray(blocks(1)[..., 0]))).pixels.shape == (40, 56, 1)
    see_through = read_picture(heic(tmp_path / "b.heic", Image.fromarray(blocks(4))))
    assert see_through.alpha is not None and np.abs(see_through.alpha * 255 - blocks(4)[..., 3]).max() <= 2
    deep = np.full((16, 24, 3), 65535, np.uint16)
    deep[:, 12:] = 32768
    pillow_heif.from_bytes("RGB;16", (24, 16), deep.tobytes()).save(tmp_path / "c.heic", quality=-1, chroma=444)
    picture = read_picture(tmp_path / "c.heic")
    assert picture.bits == 16 and np.abs(picture.pixels - deep / 65535).max() < 2 / 1023
    assert picture.pixels[:, 0].max() == 1.0


def test_a_turned_heic_is_upright_once(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    file = pillow_heif.from_pillow(Image.fromarray(blocks()))
    file.info["exif"] = exif.tobytes()  # stored as it is, with the order to turn it
    file.save(tmp_path / "a.heic", quality=-1, chroma=444)
    picture = read_picture(tmp_path / "a.heic")
    assert picture.size == (40, 56)
    assert np.abs(picture.pixels * 255 - np.rot90(blocks(), -1)).max() <= 2


def test_the_primary_of_several_is_the_photograph(tmp_path: Path) -> None:
    file = pillow_heif.from_pillow(Image.new("RGB", (64, 64), "black"))
    file.add_from_pillow(Image.new("RGB", (32, 24), "white"))
    file.save(tmp_path / "a.heic", primary_index=1)
    picture = read_picture(tmp_path / "a.heic")
    assert picture.size == (32, 24) and picture.pixels.min() > 0.98


def test_sizes_are_judged_before_anything_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = heic(tmp_path / "a.heic", Image.fromarray(blocks()))
    Image.fromarray(blocks()).save(tmp_path / "a.avif")

    def decode(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("leader.pictures.heif.np.asarray", decode)
    monkeypatch.setattr("PIL.AvifImagePlugin.AvifImageFile.load", decode)
    for name in (path, tmp_path / "a.avif"):
        with pytest.raises(LeaderError, match="56 x 40 pixels; at most 2239"):
            read_picture(name, 40 * 56 - 1)


def test_a_heic_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    content = heic(tmp_path / "a.heic", Image.new("RGB", (640, 480))).read_bytes()
    at = content.index(b"ispe") + 8
    for size in ((64, 64), (5000, 5000), (100_000, 100_000)):
        (tmp_path / "a.heic").write_bytes(content[:at] + struct.pack(">II", *size) + content[at + 8 :])
        with pytest.raises(LeaderError, match=r"damaged|at most"):
            read_picture(tmp_path / "a.heic")


def test_without_the_extra_one_sentence_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = heic(tmp_path / "a.heic", Image.fromarray(blocks()))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(LeaderError, match=r"a HEIC file.*pip install 'leader-ir\[heic\]'"):
        read_picture(path)
    Image.fromarray(blocks()).save(tmp_path / "a.png")
    read_picture(tmp_path / "a.png")  # others do not ask for it


def test_without_avif_in_pillow_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(blocks()).save(tmp_path / "a.avif")
    monkeypatch.setattr("PIL.features.check", lambda name: False)
    with pytest.raises(LeaderError, match=r"AVIF file.*Pillow 11\.3"):
        read_picture(tmp_path / "a.avif")
    with pytest.raises(LeaderError, match=r"cannot write b\.avif.*Pillow 11\.3"):
        check_format(tmp_path / "b.avif")


def test_avif_holds_transparency_and_little_loss(tmp_path: Path) -> None:
    Image.fromarray(blocks(4)).save(tmp_path / "a.png")
    picture = read_picture(tmp_path / "a.png")
    write_picture(tmp_path / "a.avif", picture)
    back = read_picture(tmp_path / "a.avif")
    assert back.alpha is not None and picture.alpha is not None
    shown = picture.alpha > 0
    assert np.abs(back.alpha - picture.alpha).max() < 0.03
    assert np.sqrt(np.mean((back.pixels - picture.pixels)[shown] ** 2)) < 0.02


def test_what_is_lost_of_an_avif_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.avif"
    Image.fromarray(blocks()).save(path)
    content = path.read_bytes()
    coding, colours = content.index(b"av1C") + 4, content.index(b"colrnclx") + 8
    for at, value, told in ((0, 0x81, ()), (2, content[coding + 2] | 0x40, (DEEP,))):
        path.write_bytes(content[: coding + at] + bytes([value]) + content[coding + at + 1 :])
        assert heif.find_losses(path)[1] == told
    for at, value, own in ((1, 1, ()), (1, 9, (OWN_COLOURS,)), (1, 12, ()), (3, 16, (OWN_COLOURS,))):
        path.write_bytes(content[: colours + at] + bytes([value]) + content[colours + at + 1 :])
        assert read_picture(path).metadata.notes == own and (read_picture(path).icc is not None) == (value == 12)


@pytest.mark.parametrize("kind", ["heic", "avif"])
def test_damaged_files_in_one_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "heic":
        heic(path, Image.fromarray(blocks()))
    else:
        Image.fromarray(blocks()).save(path, exif=Image.Exif().tobytes())
    whole = path.read_bytes()
    rng = Random(0)
    served = 0
    for case in range(120):
        spoiled = bytearray(whole)
        for _ in range(rng.choice((1, 2, 8, 40))):  # most of them where the structure is
            spoiled[rng.randrange(min(400, len(spoiled)) if rng.random() < 0.7 else len(spoiled))] = rng.randrange(256)
        path.write_bytes(bytes(spoiled[: rng.randint(1, len(spoiled))] if case % 4 == 0 else spoiled))
        try:
            served += bool(np.isfinite(read_picture(path, 10**6).pixels).all())
        except LeaderError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    assert 0 < served < 120


def test_which_files_are_which(tmp_path: Path) -> None:
    def kind(major: bytes, *others: bytes, size: int | None = None) -> str | None:
        body = b"ftyp" + major + b"\0\0\0\0" + b"".join(others)
        (tmp_path / "a").write_bytes(struct.pack(">I", len(body) + 4 if size is None else size) + body + b"heicavif")
        return heif.kind_of(tmp_path / "a")

    assert kind(b"heic", b"mif1") == kind(b"mif1", b"heic") == kind(b"mif1") == kind(b"msf1", b"hevc") == "HEIF"
    assert kind(b"avif", b"mif1") == kind(b"mif1", b"avif") == kind(b"mif1", b"avis", b"heic") == "AVIF"
    assert kind(b"mp42", b"isom") is None and kind(b"mif1", size=2**32 - 1) == "HEIF"
    (tmp_path / "a").write_bytes(io.BytesIO(b"\xff\xd8\xff").getvalue())
    assert heif.kind_of(tmp_path / "a") is None


def test_folders_know_them() -> None:
    assert is_source_name("x/IMG_1.HEIC") and is_source_name("a.avif") and is_source_name("b.hif")
    assert name_results("x/IMG_1.HEIC", None) == {"picture": "x/IMG_1.HEIC.png"}
    assert name_results("a.avif", ".png") == {"picture": "a.avif", "map": "a.avif.map.png"}
    assert name_results("y.npz", None) == {"picture": "y.npz.png"} and name_results("a.JPG", None) == {"picture": "a.JPG"}
