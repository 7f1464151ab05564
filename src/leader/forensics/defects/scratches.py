"""Scratches and lines of dust: ridges and valleys, one to three pixels wide, that go on.

Drawn ones have the same colour along their whole length, up to rounding: a chain of equal pixels that stand out is no accident.
Compression averages colours and lets brightness vary; there a pixel must differ, in luma, from both of its sides in three of
four places along a short straight segment, and segments of similar brightness must join to a line that is long and clear for
the size of the picture. Photographs have such lines too (wires, silhouettes), so the bar is high there.
"""

import math

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.chains import find_chains
from leader.forensics.defects.clipped_noise import find_limits, measure_reach
from leader.forensics.defects.neighbours import find_largest, grow_mask, median_around, shift_values

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

ACROSS = ((0, 3), (3, 0), (2, 2), (2, -2), (0, 4), (4, 0), (3, 3), (3, -3))
"""From the middle of a scratch to beyond its border, in four directions, for thin and for wider ones."""
_CONSTANTS = read_constants("defects.scratches")
FAINT_RIDGE, SAME_COLOUR = _CONSTANTS.numbers("faint_ridge", "same_colour")
SHORTEST_DRAWN, SHORTEST_GREY = _CONSTANTS.counts("shortest_drawn", "shortest_grey")
PURE_RIDGE, WITHIN_NOISE = _CONSTANTS.numbers("pure_ridge", "within_noise")
RIDGE, RIDGE_SCALE, MOST_OF_A_SEGMENT = _CONSTANTS.numbers("ridge", "ridge_scale", "most_of_a_segment")
SHADE = _CONSTANTS.number("shade")
SHORTEST_LINE = _CONSTANTS.count("shortest_line")
WHITE, MANY_WHITE, MANY_LINES = _CONSTANTS.numbers("white", "many_white", "many_lines")
FOLLOWED = _CONSTANTS.count("followed")
FOLLOWED_SHADE = _CONSTANTS.number("followed_shade")
FOLLOWED_STEPS = _CONSTANTS.count("followed_steps")
CLEAREST, CLEAREST_SHARE, CLEAR_LINES = _CONSTANTS.numbers("clearest", "clearest_share", "clear_lines")

ALONG = (((0, 3), (1, 0), (0, 1), 6), ((3, 0), (0, 1), (1, 0), 6), ((2, 2), (1, -1), (1, 1), 4), ((2, -2), (1, 1), (1, -1), 4))
"""Of segments: from its middle to both sides, a step along, a step aside, and half its length in steps."""
SLOPES = (-0.5, -0.25, 0.0, 0.25, 0.5)
"""Steps aside per step along."""


def ridgeness(pixels: Floats) -> Floats:
    """[H, W], how far a pixel lies outside of what is on both of its sides, in the direction and channel where it is most."""
    most = np.zeros(pixels.shape[:2], dtype=np.float32)
    for down, right in ACROSS:
        one, other = shift_values(pixels, down, right), shift_values(pixels, -down, -right)
        outside = np.maximum(pixels - np.maximum(one, other), np.minimum(one, other) - pixels)
        most = np.maximum(most, find_largest(outside))
    return most


def find_drawn(pixels: Floats) -> Flags:
    """[H, W], the scratches of pixels [H, W, C] whose colour is the same all along.

    One grey level coincides by accident more often than three colours do, and black and white are where values were clipped.
    """
    ridge, at_limits = ridgeness(pixels), find_limits(pixels)
    pure = at_limits.any(0)
    chains = find_chains(ridge > np.where(pure, PURE_RIDGE, FAINT_RIDGE), pixels, SAME_COLOUR)
    shortest = SHORTEST_GREY if (pixels == pixels[..., :1]).all() else SHORTEST_DRAWN
    found = chains.mask((chains.length >= shortest) & (chains.spread <= SAME_COLOUR), ridge.shape)
    cut_off = at_limits & found
    if cut_off.any() and float(np.median(measure_reach(pixels.mean(2))[cut_off])) < WITHIN_NOISE:
        found &= ~pure  # noise that was clipped hangs together where half of it is
    return found


