"""What y leaves open at a late time: the diagonal of P = Sigma - Sigma A^T (A Sigma A^T + sigma^2)^{-1} A Sigma.

Sigma is Cov[x0 | x_t] with the prior's spectrum (`error_covariance`), in the metric of which paths take their data step. With
z = +-1 and D = diag Sigma, the mean of z * (D^{-1/2} P D^{-1/2} z) is the share of every pixel's variance that remains. The
share varies slowly, but for pixels that A hands over one by one: so a few probes are enough, each averaged over a window of
pixels of one kind. With Sigma in the place of P the share is 1: by how much a probe misses that, it misses the other, too, and
so much is taken out. A few conjugate gradients solve each probe; what they have not found yet counts as remaining.
"""

import torch
from torch import Tensor

from leader.operators.base import LinearOperator
from leader.trust.windows import sum_windows
from leader.uncertainty.covariance import FLOOR, Covariance, share_out

ITERATIONS = 4
"""Of a probe's conjugate gradients."""
SIDE = 9
"""Of the windows over which the share is averaged, in pixels."""
VISIBLE = 1e-3
"""A solve ends where its error is this share of a standard deviation, root mean square."""
SMALLEST = 1e-8
"""A variance of 0 has no share to remain."""


def measure_remaining(
    covariance: Covariance,
    spread: Tensor,
    operator: LinearOperator,
    noise: float,
    known: Tensor | None,
    probes: Tensor,
    side: int = SIDE,
    iterations: int = ITERATIONS,
    visible: float = VISIBLE,
) -> Tensor:
    """An estimate of diag P, channels averaged, [H, W].

    covariance  Sigma of one image, whose diagonal is about `spread` [H, W]
    noise       standard deviation of y's noise, [-1, 1] units; `FLOOR` at least
    known       what A measures pixel by pixel [H, W] bool; None for others
    probes      random signs [K, C, H, W]
    side        of the windows, in pixels
    """
    deviation = spread.clamp_min(SMALLEST).sqrt()
    variance = max(noise, FLOOR) ** 2
    before, after = torch.zeros_like(spread), torch.zeros_like(spread)
    for z in probes[:, None]:
        whole = covariance.product(z / deviation)
        told = share_out(covariance, operator, variance, operator.A(whole), iterations, visible)
        before += (z * whole / deviation)[0].mean(0) / len(probes)
        after += (z * (whole - told) / deviation)[0].mean(0) / len(probes)
    one, left = (_average_by_kind(share, known, side) for share in (before, after))
    return spread * (left + left.clamp(0, 1) * (1 - one)).clamp(0, 1)


def measure_remaining_white(
    spread: Tensor, operator: LinearOperator, noise: float, known: Tensor | None, probe: Tensor, side: int = SIDE
) -> Tensor:
    """The same for Sigma = c I with the mean c of `spread`, by the operator's own inverse: a fraction of the memory of a solve.

    probe  random signs [1, C, H, W]
    """
    eta = max(noise, FLOOR) ** 2 / max(float(spread.mean()), SMALLEST)
    told = (probe * operator.regularised_pinv(operator.A(probe), eta))[0].mean(0)
    return spread * (1 - _average_by_kind(told, known, side)).clamp(0, 1)


def _average_by_kind(values: Tensor, known: Tensor | None, side: int) -> Tensor:
    """The mean of `values` [H, W] over a window, of known and of other pixels [H, W] bool apart."""
    kinds = torch.ones_like(values)[None] if known is None else torch.stack([known, ~known]).to(values)
    total, count = (sum_windows(maps, side) for maps in (kinds * values, kinds))
    return (kinds * total / count.clamp_min(1)).sum(0)
