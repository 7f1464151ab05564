"""The trust map for the page: colours to lay over the picture, a file to take away, a legend in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.trust import maps

Spread = NDArray[np.float32]


def cover(spread: Spread) -> Image.Image:
    """The map alone, pixel by pixel, as 8-bit RGB."""
    return Image.fromarray(maps.colours(spread))


def draw(path: Path, spread: Spread) -> None:
    """Writes the map with its legend."""
    maps.heat(spread).save(path)


def legend() -> tuple[tuple[str, str], ...]:
    """(colour as #rrggbb, words), from known to invented."""
    return tuple((_hex(colour), words) for colour, words in maps.legend_entries())


def in_words(spread: Spread) -> str:
    """One sentence about the whole map."""
    return maps.in_words(spread)


def _hex(colour: tuple[int, ...]) -> str:
    return "#" + "".join(f"{value:02x}" for value in colour)
