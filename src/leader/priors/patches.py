"""The picture's own patches as a prior: a hole is filled from its border inwards with the most likely known patch.

A patch is modelled as one of the known patches of the picture, all equally likely, observed with Gaussian noise: little where
its pixels are known, more where they were filled in before, most where there is only a guess (`Widths`). The most likely patch
under this mixture is copied into the hole. The posterior mean over the same patches, with the noise level as the width of its
kernel, was tried instead: it averages different patches and leaves the smear it was meant to replace (docs/holes.md).

The order is that of Criminisi et al. 2004: patches that are mostly known and have an edge running into the hole come first.
Several patches that do not touch are filled at once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

SIDE = 9
"""Side of a patch in pixels; odd."""
MOST_PATCHES = 8192
"""Largest number of known patches to compare with, evenly spaced."""
FEWEST_PATCHES = 16
"""Fewest patches for the prior to be useful."""
EDGE = 0.002
"""Slope per pixel assumed where no edge runs into the hole, [-1, 1] units: the order then depends on what is known."""
TOGETHER = 0.5
"""Share of the highest priority that a patch needs to be filled at the same time."""


@dataclass(frozen=True)
class Widths:
    """Standard deviations of a pixel from its patch, [-1, 1] units.

    known   of pixels that are known
    filled  of pixels that were filled in by patches
    guess   of pixels that are still open, from their guess
    """

    known: float = 0.06
    filled: float = 0.12
    guess: float = 0.24


class PatchMixture:
    """Equally likely patches [N, D].

    >>> mixture = PatchMixture(torch.tensor([[0.0, 0.0], [1.0, 0.5]]))
    >>> mixture.find_likeliest(torch.tensor([[0.9, -1.0]]), torch.tensor([[0.1, 3.0]]))
    tensor([[1.0000, 0.5000]])
    """

    def __init__(self, patches: Tensor) -> None:
        self.patches = patches
        self._powers = torch.cat([patches.square(), patches], 1).T.contiguous()

    def find_likeliest(self, seen: Tensor, std: Tensor) -> Tensor:
        """The patch [B, D] of largest posterior given observations [B, D] with noise of `std` [B, D]; infinite means
        unobserved.
        """
        precision = std.square().reciprocal()
        distance = torch.cat([precision, -2 * precision * seen], 1) @ self._powers  # up to a common constant
        return self.patches[distance.argmin(1)]


def collect_patches(picture: Tensor, known: Tensor, side: int = SIDE, mirrored: bool = False) -> PatchMixture | None:
    """The patches of a picture [C, H, W] whose pixels are all known [H, W], optionally with their mirror images; None if there
    are too few.
    """
    if min(known.shape) < side:
        return None
    whole = F.max_pool2d((~known)[None, None].float(), side, 1)[0, 0] == 0  # indexed by their first row and column
    places = whole.nonzero()
    if len(places) < FEWEST_PATCHES:
        return None
    places = places[:: -(-len(places) // MOST_PATCHES)]
    rows, columns = _list_places(places, torch.arange(side, device=places.device))
    patches = picture[:, rows, columns].transpose(0, 1).flatten(1)
    if mirrored:
        other = patches.reshape(-1, picture.shape[0], side, side).flip(3).reshape(len(patches), -1)
        patches = torch.cat([patches, other])
    return PatchMixture(patches)


def fill_from_border(guess: Tensor, hole: Tensor, mixture: PatchMixture, widths: Widths, side: int = SIDE) -> Tensor:
    """The picture `guess` [C, H, W] with its hole [H, W] bool filled with patches, from the border inwards; everything outside
    the hole counts as known.
    """
    found = hole.nonzero()
    low, high = (found.amin(0) - side).clamp_min(0), found.amax(0) + side + 1
    part = (slice(int(low[0]), int(high[0])), slice(int(low[1]), int(high[1])))
    filled = guess.clone()
    filled[:, part[0], part[1]] = _fill_part(guess[:, part[0], part[1]], hole[part], mixture, widths, side)
    return filled


def _fill_part(guess: Tensor, hole: Tensor, mixture: PatchMixture, widths: Widths, side: int) -> Tensor:
    """The same for a part of a picture that contains the hole and its surroundings: every round scans all of it."""
    half, channels = side // 2, guess.shape[0]
    picture = F.pad(guess[None], (half,) * 4, mode="replicate")[0]
    missing = F.pad(hole, (half,) * 4)
    std = torch.where(missing, widths.guess, widths.known).to(guess)
    inside = F.pad(torch.ones_like(hole), (half,) * 4)
    std = torch.where(inside, std, torch.inf)
    sure = (inside & ~missing).to(guess)
    offsets = torch.arange(-half, half + 1, device=guess.device)
    while bool(missing.any()):
        centres = _find_next(picture, missing, inside, sure, side)
        rows, columns = _list_places(centres, offsets)
        seen, spread = picture[:, rows, columns].transpose(0, 1), std[rows, columns]
        found = mixture.find_likeliest(seen.flatten(1), spread.flatten(1).repeat(1, channels)).reshape(seen.shape)
        new = missing[rows, columns]
        picture[:, rows, columns] = torch.where(new[:, None], found, seen).transpose(0, 1)
        share = _mean(sure, side)[centres[:, 0], centres[:, 1]]
        sure[rows, columns] = torch.where(new, share[:, None, None], sure[rows, columns])
        std[rows, columns] = torch.where(new, widths.filled, spread)
        missing[rows, columns] = False
    return picture[:, half : half + hole.shape[0], half : half + hole.shape[1]]


def _list_places(origins: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns [B, n, n] of squares around origins [B, 2], by n offsets."""
    rows = origins[:, 0, None, None] + offsets[:, None]
    columns = origins[:, 1, None, None] + offsets[None]
    return rows.expand(-1, -1, len(offsets)), columns.expand(-1, len(offsets), -1)


