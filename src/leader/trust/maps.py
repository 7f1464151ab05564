"""The trust map as people see it: fixed colours for every picture, in grey levels of 255, with a legend in words.

`std` is a standard deviation per pixel [H, W] for [0, 1] images. A pixel is known to within N levels where the truth lies no
further than N levels from the answer with 90 % confidence: 1.645 standard deviations.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from leader.errors import LeaderError

NINE_OF_TEN = 1.6449
"""Standard deviations to either side that hold nine tenths of a Gaussian."""
LEVELS = (2, 5, 10, 20)
"""Grey levels of 255 that the legend names."""
SHARES = (5, 10, 20)
"""Grey levels for which shares of pixels are given."""
FIRST, LAST = 1.0, 40.0
"""Grey levels at which the colours begin and end."""
COLOURS = ((13, 23, 66), (30, 80, 162), (31, 158, 137), (181, 222, 43), (253, 174, 50), (214, 40, 40))
"""At 1, 2, 5, 10, 20 and 40 levels: dark blue is known, red is invented; between them on a logarithmic scale."""
PAPER = 0.8
"""The light grey into which unsupported parts fade."""
FADED = 0.88
"""How much of a picture's least supported parts is paper."""
Values = NDArray[np.float32]


def reach(std: Values) -> NDArray[np.float64]:
    """The number of grey levels (of 255) within which the truth lies, per pixel, with 90 % confidence."""
    checked = np.asarray(std)
    if checked.ndim != 2 or checked.size == 0:
        raise LeaderError(f"A trust map is a table of height x width; found the shape {list(checked.shape)}.")
    if not bool(np.isfinite(checked).all()) or bool((checked < 0).any()):
        raise LeaderError("A trust map holds standard deviations, finite and not negative; this one holds other values.")
    levels: NDArray[np.float64] = NINE_OF_TEN * 255 * checked.astype(np.float64)
    return levels


def shares(std: Values) -> dict[str, float]:
    """Share of the pixels known to within 5, 10 and 20 levels of 255, by these numbers as words."""
    levels = reach(std)
    return {str(limit): float((levels <= limit).mean()) for limit in SHARES}


def find_unsure_share(std: Values) -> float:
    """Share of the pixels that are not known to within the last of `SHARES`."""
    return 1 - shares(std)[str(SHARES[-1])]


def in_words(std: Values) -> str:
    """The shares as one sentence."""
    (first, share), *others = shares(std).items()
    rest = " and ".join(f"{100 * share:.0f} % within {limit}" for limit, share in others)
    return f"{100 * share:.0f} % of pixels are within {first} grey levels of the truth, {rest} (90 % confidence)."


def colours(std: Values) -> NDArray[np.uint8]:
    """The map alone [H, W, 3], 8 bits, without a legend."""
    return _paint(reach(std))


def _paint(levels: NDArray[np.float64]) -> NDArray[np.uint8]:
    nodes = np.log([FIRST, *LEVELS, LAST])
    places = np.log(np.clip(levels, FIRST, LAST))
    channels = [np.interp(places, nodes, [colour[channel] for colour in COLOURS]) for channel in range(3)]
    drawn: NDArray[np.uint8] = np.round(np.stack(channels, -1)).astype(np.uint8)
    return drawn


def heat(std: Values) -> Image.Image:
    """The map in colours with its legend below; wider than the map where the legend is."""
    drawn = Image.fromarray(colours(std))
    legend = _legend(drawn.width)
    sheet = Image.new("RGB", (max(drawn.width, legend.width), drawn.height + legend.height), "white")
    sheet.paste(drawn, (0, 0))
    sheet.paste(legend, (0, drawn.height))
    return sheet


def fade(pixels: Values, std: Values) -> Image.Image:
    """The picture [H, W, C] in [0, 1], unsupported parts faded into light grey: at 5 levels nothing, at 40 nearly all."""
    levels = reach(std)
    if pixels.ndim != 3 or pixels.shape[:2] != levels.shape:
        raise LeaderError(f"The picture has the shape {list(pixels.shape)} and its trust map {list(levels.shape)}.")
    colour = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels[..., :3]
    low, high = np.log(SHARES[0]), np.log(LAST)
    share = FADED * np.clip((np.log(np.maximum(levels, 1e-9)) - low) / (high - low), 0, 1)[..., None]
    mixed = (1 - share) * np.clip(colour, 0, 1) + share * PAPER
    return Image.fromarray(np.round(255 * mixed).astype(np.uint8))


def numbers(std: Values) -> Image.Image:
    """The map as a grey picture of 16 bits: value / 65535 is the standard deviation, of the range 0 to 1."""
    reach(std)
    return Image.fromarray(np.round(65535 * np.clip(std, 0, 1)).astype(np.uint16))


def legend_entries() -> list[tuple[tuple[int, int, int], str]]:
    """(colour, words) of the legend, from known to invented."""
    words = [(limit, f"within {limit} levels") for limit in LEVELS] + [(LAST, "further off")]
    return [(_pick_colour(limit), text) for limit, text in words]


def _pick_colour(levels: float) -> tuple[int, int, int]:
    red, green, blue = (int(value) for value in _paint(np.array([[levels]]))[0, 0])
    return red, green, blue


def _legend(width: int) -> Image.Image:
    """The entries beside each other, in as many lines as the width asks for."""
    size = int(np.clip(width // 40, 11, 28))
    font = ImageFont.load_default(size)
    gap, square = size // 2, size
    lines: list[list[tuple[int, tuple[int, int, int] | None, str]]] = []
    left = right = 0
    title: list[tuple[tuple[int, int, int] | None, str]] = [(None, "With 90 % confidence, the truth is")]
    for colour, text in [*title, *legend_entries(), (None, "of 255.")]:
        taken = int(font.getlength(text)) + (square + gap if colour is not None else 0) + 2 * gap
        if not lines or (left + taken > width and left > 0):
            lines.append([])
            left = 0
        lines[-1].append((left, colour, text))
        left += taken
        right = max(right, left)
    strip = Image.new("RGB", (max(width, right), (square + gap) * len(lines) + gap), "white")
    draw = ImageDraw.Draw(strip)
    for row, line in enumerate(lines):
        top = gap + row * (square + gap)
        for place, colour, text in line:
            start = place + gap
            if colour is not None:
                draw.rectangle((start, top, start + square - 1, top + square - 1), fill=colour)
                start += square + gap
            draw.text((start, top - size // 8), text, fill="black", font=font)
    return strip