def find_smeared(luma: Floats) -> Flags:
    """[H, W], the scratches of luma [H, W] behind compression."""
    ridge = ridgeness(luma[..., None])
    segments = on_segments(luma, RIDGE + RIDGE_SCALE * median_around(ridge, 4))
    lines, found = [], np.zeros(luma.shape, dtype=bool)
    for number in range(math.ceil(2 / SHADE) + 1):
        low = (number - 1) * SHADE / 2
        like = segments & (luma >= low) & (luma <= low + SHADE)
        chains = find_chains(grow_mask(like, 1), luma[..., None], np.inf)  # gaps of two pixels are bridged
        strength = _medians(chains.member, np.where(like, ridge, np.nan)[chains.rows, chains.columns], len(chains.area))
        score = np.where(chains.length >= SHORTEST_LINE, chains.length * strength / min(luma.shape), 0)
        lines.append((score, like, chains))
        if float(score.sum()) >= (MANY_WHITE if low >= WHITE else MANY_LINES):
            line = chains.mask(score > 0, luma.shape) & like
            found |= _followed(luma, ridge, line)
    least = CLEAREST + CLEAREST_SHARE * float(segments.mean())
    if max(score.max(initial=0) for score, _, _ in lines) >= least:
        for score, like, chains in lines:
            found |= chains.mask(score >= CLEAR_LINES * least, luma.shape) & like
    return found


def _followed(luma: Floats, ridge: Floats, line: Flags) -> Flags:
    """[H, W], with a line [H, W] what goes on in its shade, more faintly: segments that touch it, or are long, and then pixels
    that hang together with those, for a few steps: in a texture of that shade they would go on for ever.
    """
    like = (ridge > RIDGE) & (np.abs(luma - float(np.median(luma[line]))) <= FOLLOWED_SHADE)
    straight = like & on_segments(luma, np.full(luma.shape, RIDGE, dtype=np.float32))
    chains = find_chains(grow_mask(straight, 1), luma[..., None], np.inf)
    chosen = (chains.length >= FOLLOWED) | chains.holds(line)
    found: Flags = line | (chains.mask(chosen, luma.shape) & straight)
    for _ in range(FOLLOWED_STEPS):
        found |= grow_mask(found, 1) & like
    return found


def on_segments(luma: Floats, limits: Floats) -> Flags:
    """[H, W], where luma is beyond both sides by more than the limits, all of one sign, in most of a segment around."""
    found = np.zeros(luma.shape, dtype=bool)
    for (down, right), along, aside, half in ALONG:
        one, other = shift_values(luma, down, right), shift_values(luma, -down, -right)
        for beyond in (luma - np.maximum(one, other) > limits, np.minimum(one, other) - luma > limits):
            for slope in SLOPES:
                votes = np.zeros(luma.shape, dtype=np.uint8)
                for step in range(-half, half + 1):
                    side = round(step * slope)
                    votes += shift_values(beyond, step * along[0] + side * aside[0], step * along[1] + side * aside[1])
                found |= beyond & (votes >= MOST_OF_A_SEGMENT * (2 * half + 1))
    return found


def _medians(member: NDArray[np.intp], values: Floats, count: int) -> NDArray[np.float64]:
    """[count], the median of the values of each member, NaN left out; 0 where there is none."""
    kept = np.isfinite(values)
    member, values = member[kept], values[kept]
    order = np.lexsort((values, member))
    sizes = np.bincount(member, minlength=count)
    first = np.concatenate([[0], sizes.cumsum()[:-1]])
    found = np.zeros(count)
    some = sizes > 0
    found[some] = values[order][(first + sizes // 2)[some]]
    return found
