"""What a thumbnail shows of the kernel that made it: numbers that depend on the kernel more than on the picture.

The power near the corner of the spectrum: nearest neighbour folds all detail back into the thumbnail, the others take most of
it away first. Edges: nearest neighbour leaves steps without a pixel between them, box one pixel, bilinear two, bicubic and
Lanczos overshoot on both sides. And at factors such as 1.5, the rhythm of rows and columns: nearest neighbour leaves out no
pixel here and one there, so that neighbours differ more where it left one out; box averages one pixel here and two there.
"""

from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import compute_luma
from leader.operators.pillow_resize import pillow_matrix

Array = NDArray[np.float64]

BANDS = (0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5001)
"""Borders of the bands, the larger of both frequencies in cycles per pixel; each is split into axes and diagonals."""
FITTED_SIDES = {4 / 3: 72, 1.5: 72, 1.75: 72, 2: 60, 2.5: 48, 3: 44, 4: 36, 6: 36, 8: 36}
"""Pixels of a side, by the factor, of the thumbnails that the network was fitted to. It is told those and not the size of the
one it sees: it has no experience with others, and larger ones only show more clearly what it looks at."""
_CONSTANTS = read_constants("size.kernel_features")
LONGEST_PART = _CONSTANTS.count("longest_part")
WEAKEST_STEP, FLAT = _CONSTANTS.numbers("weakest_step", "flat")
FEWEST_STEPS = _CONSTANTS.count("fewest_steps")
STRONG = _CONSTANTS.series("strong")
SHARES = _CONSTANTS.series("shares")
HALF_A_LEVEL = 0.5 / 255
ROUNDING = 1 / 255**2 / 12


def find_features(pixels: NDArray[np.floating], factor: float) -> Array:
    """[72] of a thumbnail, pixels [H, W, C] in [0, 1], made `factor` times smaller: bands, edges, steps, rhythm, strength."""
    plane, starts = find_plane(pixels)
    bands = np.log(band_powers(plane) + ROUNDING)
    rhythm = find_rhythm(plane, factor, (pixels.shape[0], pixels.shape[1]), starts)
    strength = [bands[:4].mean(), np.log(np.interp(factor, list(FITTED_SIDES), list(FITTED_SIDES.values())))]
    found = [bands - bands[:4].mean(), edge_profiles(plane), find_fractions(plane), find_steps(plane), rhythm, strength]
    return np.concatenate([*found, find_differences(plane)])