def _find_next(picture: Tensor, missing: Tensor, inside: Tensor, sure: Tensor, side: int) -> Tensor:
    """Centres [B, 2] on the border of what is missing of patches that do not touch, the most urgent first."""
    border = missing & _widen(inside & ~missing, 3)
    if not bool(border.any()):
        border = missing  # nothing around it is known
    places = border.nonzero()
    priority = (_mean(sure, side) * (EDGE + _find_edges(picture, missing, inside, side)))[border]
    chosen: list[Tensor] = []
    order = priority.argsort(descending=True, stable=True)
    places, priority = places[order], priority[order]
    least = TOGETHER * float(priority[0])
    while len(places) and (not chosen or float(priority[0]) >= least):
        chosen.append(places[0])
        apart = (places - places[0]).abs().amax(1) >= side
        places, priority = places[apart], priority[apart]
    return torch.stack(chosen)


def _find_edges(picture: Tensor, missing: Tensor, inside: Tensor, side: int) -> Tensor:
    """How strongly the strongest edge in a patch around each pixel runs into the missing part [H, W]."""
    grey = picture.mean(0)
    down, right = _slopes(grey)
    certain = ~_widen(missing | ~inside, 3)
    strength = torch.where(certain, down.square() + right.square(), 0.0)
    strongest = F.max_pool2d(strength[None, None], side, 1, side // 2, return_indices=True)[1][0, 0]
    across, along = _slopes(missing.to(grey))
    length = (across.square() + along.square()).sqrt().clamp_min(1e-6)
    steep = (strength > 0).to(grey).flatten()[strongest]
    return steep * (right.flatten()[strongest] * across - down.flatten()[strongest] * along).abs() / length


def _slopes(plane: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences of [H, W], downwards and to the right; 0 at its border."""
    down, right = torch.zeros_like(plane), torch.zeros_like(plane)
    down[1:-1], right[:, 1:-1] = (plane[2:] - plane[:-2]) / 2, (plane[:, 2:] - plane[:, :-2]) / 2
    return down, right


def _mean(plane: Tensor, side: int) -> Tensor:
    return F.avg_pool2d(plane[None, None], side, 1, side // 2)[0, 0]


def _widen(flags: Tensor, side: int) -> Tensor:
    """Where any of side x side flags [H, W] is set."""
    return F.max_pool2d(flags[None, None].float(), side, 1, side // 2)[0, 0] > 0
