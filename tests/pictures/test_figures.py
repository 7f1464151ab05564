"""Figures, by the numbers they draw."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.pictures import figures
from leader.result import Visit


def drawn(axes: Any) -> Any:
    """The one image in a panel."""
    (image,) = axes.get_images()
    return image


def test_panels_in_order_with_their_own_pixels() -> None:
    rng = np.random.default_rng(0)
    colour, grey = rng.random((6, 9, 3)).astype(np.float32), rng.random((12, 18, 1)).astype(np.float32)
    spread = rng.random((12, 18)).astype(np.float32) * 0.1
    figure = figures.side_by_side_figure([("given", colour), ("restored", grey)], spread)
    panels = [axes for axes in figure.axes if axes.get_images()]
    assert [axes.get_title() for axes in panels] == ["given", "restored", "uncertainty"]
    np.testing.assert_array_equal(drawn(panels[0]).get_array(), colour)
    np.testing.assert_array_equal(drawn(panels[1]).get_array(), grey[..., 0])
    assert drawn(panels[1]).get_clim() == (0, 1), "a grey picture is not stretched"
    np.testing.assert_allclose(drawn(panels[2]).get_array(), np.clip(1.6449 * 255 * spread, 1, 40))
    without = figures.side_by_side_figure([("a", colour), ("b", grey)])
    assert [axes.get_title() for axes in without.axes] == ["a", "b"]


def test_holes_are_shown_in_a_colour_of_their_own() -> None:
    pixels, known = np.full((2, 3, 1), 0.5, np.float32), np.array([[True, False, True], [True, True, False]])
    for given in (pixels, pixels.repeat(3, 2)):
        shown = figures.with_holes(given, known)
        assert (shown[known] == 0.5).all() and (shown[~known] == figures.HOLES).all() and (given == 0.5).all()


def test_the_map_has_one_scale_for_every_picture() -> None:
    bright, dark = (np.full((20, 50), value, np.float32) for value in (0.2, 0.01))
    limits = []
    for spread in (bright, dark):
        figure = figures.map_figure(spread)
        image = drawn(figure.axes[0])
        np.testing.assert_allclose(image.get_array(), np.clip(1.6449 * 255 * spread, 1, 40))
        limits.append(image.get_clim())
        assert figure.get_figheight() < 0.5 * figure.get_figwidth(), "as wide as the picture"
        bar = figure.axes[1]
        assert [text.get_text() for text in bar.get_yticklabels()] == ["within 2", "within 5", "within 10", "within 20"]
        assert "levels of 255" in bar.get_ylabel()
    assert limits == [(1, 40), (1, 40)]


def test_the_path_draws_every_visit() -> None:
    visits = [Visit(900, 700, 0.5, 2), Visit(700, 600, 0.2, 1), Visit(600, -1, 0.1, 3)]
    upper, lower = figures.path_figure(visits).axes
    (line,) = upper.get_lines()
    assert list(line.get_xdata()) == [900, 700, 600] and list(line.get_ydata()) == [0.5, 0.2, 0.1]
    assert upper.get_yscale() == "log" and upper.get_title() == "3 network steps"
    (jumps,) = lower.get_lines()
    assert list(jumps.get_xdata(orig=True)) == [900, 700, 600] and list(jumps.get_ydata(orig=True)) == [2, 1, 3]
    left, right = lower.get_xlim()
    assert left > right, "noise on the left"
    unknown = figures.path_figure([Visit(900, -1, None, 1)])
    assert not unknown.axes[0].get_lines()


def test_files_are_written_whole(tmp_path: Path) -> None:
    spread = np.full((8, 8), 0.1, np.float32)
    figures.draw_map(tmp_path / "m.png", spread)
    figures.draw_side_by_side(tmp_path / "s.pdf", [("a", np.zeros((8, 8, 3), np.float32))], spread)
    figures.draw_path(tmp_path / "p.svg", [Visit(1, -1, 0.1, 1)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.png", "p.svg", "s.pdf"]
    with pytest.raises(UsageError, match="figures are written as"):
        figures.draw_map(tmp_path / "m.xyz", spread)


def test_the_ending_says_what_a_map_is_written_as(tmp_path: Path) -> None:
    spread = np.linspace(0, 0.2, 12 * 16, dtype=np.float32).reshape(12, 16)
    pixels = np.full((12, 16, 3), 0.25, np.float32)
    for name in ("m.npy", "m.16.png", "m.fade.png", "m.png", "m.jpg", "m.svg"):
        figures.draw_map(tmp_path / name, spread, pixels)
    assert np.array_equal(np.load(tmp_path / "m.npy"), spread)
    with Image.open(tmp_path / "m.16.png") as image:
        np.testing.assert_allclose(np.asarray(image) / 65535, spread, atol=0.5 / 65535)
    with Image.open(tmp_path / "m.fade.png") as image:
        faded = np.asarray(image)
    assert faded.shape == (12, 16, 3) and tuple(faded[0, 0]) == (64, 64, 64) and faded[-1, -1, 0] > 180
    for name, kind in (("m.png", "PNG"), ("m.jpg", "JPEG")):
        with Image.open(tmp_path / name) as image:
            assert image.format == kind and image.height > 12  # the legend lies below
    with pytest.raises(LeaderError, match="needs the picture"):
        figures.draw_map(tmp_path / "n.fade.png", spread)
