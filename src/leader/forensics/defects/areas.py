"""Missing areas: torn paper, lost corners, holes and broad tears of a print, which show what lies beneath it.

What lies beneath has one colour and hardly any texture, and ends where the print begins: almost everywhere along its border the
picture differs clearly a few pixels further on. Burnt-out skies, lamps and shadows have one colour too, but fade into it along
part of their border; frames and drawn areas end in lines along rows and columns.
"""

import math

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.chains import find_chains
from leader.forensics.defects.neighbours import find_largest, grow_mask, shift_values

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_CONSTANTS = read_constants("defects.areas")
SMALLEST, LARGEST = _CONSTANTS.numbers("smallest", "largest")
ONE_COLOUR, FLAT, SPREAD, STEP = _CONSTANTS.numbers("one_colour", "flat", "spread", "step")
SHARP, STRAIGHT, EVEN, CRUSHED = _CONSTANTS.numbers("sharp", "straight", "even", "crushed")
BINS, COLOURS, OUTSIDE, FEWEST_BLOCKS = _CONSTANTS.counts("bins", "colours", "outside", "fewest_blocks")
LOOKED_AT = _CONSTANTS.count("looked_at")
BLOCK = 3
"""Pixels of the sides of a block whose mean colour is compared with others."""


def find_areas(pixels: Floats) -> Flags:
    """[H, W], the areas of pixels [H, W, C] in [0, 1] that look torn out; large pictures are looked at reduced."""
    step = -(-max(pixels.shape[:2]) // LOOKED_AT)
    if step == 1:
        return _find_in_small(pixels)
    found = _find_in_small(pixels[::step, ::step])
    height, width = pixels.shape[:2]
    return grow_mask(found, 1).repeat(step, 0).repeat(step, 1)[:height, :width]


def _find_in_small(pixels: Floats) -> Flags:
    missing = np.zeros(pixels.shape[:2], dtype=bool)
    for colour in _list_flat_colours(pixels):
        alike = (find_largest(np.abs(pixels - colour)) <= ONE_COLOUR) & ~missing
        chains = find_chains(alike, pixels, np.inf)
        for number in np.nonzero((chains.area >= SMALLEST * alike.size) & (chains.spread <= SPREAD))[0]:
            area = chains.mask(np.arange(len(chains.area)) == number, (pixels.shape[0], pixels.shape[1]))
            if _is_torn(area, pixels, colour):
                missing |= area
    return missing if missing.mean() <= LARGEST else np.zeros_like(missing)


def _list_flat_colours(pixels: Floats) -> list[Floats]:
    """The most frequent colours [C] among pixels whose neighbours have the same colour."""
    flat = np.ones(pixels.shape[:2], dtype=bool)
    for step in ((0, 1), (1, 0), (1, 1)):
        flat &= find_largest(np.abs(shift_values(pixels, *step) - pixels)) <= FLAT
    chosen = pixels[flat]
    if len(chosen) < SMALLEST * flat.size:
        return []
    numbers = np.minimum((chosen * BINS).astype(np.intp), BINS - 1) @ (BINS ** np.arange(pixels.shape[2]))
    _, member, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    most = np.argsort(-counts)[:COLOURS]
    return [np.median(chosen[member.reshape(-1) == bin_], axis=0) for bin_ in most if counts[bin_] >= SMALLEST * flat.size / 4]


def _is_torn(area: Flags, pixels: Floats, colour: Floats) -> bool:
    """Whether an area of one colour [C] ends abruptly, and not along rows and columns."""
    near = grow_mask(area, OUTSIDE)
    ring = near & ~grow_mask(area, OUTSIDE - 1)
    if not ring.any():
        return False
    inner = pixels[~grow_mask(~area, 1)]
    if not colour.any() and len(inner) and float((inner > 0).any(1).mean()) > CRUSHED:
        return False  # shadows that were cut off at black: a lid beneath a print is lighter, a drawn hole is black all over
    sharp = float((np.abs(pixels[ring] - colour).max(1) >= STEP).mean())
    return sharp >= SHARP and _measure_waver(area, pixels) <= EVEN and _measure_straightness(area) <= STRAIGHT


def _measure_waver(area: Flags, pixels: Floats) -> float:
    """By how much, in [0, 1] levels, the mean colours of blocks of an area [H, W] differ: a standard deviation."""
    inner = ~grow_mask(~area, 1)
    height, width = (side // BLOCK * BLOCK for side in area.shape)
    cut = (height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    whole = inner[:height, :width].reshape(cut).all((1, 3))
    if whole.sum() < FEWEST_BLOCKS:
        return math.inf
    means = pixels[:height, :width].astype(np.float64).reshape(*cut, -1).mean((1, 3))[whole]
    return float(means.std(0).max())


def _measure_straightness(area: Flags) -> float:
    """Share of an area's border [H, W] that runs along a row or a column for three pixels to either side."""
    inside = [shift_values(area, *step) for step in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    straight = total = 0
    for (one, other), along in ((inside[:2], (1, 0)), (inside[2:], (0, 1))):
        for edge in (area & ~one, area & ~other):
            run = edge.copy()
            for step in (1, 2, 3):
                for sign in (1, -1):
                    run &= shift_values(edge, sign * step * along[0], sign * step * along[1])
            straight, total = straight + int(run.sum()), total + int(edge.sum())
    return straight / max(total, 1)
