"""Finds the blur of a picture: a Gaussian, a disk or a straight motion, or none, by the evidence for each.

First a coarse grid of kernels on small tiles, of the picture and of its half, which halves every width; then a fine one
around the best of each family on larger tiles. Scenes may have a direction of their own, which looks like a long motion but
without its dark bands: every kernel is tried with and without such a ridge.
"""

import math
from dataclasses import dataclass

import numpy as np

from leader.forensics.blur.evidence import Fits, Scene
from leader.forensics.blur.periodogram import Array, Flags
from leader.forensics.blur.shapes import (
    FAMILIES,
    WIDTHS,
    Family,
    Ridge,
    Shape,
    coarse,
    ridge_power,
    ridges,
    softness,
    transfer,
)
from leader.forensics.blur.views import COARSE_TILE, FINE_TILE, View, view
from leader.forensics.constants import read_constants
from leader.forensics.noise.estimate import NoiseEstimate

_CONSTANTS = read_constants("blur.candidates")
LONGEST_MOTION, RIDGE_ODDS = _CONSTANTS.numbers("longest_motion", "ridge_odds")
SOFT_LENSES = _CONSTANTS.series("soft_lenses")
SOFT_ODDS = _CONSTANTS.number("soft_odds")
RECENTRED = _CONSTANTS.count("recentred")
WIDTH_STEP = _CONSTANTS.number("width_step")


@dataclass(frozen=True)
class Found:
    """One family's best kernel.

    evidence     log-evidence for the family, against no blur
    width_error  standard deviation of log(width)
    scene        the power spectrum of what lies behind the blur
    """

    shape: Shape
    evidence: float
    width_error: float
    scene: Scene


def candidates(luma: Array, noise: NoiseEstimate, known: Flags | None = None) -> tuple[Found, ...]:
    """The best kernel of each family."""
    side = min(luma.shape)
    longest = side * LONGEST_MOTION
    tops: list[Shape] = []
    tried: list[Ridge] = []
    for shrunk in (1, 2) if side >= 4 * COARSE_TILE else (1,):  # wider blurs leave nothing of smaller pictures
        seen = view(luma, COARSE_TILE, noise, known, shrunk)
        if seen is not None:
            found, ridge = _coarse(seen, shrunk, longest)
            tops += found
            tried += [ridge] if ridge is not None and ridge not in tried else []
    fine = view(luma, FINE_TILE if side >= FINE_TILE else COARSE_TILE, noise, known)
    if fine is None or not tops:
        return ()
    spread = [near for top in tops for near in _around(top, (1 / WIDTH_STEP, 1.0, WIDTH_STEP), 0.4)]
    fits = fine.fits(np.stack([transfer(shape, fine.at) for shape in spread]), 10)
    best = [_best(spread, fits.evidence, family) for family in FAMILIES]
    scales = [np.ones(len(fine.at.f)), *(ridge_power(ridge, fine.at) for ridge in tried)]
    odds = np.array([0.0] + [RIDGE_ODDS] * len(tried))
    sharp = float((fine.fits(np.stack(scales)).evidence + odds).max())
    refined = [_refined(fine, shape, scales, odds, sharp) for shape in best if shape is not None]
    return tuple(found for found in refined if found.shape.family != "line" or found.shape.width <= longest)


def _coarse(seen: View, shrunk: int, longest: float) -> tuple[list[Shape], Ridge | None]:
    """The best few shapes of each family, with and without the best ridge."""
    shapes, transfers = coarse(seen.at.side)
    choices, powers = ridges(seen.at.side)
    plain = seen.fits(transfers, 8)
    ridged = seen.fits(powers, 8).evidence
    allowed = np.array([shape.family != "line" or shape.width * shrunk <= longest for shape in shapes])
    passes = [plain.evidence]
    ridge = None
    if ridged.max() + RIDGE_ODDS > plain.evidence[0]:
        number = int(ridged.argmax())
        ridge = Ridge(choices[number].length * shrunk, choices[number].angle)
        passes.append(seen.fits(transfers * powers[number], 8).evidence)
    found: list[Shape] = []
    for evidence in passes:
        for family in FAMILIES:
            own = [i for i in np.argsort(-evidence) if shapes[i].family == family and allowed[i]][
                : 3 if family == "line" else 2
            ]
            found += [shapes[i].scaled(shrunk) for i in own]
    return found, ridge


