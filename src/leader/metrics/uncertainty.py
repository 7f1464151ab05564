"""How well a predicted uncertainty says where the errors are: coverage, calibration, sparsification, rank correlation.

`error` is truth minus estimate and `std` the predicted standard deviation of that error, both [B, C, H, W]
in the same unit (any: all are unchanged by a common scale). One number per image, [B] float64, unless
stated.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from leader.errors import LeaderError


def coverage(truth: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Share of pixels whose truth lies in [lower, upper], ends included, [B] in [0, 1].

    Calibrated intervals cover exactly their nominal level, on average over images.
    """
    _same_shape(truth, lower, upper)
    if bool((lower > upper).any()):
        raise LeaderError("Some intervals have their lower end above their upper end; swap the two.")
    return ((truth >= lower) & (truth <= upper)).double().flatten(1).mean(dim=1)


def interval_coverage(error: torch.Tensor, std: torch.Tensor, multiple: float) -> torch.Tensor:
    """Share of pixels whose error is at most `multiple` standard deviations, [B] in [0, 1]."""
    _same_shape(error, std)
    return (error.abs() <= multiple * std).double().flatten(1).mean(dim=1)


def calibration_error(error: torch.Tensor, std: torch.Tensor, multiples: Mapping[float, float]) -> torch.Tensor:
    """Mean distance of coverage from nominal level, [B] in [0, 1]; 0 if every interval covers its nominal level.

    multiples  nominal level -> standard deviations to either side, as {0.5: 0.6745, 0.9: 1.6449} for a Gaussian
    """
    if not multiples:
        raise LeaderError("A calibration error needs at least one level; give levels and their multiples.")
    off = [(interval_coverage(error, std, multiple) - level).abs() for level, multiple in multiples.items()]
    return torch.stack(off).mean(dim=0)


def sparsification_curve(error: torch.Tensor, std: torch.Tensor, steps: int = 20) -> torch.Tensor:
    """Root mean square error of the pixels left after removing those of largest `std`, [B, steps].

    Entry k has the share k / steps removed, so entry 0 is the error of the entire image. Pixels of equal `std` are treated as a
    group (each gets the mean square error of its group), so the curve does not depend on the order of pixels.
    """
    _same_shape(error, std)
    square = error.double().square().flatten(1)
    return torch.stack([_kept_error(one, key, steps) for one, key in zip(square, std.flatten(1))])


def sparsification_error(error: torch.Tensor, std: torch.Tensor, steps: int = 20) -> torch.Tensor:
    """Area between the sparsification curve by `std` and the one by the true error, over the error of the whole image, [B].

    0 when `std` ranks the pixels as the true error does; a constant `std` gives the score of knowing nothing; lower is better.
    The area is the mean over the `steps` removed shares. An image without error scores 0.
    """
    by_std = sparsification_curve(error, std, steps)
    by_error = sparsification_curve(error, error.abs(), steps)
    whole = by_error[:, :1]
    return ((by_std - by_error) / torch.where(whole > 0, whole, torch.ones_like(whole))).mean(dim=1)


def block_rank_correlation(error: torch.Tensor, std: torch.Tensor, block: int = 8) -> torch.Tensor:
    """Spearman correlation, over blocks of `block` x `block` pixels, of mean square error and mean variance, [B] in [-1, 1].

    A single pixel's error is one draw from its distribution and ranks badly even under the best prediction; a block's mean
    square is close to its variance. Channels are averaged, rows and columns beyond the last full block are left out, ties get
    their mean rank. NaN if either side is constant, since no order exists.
    """
    _same_shape(error, std)
    height, width = error.shape[-2:]
    if block < 1 or (height // block) * (width // block) < 2:
        raise LeaderError(
            f"An image of {width} x {height} pixels holds fewer than two blocks of {block} x {block}; choose a smaller block."
        )
    ranks = [_centred_ranks(_block_sums(values.double().square(), block)) for values in (error, std)]
    product = (ranks[0] * ranks[1]).sum(dim=1)
    return product / (ranks[0].square().sum(dim=1) * ranks[1].square().sum(dim=1)).sqrt()


def _kept_error(square: torch.Tensor, key: torch.Tensor, steps: int) -> torch.Tensor:
    """The curve of one image: square errors [P], sorting key [P] -> [steps]."""
    pixels = len(square)
    _, group, sizes = torch.unique(key, return_inverse=True, return_counts=True)
    group_mean = square.new_zeros(len(sizes)).index_add(0, group, square) / sizes
    kept_sums = group_mean[group.sort().values].cumsum(dim=0)  # smallest key first
    removed = torch.arange(steps, device=square.device) * pixels // steps
    kept = pixels - removed
    curve: torch.Tensor = (kept_sums[kept - 1] / kept).sqrt()
    return curve


def _block_sums(values: torch.Tensor, block: int) -> torch.Tensor:
    """Sums over channels and blocks, [B, C, H, W] -> [B, blocks]; they rank as the means do.

    Rounded to float32, the precision of the maps, so that the last bits of a sum do not break ties.
    """
    return F.avg_pool2d(values.sum(dim=1, keepdim=True), block, divisor_override=1).flatten(1).float()


def _centred_ranks(values: torch.Tensor) -> torch.Tensor:
    """Ranks of each row [B, P], ties sharing their mean rank, minus the mean."""
    rows: list[torch.Tensor] = []
    for row in values:
        _, group, sizes = torch.unique(row, return_inverse=True, return_counts=True)
        last = sizes.cumsum(dim=0).double()
        rank = last - (sizes.double() - 1.0) / 2.0
        rows.append(rank[group] - (len(row) + 1) / 2.0)
    return torch.stack(rows)


def _same_shape(first: torch.Tensor, *others: torch.Tensor) -> None:
    shapes = [list(part.shape) for part in (first, *others)]
    if first.ndim != 4 or any(shape != shapes[0] for shape in shapes):
        raise LeaderError(f"The maps have shapes {', '.join(map(str, shapes))}; give batches of one shape [B, C, H, W].")
