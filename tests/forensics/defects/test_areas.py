"""Torn areas and drawings: planted in fields with the spectrum of photographs; frames, gradients and clean fields have none."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from leader.forensics import examine
from leader.forensics.defects.areas import LOOKED_AT, find_areas
from leader.forensics.defects.drawing import ONE_COLOUR, is_drawing
from leader.pictures import from_pil
from leader.restoration.diagnose import diagnose
from tests.forensics.fields import Flags, colour, find_in


def torn(side: int, seed: int, beneath: tuple[int, int, int]) -> tuple[Image.Image, Flags]:
    """A field with a ragged corner torn off, and where: wider than it is high."""
    rng = np.random.default_rng(seed)
    share, ragged = np.linspace(0, 1, 40), rng.normal(0, side / 60, 40)
    points = [(0.0, 0.0), *zip(0.55 * side * (1 - share), 0.35 * side * share + ragged)]
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).polygon([(float(x), float(y)) for x, y in points], fill=255)
    missing = np.asarray(mask) > 0
    pixels = colour(side, seed).astype(np.float64) * 0.8
    pixels[missing] = np.array(beneath) + rng.normal(0, 1.2, (int(missing.sum()), 3))
    return Image.fromarray(pixels.clip(0, 255).round().astype(np.uint8)), missing


@pytest.mark.parametrize("beneath", [(248, 246, 240), (255, 255, 255)])
def test_a_torn_corner_is_found(beneath: tuple[int, int, int]) -> None:
    image, missing = torn(200, 4, beneath)
    picture = from_pil(image)
    found = find_in(picture)
    assert "torn areas" in found.kinds
    assert (~found.known)[missing].mean() > 0.95 and (~found.known).mean() < 1.3 * missing.mean()
    advice = diagnose(image).advised()
    assert advice.task == "inpaint" and advice.options["mask"] == "auto"


def test_a_corner_of_a_large_picture_is_found_though_only_its_middle_is_examined() -> None:
    image, missing = torn(200, 4, (248, 246, 240))
    size = (3 * LOOKED_AT // 2, 3 * LOOKED_AT // 2)
    large = from_pil(image.resize(size, Image.Resampling.NEAREST))
    torn_there = examine(large).torn
    wanted = np.asarray(Image.fromarray(missing).resize(size, Image.Resampling.NEAREST))
    assert torn_there.shape == wanted.shape and torn_there[wanted].all() and torn_there.mean() < 1.3 * wanted.mean()


def test_crushed_shadows_are_no_tears_and_a_black_hole_is_one() -> None:
    image, missing = torn(200, 4, (-2, -2, -2))
    assert 0.05 < np.asarray(image)[missing].any(1).mean() < 0.5 and not find_areas(from_pil(image).pixels).any()
    pixels = from_pil(image).pixels.copy()
    pixels[missing] = 0
    assert find_areas(pixels)[missing].mean() > 0.95


@pytest.mark.parametrize("seed", range(4))
def test_clean_fields_have_none(seed: int) -> None:
    assert not find_areas(from_pil(Image.fromarray(colour(160, seed))).pixels).any()


def test_frames_and_what_fades_are_no_tears() -> None:
    pixels = from_pil(Image.fromarray(colour(200, 5) // 5 * 4)).pixels
    framed = pixels.copy()
    framed[:, :30] = 1.0
    assert not find_areas(framed).any(), "it ends in one straight line"
    faded = pixels.copy()
    rows, columns = np.indices((200, 200))
    sky = np.clip((90 - np.hypot(rows, columns)) / 40, 0, 1)[..., None].astype(np.float32)
    assert not find_areas((faded + (1 - faded) * sky).astype(np.float32)).any(), "it fades"


def test_a_drawing_has_a_share_of_pixels_like_both_neighbours_in_all_channels() -> None:
    for share in (ONE_COLOUR + 0.01, ONE_COLOUR - 0.01):
        pixels = np.random.default_rng(0).random((101, 101, 3))
        pixels[: 1 + round(100 * share)] = 0.5  # of the 100 x 100 pairs
        assert is_drawing(pixels) == (share > ONE_COLOUR)
    rows = np.repeat(np.random.default_rng(1).random((64, 1, 3)), 64, axis=1)  # stripes: alike along rows alone
    assert not is_drawing(rows) and not is_drawing(rows.transpose(1, 0, 2))
    tinted = np.full((64, 64, 3), 0.5)
    tinted[..., 2] = np.random.default_rng(2).random((64, 64))
    assert not is_drawing(tinted) and is_drawing(tinted[..., :2])
    assert not is_drawing(np.zeros((1, 50, 3)))