def find_plane(pixels: NDArray[np.floating]) -> tuple[Array, tuple[int, int]]:
    """(luma in [0, 1] of the middle, at most LONGEST_PART rows and columns, of pixels [H, W, C]; its first row and column)."""
    top, left = (max(0, (length - LONGEST_PART) // 2) for length in pixels.shape[:2])
    part = pixels[top : top + LONGEST_PART, left : left + LONGEST_PART]
    return compute_luma(part.astype(np.float64)) / 255, (top, left)


def band_powers(plane: Array) -> Array:
    """[18], the mean periodogram in each band, axes and diagonals in turn; white noise of variance v gives v."""
    height, width = plane.shape
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    centred = plane - (plane * window).sum() / window.sum()
    power = np.abs(np.fft.rfft2(centred * window)) ** 2 / (window**2).sum()
    down, across = np.abs(np.fft.fftfreq(height))[:, None], np.fft.rfftfreq(width)[None]
    large, small = np.maximum(down, across), np.minimum(down, across)
    found = []
    for low, high in pairwise(BANDS):
        ring = (large >= low) & (large < high)
        found += [power[ring & (small < large / 2)].mean(), power[ring & (small >= large / 2)].mean()]
    return np.array(found)


def edge_profiles(plane: Array) -> Array:
    """[6]: how the gradient goes on 1, 2 and 3 pixels beyond, over all pixels and over strong edges (cubed weights)."""
    gradients = (np.diff(plane, axis=0), np.diff(plane, axis=1).T)
    found = []
    for exponent in (1, 3):
        weights = [np.sign(gradient) * np.abs(gradient) ** exponent for gradient in gradients]
        total = sum(float((weight * gradient).mean()) for weight, gradient in zip(weights, gradients))
        for beyond in (1, 2, 3):
            both = sum(
                float((weight[:-beyond] * gradient[beyond:]).mean() + (weight[beyond:] * gradient[:-beyond]).mean()) / 2
                for weight, gradient in zip(weights, gradients)
            )
            found.append(both / (total + 1e-12))
    return np.array(found)


def find_fractions(plane: Array) -> Array:
    """[6], of three pixels in a row that differ much: how often the middle one lies half-way, further and beyond the others."""
    ends, fractions = [], []
    for lines in (plane, plane.T):
        ends.append(lines[2:] - lines[:-2])
        fractions.append((lines[1:-1] - lines[:-2]) / np.where(np.abs(ends[-1]) < 1e-6, 1e-6, ends[-1]))
    rise = np.abs(np.concatenate([end.ravel() for end in ends]))
    strong = rise > max(float(np.quantile(rise, STRONG[2])), WEAKEST_STEP)
    if strong.sum() < FEWEST_STEPS:
        return np.zeros(6)
    off_centre = np.abs(np.concatenate([fraction.ravel() for fraction in fractions])[strong] - 0.5)
    counts, _ = np.histogram(off_centre, bins=(0, 0.15, 0.3, 0.42, 0.5, 0.56, 0.7))
    shares: Array = counts / len(off_centre)
    return shares


def find_steps(plane: Array) -> Array:
    """[16]: how the picture goes on before and behind steps that are steeper than their neighbours, over two sets of steps.

    Relative to the step itself: shares that end at once, overshoot on both sides, on one, ...; the mean of both sides.
    """
    kept = []
    for lines in (plane, plane.T):
        rise = np.diff(lines, axis=0)
        before, step, behind = rise[:-2], rise[1:-1], rise[2:]
        steepest = (np.abs(step) >= np.abs(before)) & (np.abs(step) >= np.abs(behind)) & (np.abs(step) > WEAKEST_STEP)
        kept.append(np.stack([before[steepest] / step[steepest], behind[steepest] / step[steepest], np.abs(step[steepest])]))
    before, behind, height = np.concatenate(kept, axis=1)
    if len(height) < FEWEST_STEPS:
        return np.zeros(16)
    found: list[float] = []
    for share in STRONG[:2]:
        strong = height >= np.quantile(height, share)
        low, high = np.minimum(before, behind)[strong], np.maximum(before, behind)[strong]
        events = (
            (low > -FLAT) & (high < FLAT),
            high < -0.03,
            (low < -0.03) & (high > 0.15),
            (np.abs(low) < FLAT) & (high > 0.3),
            low > 0.2,
            low < -0.25,
        )
        found += [float(event.mean()) for event in events] + [float(low.mean()), float(high.mean())]
    return np.array(found)


def find_rhythm(plane: Array, factor: float, size: tuple[int, int], starts: tuple[int, int]) -> Array:
    """[3], logarithms of ratios, 0 at whole factors: of the differences between neighbours where nearest neighbour would leave
    out more pixels and where fewer, and of the curvature where box would average more, and where nearest takes a longer step.

    size, starts  rows and columns of the whole thumbnail, and the first ones of the part that is looked at
    """
    if factor == int(factor):
        return np.zeros(3)
    ratios: list[list[Array]] = [[], [], []]
    for lines, length, start in zip((plane, plane.T), size, starts):
        large, part = round(length * factor), slice(start, start + len(lines))
        places = np.floor(np.array(list(accumulate([large / length] * (length - 1), initial=large / length / 2))))[part]
        counts = (pillow_matrix(large, length, "box").numpy()[part] > 0).sum(1)[1:-1]
        jumps = np.diff(places)
        rise = (np.diff(lines, axis=0) ** 2).mean(1)
        curvature = ((lines[1:-1] - (lines[:-2] + lines[2:]) / 2) ** 2).mean(1)
        longer = (jumps > jumps.min(), counts > counts.min(), jumps[1:] > jumps[:-1])
        for found, energy, flags in zip(ratios, (rise, curvature, curvature), longer):
            if flags.any() and not flags.all():
                found.append(np.array([energy[flags].mean(), energy[~flags].mean()]) + 1e-7)
    means = [np.mean(found, axis=0) if found else np.ones(2) for found in ratios]
    return np.array([np.log(more / less) for more, less in means])


def find_differences(plane: Array) -> Array:
    """[21]: the mean logarithm of the quantiles of first differences, then the quantiles, less that mean, of the first, second
    and third differences along rows and columns and of the first and second ones along both.
    """
    along = [[np.diff(plane, order, axis) for axis in (0, 1)] for order in (1, 2, 3)]
    both = [[np.diff(np.diff(plane, order, 0), order, 1)] for order in (1, 2)]
    sizes = [np.sort(np.abs(np.concatenate([part.ravel() for part in parts]))) for parts in (*along, *both)]
    logs = np.log([[size[int(share * (len(size) - 1))] + HALF_A_LEVEL for share in SHARES] for size in sizes])
    return np.concatenate([[logs[0].mean()], (logs - logs[0].mean()).ravel()])
