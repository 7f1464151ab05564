from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from leader.bench.images import FITS, list_images, load_image
from leader.bench.priors import stand_in
from leader.errors import LeaderError


def by_pillow(path: Path, fit: str, size: int) -> torch.Tensor:
    """The same with Pillow's conversion alone, which the committed records were made with."""
    with Image.open(path) as file:
        picture = file.convert("RGB")
    if fit == "half":
        picture = picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.LANCZOS)
    side = min(picture.size) if fit in ("square", "host") else size
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    picture = picture.crop((left, top, left + side, top + side))
    if fit in ("square", "host"):
        picture = picture.resize((size, size), Image.Resampling.LANCZOS if fit == "square" else Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(picture, dtype=np.float32) / 255).permute(2, 0, 1)[None]


@pytest.mark.parametrize("fit", FITS)
def test_the_shipped_crops_keep_their_bits(fit: str) -> None:
    crops = list_images("test")
    assert len(crops) == 16
    for path in crops:
        assert torch.equal(load_image(path, fit, 120), by_pillow(path, fit, 120))


def test_a_jpeg_keeps_its_bits(tmp_path: Path) -> None:
    with Image.open(list_images("test")[0]) as crop:
        crop.convert("RGB").crop((0, 0, 200, 150)).save(tmp_path / "a.jpg", quality=80)
    assert torch.equal(load_image(tmp_path / "a.jpg", "half", 64), by_pillow(tmp_path / "a.jpg", "half", 64))


def test_a_16_bit_grey_picture_is_not_white(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 64 * 64).round().astype(np.uint16).reshape(64, 64)
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    picture = load_image(tmp_path / "deep.png", "crop", 64)
    assert picture.shape == (1, 3, 64, 64)
    expected = torch.from_numpy(ramp.astype(np.float32) / 65535)
    assert float((picture - expected).abs().max()) <= 0.5 / 255 + 1e-6


def test_half_size_then_crop(tmp_path: Path) -> None:
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, 100:] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    picture = load_image(tmp_path / "a.png", "half", 32)
    assert picture.shape == (1, 3, 32, 32)
    assert float(picture[..., :12].max()) < 0.05 and float(picture[..., -12:].min()) > 0.95
    assert float(load_image(tmp_path / "a.png", "crop", 32)[..., 15].max()) < 0.05, "another way"
    assert load_image(tmp_path / "a.png", "half", 40).shape == (1, 3, 40, 40), "another size"
    Image.fromarray(255 - pixels).save(tmp_path / "a.png", compress_level=0)
    assert float(load_image(tmp_path / "a.png", "half", 32)[..., -12:].max()) < 0.05, "another picture under its name"


def test_what_cannot_be_served_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(LeaderError, match="not a picture"):
        load_image(tmp_path / "a.png", "crop", 8)
    Image.new("RGB", (10, 1)).save(tmp_path / "thin.png")
    with pytest.raises(LeaderError, match="too small"):
        load_image(tmp_path / "thin.png", "half", 8)
    with pytest.raises(LeaderError, match="No pictures"):
        list_images(str(_empty(tmp_path)))


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


@pytest.mark.parametrize("size", [(80, 20), (20, 80)])
def test_a_strip_is_too_small_for_a_square(tmp_path: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size).save(tmp_path / "strip.png")
    with pytest.raises(LeaderError, match=f"'strip.png' is {size[0]} x {size[1]} after 'crop', too small for a crop of 64"):
        load_image(tmp_path / "strip.png", "crop", 64)
    assert load_image(tmp_path / "strip.png", "crop", 20).shape == (1, 3, 20, 20)


@pytest.mark.parametrize("name", ["a" * 5000, "~nobody-of-that-name/prior", "a\0b", "no-such-file"])
def test_a_prior_that_is_no_file_is_told(name: str) -> None:
    with pytest.raises(LeaderError, match="There is no prior"):
        stand_in(name, 64)
