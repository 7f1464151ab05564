"""What files keep: containers their noise and bits, figures the right thing in the right panel, JPEGs their colours."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import LeaderError
from leader.pictures import Picture, container, figures, read_picture, write_picture
from leader.pictures.container import Measurement, read_container, write_container
from leader.pictures.picture import matching_profile
from leader.result import Visit

Pixels = np.ndarray[Any, np.dtype[np.float32]]


def ramp(height: int = 6, width: int = 8, channels: int = 3) -> Pixels:
    values = np.linspace(0, 1, height * width * channels, dtype=np.float32)
    return values.reshape(height, width, channels)


def test_a_container_keeps_every_field(tmp_path: Path) -> None:
    alpha = ramp(channels=1)[..., 0]
    kernel = torch.tensor([[0.25, 0.75]], dtype=torch.float64)
    written = Measurement("deblur", torch.rand(1, 3, 6, 8), (3, 6, 8), 0.07, {"kernel": kernel}, 16, alpha, b"profile")
    write_container(tmp_path / "m.npz", written)
    read = read_container(tmp_path / "m.npz")
    assert (read.task, read.image_shape, read.sigma, read.bits, read.icc) == ("deblur", (3, 6, 8), 0.07, 16, b"profile")
    assert torch.equal(read.y, written.y) and torch.equal(read.options["kernel"], kernel)
    assert read.alpha is not None and np.array_equal(read.alpha, alpha)


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


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are drawn from here on, instead of written."""
    kept: list[Any] = []
    monkeypatch.setattr(figures, "_save", lambda figure, path: kept.append(figure))
    return kept


def shown(axes: Any) -> Any:
    return np.asarray(axes.images[0].get_array())


def test_pictures_stand_under_their_titles_and_the_map_is_last(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = drawn(monkeypatch)
    before, after, spread = ramp() / np.float32(2), ramp()[::-1], ramp(channels=1)[..., 0] / np.float32(10)
    figures.draw_side_by_side(Path("both.png"), [("given", before), ("restored", after)], spread)
    axes = [item for item in kept[0].axes if item.images]
    assert [item.get_title() for item in axes] == ["given", "restored", "uncertainty"]
    expectations: list[Any] = [before, after, spread]
    for place, expected in zip(axes, expectations, strict=True):
        assert np.allclose(shown(place), expected)
    assert axes[0].images[0].get_clim() == (0, 1), "pictures are not stretched"


def test_the_scale_of_a_map_ends_near_its_largest_value(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = drawn(monkeypatch)
    spread = np.full((20, 20), 0.01, np.float32)
    spread[:, :2] = 0.08
    spread[0, 0] = 0.9
    figures.draw_map(Path("map.png"), spread)
    low, high = kept[0].axes[0].images[0].get_clim()
    assert low == 0 and high == pytest.approx(0.08), "a single pixel must not darken the rest"


def test_the_path_draws_uncertainty_above_and_jumps_below(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = drawn(monkeypatch)
    figures.draw_path(Path("path.png"), [Visit(900, 500, 0.4, 4), Visit(500, 0, 0.02, 5), Visit(0, -1, 0.001, 1)])
    upper, lower = kept[0].axes
    assert list(upper.lines[0].get_xdata()) == [900, 500, 0]
    assert list(upper.lines[0].get_ydata()) == [0.4, 0.02, 0.001]
    assert list(lower.lines[0].get_ydata()) == [4, 5, 1]
    assert lower.xaxis_inverted()


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
    assert np.asarray(Picture(almost).to_pil()).flat[0] == 200
    deep = np.full((2, 2, 3), 30000.7 / 65535, np.float32)
    write_picture(tmp_path / "16.png", Picture(deep, bits=16))
    assert read_picture(tmp_path / "16.png").pixels.flat[0] == pytest.approx(30001 / 65535, abs=1e-7)


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".ppm"])
def test_transparency_is_not_lost_without_a_word(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(LeaderError, match="transparency"):
        write_picture(tmp_path / f"a{suffix}", Picture(ramp(), ramp(channels=1)[..., 0]))
    assert not list(tmp_path.iterdir())


def test_a_profile_belongs_to_pixels_of_its_own_space() -> None:
    grey, colour = b"0" * 16 + b"GRAY", b"0" * 16 + b"RGB "
    assert [matching_profile(profile, 1) for profile in (grey, colour, None)] == [grey, None, None]
    assert [matching_profile(profile, 3) for profile in (grey, colour)] == [None, colour]


def test_the_alpha_of_a_deep_tiff_is_not_premultiplied(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.tif", Picture(ramp(), ramp(channels=1)[..., 0], 16))
    with Image.open(tmp_path / "a.tif") as image:
        assert image.tag_v2[338] in (2, (2,))  # type: ignore[attr-defined]
    read = read_picture(tmp_path / "a.tif")
    assert np.allclose(read.pixels, ramp(), atol=1e-4)


def test_a_declared_size_counts_by_its_area(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", Picture(ramp(20, 30)))
    read_picture(tmp_path / "a.png", most_pixels=600)
    with pytest.raises(LeaderError, match="30 x 20"):
        read_picture(tmp_path / "a.png", most_pixels=599)


def test_the_photograph_of_a_phone_is_its_first_picture(tmp_path: Path) -> None:
    first, second = (Image.fromarray(np.full((16, 16, 3), value, np.uint8)) for value in (200, 20))
    first.save(tmp_path / "phone.jpg", "MPO", save_all=True, append_images=[second])
    with Image.open(tmp_path / "phone.jpg") as image:
        assert image.format == "MPO" and getattr(image, "n_frames", 1) == 2
    assert read_picture(tmp_path / "phone.jpg").pixels.mean() == pytest.approx(200 / 255, abs=0.01)
