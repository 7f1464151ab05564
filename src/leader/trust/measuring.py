"""The numbers of a finished run on which the verdict is based: a few sums, and a network pass if `look` is set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from leader.noise import SeededNoise
from leader.operators.whitened import find_physical
from leader.priors.base import Prior
from leader.problem import Problem
from leader.result import to_unit_range
from leader.trust import maps, plausibility, residual
from leader.trust.limits import FAR, SUSPECT, TAKES_DETAIL

if TYPE_CHECKING:
    from leader.forensics.blur.width import Width

Numbers = dict[str, float | None]
Crop = Callable[[Tensor], Tensor]
LEAST_SIDE = 64
"""Pixels a side of the parts that the network looks at: it sees less beyond their edges."""


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What is known about a finished run of one image.

    images     [1, C, H, W] in [-1, 1], the whole frame of the problem, not clamped
    given      [C, h, w] in [0, 1]: the degraded picture
    seed       with the image's id, determines the noise of the look
    crop       cuts the picture out of its frame, if that is larger
    look       evaluate the network once more, where A takes detail
    noise      of the given picture by its own estimate, for [0, 1] images; None if A is not the identity
    width      the given picture's evidence on the width of a blur's kernel; None if not examined
    estimated  whether sigma was estimated from the given picture, so that it may include the error of a compression
    misread    the probability that a finding about the picture is wrong and no noise level makes up for it
    error      the error map, standard deviations of the frame [1, C, H, W] in [-1, 1] units; None if there is none
    """

    problem: Problem
    images: Tensor
    prior: Prior
    given: Tensor
    seed: int = 0
    image: int = 0
    crop: Crop | None = None
    look: bool = False
    noise: float | None = None
    width: Width | None = None
    estimated: bool = False
    misread: float = 0.0
    error: Tensor | None = None

    def cut(self, whole: Tensor) -> Tensor:
        """The picture's part of the frame."""
        return whole if self.crop is None else self.crop(whole)


@torch.no_grad()
def measure(facts: RunFacts) -> Numbers:
    """The numbers of a finished run, for [0, 1] images."""
    inside = facts.images.clamp(-1, 1)
    facts = replace(facts, problem=facts.problem.draw_censored(inside, facts.seed))
    problem, width = facts.problem, facts.width
    shown = to_unit_range(facts.cut(inside))[0].cpu()
    before = plausibility.enlarge_bicubically(facts.given.cpu().float(), (int(shown.shape[-2]), int(shown.shape[-1])))
    open_ = problem.find_known_pixels()
    known = None if open_ is None else open_[0].cpu()
    removed = 1.0
    if known is None:
        removed = plausibility.find_removed_detail(find_physical(problem.operator), problem.image_shape)
    change = None
    if facts.look and removed > TAKES_DETAIL:  # elsewhere noise may be the given picture's own, and nobody reads it
        change = _look(facts, inside)
    return {
        **_measure_residual(facts, inside, known),
        "noise": facts.noise,
        "too_wide": None if width is None else width.odds,
        "sharp": None if width is None else width.sharp,
        "compressed": float(width is not None and width.odds is None),
        "misread": facts.misread,
        "unsure": None
        if facts.error is None
        else maps.find_unsure_share((facts.cut(facts.error)[0].mean(0) / 2).cpu().numpy()),
        "estimated": float(facts.estimated),
        "excess": plausibility.root_mean_square(facts.cut(facts.images) / 2 - facts.cut(inside) / 2),
        "change": change,
        "detail": plausibility.measure_detail(shown),
        "given_detail": plausibility.measure_detail(before, known),
        "removed": removed,
        **{f"band{number}": value for number, value in enumerate(plausibility.measure_bands(shown))},
        **({f"given_band{n}": value for n, value in enumerate(plausibility.measure_bands(before))} if known is None else {}),
    }


def _look(facts: RunFacts, x: Tensor) -> float:
    """What the network would change of x [1, C, H, W], root mean square: of a quarter of it, of all where that is suspect."""
    noise = SeededNoise(facts.seed)([facts.image], [0], "check", x.shape[1:])
    parts = [plausibility.cut_quarter(facts.cut(whole)) for whole in (x, noise)]
    if facts.prior.size is None and min(parts[0].shape[-2:]) >= LEAST_SIDE:
        change = plausibility.root_mean_square(plausibility.find_change(facts.prior, *parts))
        if change <= SUSPECT:
            return change
    return plausibility.root_mean_square(facts.cut(plausibility.find_change(facts.prior, x, noise)))


def _measure_residual(facts: RunFacts, x: Tensor, known: Tensor | None) -> Numbers:
    problem = facts.problem
    left, y = problem.residual(x) / 2, problem.y
    reached = problem.operator.reached(y).expand_as(y)
    is_picture = y.ndim == 4
    if is_picture:
        left, reached = facts.cut(left), facts.cut(reached)
    return {
        "sigma": float(problem.sigma[0]) / 2,
        "residual": residual.measure_level(left, reached),
        "correlation": residual.correlate_neighbours(left[0], reached[0]) if is_picture else None,
        "blockiness": residual.measure_blockiness(facts.given) if is_picture and bool(reached.all()) else 1.0,
        "invented": 0.0 if known is None else residual.measure_far_share(reached[0]),
        "deep": 0.0 if known is None else residual.measure_far_share(reached[0], FAR),
        "uncoloured": 1 - y.shape[1] / x.shape[1] if y.shape[2:] == x.shape[2:] else 0.0,
        "enlarged": x[0, 0].numel() / y[0, 0].numel() if is_picture else 1.0,
    }