def _around(shape: Shape, factors: tuple[float, ...], turn: float) -> list[Shape]:
    turns = (-turn * shape.angle_step, 0.0, turn * shape.angle_step) if shape.family == "line" else (0.0,)
    return [shape.scaled(factor, by) for factor in factors for by in turns]


def _best(shapes: list[Shape], evidence: Array, family: Family) -> Shape | None:
    own = [i for i, shape in enumerate(shapes) if shape.family == family]
    return shapes[max(own, key=lambda i: float(evidence[i]))] if own else None


def _refined(seen: View, shape: Shape, scales: list[Array], odds: Array, sharp: float) -> Found:
    """The best width and angle near a shape, their errors, and the evidence once both are integrated out.

    scales, odds  powers [n] of the ridges of the scene, and the log odds of each
    sharp         the log-evidence for no blur
    """
    range_of = math.log(2 * WIDTHS[shape.family][1] / WIDTHS[shape.family][0])
    if shape.family == "line":
        scales = [scale * softness(std, seen.at) for scale in scales for std in (0.0, *SOFT_LENSES)]
        odds = np.add.outer(odds, np.array([0.0] + [SOFT_ODDS] * len(SOFT_LENSES))).reshape(-1)
    integrated = 0.0
    if shape.family == "line":
        turns = shape.angle_step * np.linspace(-0.75, 0.75, 7)
        evidence, _, _ = _scan(seen, [shape.scaled(1, turn) for turn in turns], scales, odds)
        turn, angle_error, _ = peak(turns, evidence)
        shape = shape.scaled(1, turn)
        integrated = math.log(math.sqrt(2 * math.pi) * min(angle_error, 60.0) / 180)
    factors = np.log(WIDTH_STEP) * np.arange(-3, 4)
    for _ in range(RECENTRED):
        evidence, fits, ridge = _scan(seen, [shape.scaled(math.exp(factor)) for factor in factors], scales, odds)
        if 0 < evidence.argmax() < len(factors) - 1:
            break
        shape = shape.scaled(math.exp(factors[evidence.argmax()]))
    factor, width_error, height = peak(factors, evidence)
    integrated += math.log(math.sqrt(2 * math.pi) * min(width_error, 0.4 * range_of) / range_of)
    chosen = shape.scaled(math.exp(factor))
    scene = fits.scene(int(evidence.argmax()) + ridge * len(factors))
    return Found(chosen, height + integrated - sharp, width_error, scene)


def _scan(seen: View, shapes: list[Shape], scales: list[Array], odds: Array) -> tuple[Array, Fits, int]:
    """The evidence for shapes [M] with the ridge that fits best; all fits, by ridge; the number of that ridge."""
    transfers = np.stack([transfer(shape, seen.at) for shape in shapes])
    fits = seen.fits(np.concatenate([transfers * scale for scale in scales]))
    by_ridge = fits.evidence.reshape(len(scales), len(shapes)) + odds[:, None]
    number = int(by_ridge.max(1).argmax())
    return by_ridge[number], fits, number


def peak(places: Array, evidence: Array) -> tuple[float, float, float]:
    """Place, standard deviation and height of the peak of evidence at equal steps: a parabola around the largest.

    If it lies at the end or is flat, the error is at least half of the range searched.
    """
    step = float(places[1] - places[0])
    middle = int(np.clip(evidence.argmax(), 1, len(places) - 2))
    left, top, right = (float(value) for value in evidence[middle - 1 : middle + 2])
    bend = left - 2 * top + right
    widest = float(places[-1] - places[0]) / 2
    if bend >= -((step / widest) ** 2):
        return float(places[evidence.argmax()]), widest, float(evidence.max())
    move = float(np.clip(0.5 * (left - right) / bend, -1, 1))
    return float(places[middle]) + move * step, step / math.sqrt(-bend), max(top, float(evidence.max()))
