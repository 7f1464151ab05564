"""Patches: holes wider than what the network sees are filled with patches of the picture's own known part.

The network fills a hole well near its border; deeper inside, its estimate is a smooth guess. The guess gives the expected
colours, the picture's own patches (`leader.priors.patches`) show what such parts look like. From coarse to fine, the result of
each level is the guess of the next. The plug-in acts once, on the finished image; known pixels and narrow holes stay as the
method left them.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from leader.plugins.base import Plugin
from leader.priors.patches import SIDE, Widths, collect_patches, fill_from_border
from leader.priors.pyramid_net import enlarge, halve, pad_to_multiple
from leader.problem import Problem

LEVEL_DEPTH = 24
"""Largest depth of a hole at the coarsest level, in pixels: two or three patches."""
AROUND = 2
"""How far around a hole patches are searched, in multiples of its longer side; at least LEAST_AROUND pixels."""
LEAST_AROUND = 96
MOST_FILLED = 40_000
"""Most pixels that are filled at a level; at finer levels larger holes keep the enlarged result."""


@dataclass(frozen=True)
class Patches(Plugin):
    """Fills wide holes with patches of the picture.

    >>> Patches().name, Patches.needs_sigma
    ('patches', False)
    """

    name: ClassVar[str] = "patches"
    label: ClassVar[str] = "Patches"
    summary: ClassVar[str] = "fills wide holes with patches of the known parts of the picture"
    paper: ClassVar[str] = "this project: docs/holes.md"
    revision: ClassVar[int] = 3

    wide: Annotated[int, "[1, 10000]"] = 15
    """Holes that no square of 2 wide + 1 pixels fits into are left to the network."""
    share: Annotated[float, "(0, 1]"] = 0.5
    """Share of the patches in the result; the rest is the network's: independent errors cancel at little loss of sharpness."""
    guess: Annotated[float, "(0, inf)"] = 0.24
    """How far a patch may differ from the guess it replaces, a standard deviation in [-1, 1] units, at coarse levels."""
    fine_guess: Annotated[float, "(0, inf)"] = 0.16
    """The same at full size."""

    def conclude(self, images: Tensor, problem: Problem) -> Tensor:
        known = problem.find_known_pixels()
        if known is None:
            return images
        return torch.stack([self.fill(image, seen) for image, seen in zip(images, known.expand(len(images), -1, -1))])

    def fill(self, image: Tensor, known: Tensor) -> Tensor:
        """An image [C, H, W] in [-1, 1] with its wide holes, of what is not known [H, W] bool, filled."""
        holes = find_wide_parts(~known, self.wide)
        if not bool(holes.any()):
            return image
        places = holes.nonzero()
        low, high = places.amin(0), places.amax(0) + 1
        margin = max(LEAST_AROUND, AROUND * int((high - low).max()))
        part = tuple(
            slice(max(0, int(first) - margin), min(size, int(last) + margin))
            for first, last, size in zip(low, high, known.shape)
        )
        filled = image.clone()
        filled[:, part[0], part[1]] = self._fill_levels(image[:, part[0], part[1]], known[part], holes[part])
        return filled

    def _fill_levels(self, image: Tensor, known: Tensor, holes: Tensor) -> Tensor:
        top = _count_levels(holes)
        size = image.shape[-2:]
        guesses = [pad_to_multiple(image[None], 2**top)]
        seen = pad_to_multiple(known[None, None].to(image), 2**top)
        open_ = pad_to_multiple(holes[None, None].to(image), 2**top)
        for _ in range(top):
            guesses.append(halve(guesses[-1]))
        answer = guesses[top]
        for level in range(top, -1, -1):
            hole = F.max_pool2d(open_, 2**level)[0, 0] > 0
            if int(hole.sum()) <= MOST_FILLED:
                mixture = collect_patches(guesses[level][0], halve(seen, level)[0, 0] >= 1, mirrored=level > 0)
                if mixture is not None:
                    widths = replace(Widths(), guess=self.guess if level else self.fine_guess)
                    answer = fill_from_border(answer[0], hole, mixture, widths)[None]
            if level:
                finer = guesses[level - 1]
                answer = finer + enlarge(answer - halve(finer))
        return torch.where(holes, torch.lerp(image, answer[0, :, : size[0], : size[1]], self.share), image)


def find_wide_parts(holes: Tensor, wide: int) -> Tensor:
    """The parts of holes [H, W] bool that squares of 2 wide + 1 pixels fit into; beyond the picture everything is missing."""
    deep = 1 - F.max_pool2d((~holes)[None, None].float(), 2 * wide + 1, 1, wide)
    reached: Tensor = F.max_pool2d(deep, 2 * wide + 1, 1, wide)[0, 0] > 0
    return reached & holes


def _count_levels(holes: Tensor) -> int:
    """How often a picture with these holes [H, W] bool is halved: once, or until its deepest hole is `LEVEL_DEPTH` deep."""
    depth, flags = 0, (~holes)[None, None].float()
    while not bool(flags.all()):
        flags, depth = F.max_pool2d(flags, 3, 1, 1), depth + 1
        if depth > max(holes.shape):
            break  # nothing is known at all
    wanted = max(1, math.ceil(math.log2(max(depth, 1) / LEVEL_DEPTH)))
    return max(0, min(wanted, int(math.log2(min(holes.shape) / (2 * SIDE))))) if min(holes.shape) >= 2 * SIDE else 0
