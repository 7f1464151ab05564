"""Distances between two sets of pictures, by their Inception features: FID and KID.

Unlike the other metrics these judge a set, not a picture, and need no pairs. Features:
`inception_features`, or any [N, D].
"""

from typing import NamedTuple

import torch

from leader.errors import LeaderError

FID_SMALLEST_SET = 1000
"""The number used in papers; fewer are rejected."""
FID_FULL_RANK = 2048
"""The number of features: with fewer samples the covariance does not have full rank."""


class Kid(NamedTuple):
    """Mean of the subsets' unbiased estimates (may be below 0) and their standard deviation over subsets (N
    - 1).
    """

    mean: float
    std: float


def fid(features: torch.Tensor, reference: torch.Tensor) -> float:
    """Fréchet inception distance between two sets of features [N, D] and [M, D]: 0 for equal Gaussians, lower is better.

    Rejects fewer than 1,000 samples per set. FID is biased upwards, by an amount that falls as 1 / N, and below 2,048 samples
    the covariance of 2,048 features does not have full rank: compare only sets of equal size.
    """
    _check(features, reference)
    smaller = min(len(features), len(reference))
    if smaller < FID_SMALLEST_SET:
        raise LeaderError(
            f"FID needs at least {FID_SMALLEST_SET:,} samples in each set and one has {smaller:,}; "
            "use KID, which is unbiased for small sets, or add samples."
        )
    return frechet_distance(*_moments(features), *_moments(reference))


def frechet_distance(mean_a: torch.Tensor, cov_a: torch.Tensor, mean_b: torch.Tensor, cov_b: torch.Tensor) -> float:
    """|m_a - m_b|^2 + tr(C_a + C_b - 2 (C_a C_b)^(1/2)) of two Gaussians: means [D], covariances [D, D]; float64 inside.

    The eigenvalues of C_a C_b are those of the symmetric C_a^(1/2) C_b C_a^(1/2), so no general matrix root
    is needed; values below zero are rounding and count as 0.
    """
    mean_a, cov_a, mean_b, cov_b = (part.double() for part in (mean_a, cov_a, mean_b, cov_b))
    values, vectors = torch.linalg.eigh(cov_a)
    root = vectors * values.clamp(min=0.0).sqrt() @ vectors.T
    cross = torch.linalg.eigvalsh(root @ cov_b @ root).clamp(min=0.0).sqrt().sum()
    distance = (mean_a - mean_b).square().sum() + cov_a.trace() + cov_b.trace() - 2.0 * cross
    return float(distance)


def frechet_of_samples(features: torch.Tensor, reference: torch.Tensor) -> float:
    """The Fréchet distance of two sets [N, D] and [M, D] of any size, from their samples: what `frechet_distance` says of their
    moments, at the cost of N x M.

    With a, b the centred sets over sqrt(N - 1), sqrt(M - 1) the covariances are a^T a and b^T b, and the eigenvalues of their
    product are the squared singular values of a b^T. With few samples it is far too large: compare only sets of equal size.
    """
    _check(features, reference)
    if min(len(features), len(reference)) < 2:
        raise LeaderError(f"A Fréchet distance needs two samples in each set; found {len(features)} and {len(reference)}.")
    x, y = features.double(), reference.double()
    a, b = ((part - part.mean(0)) / (len(part) - 1) ** 0.5 for part in (x, y))
    cross = torch.linalg.svdvals(a @ b.T).sum()
    return float((x.mean(0) - y.mean(0)).square().sum() + a.square().sum() + b.square().sum() - 2.0 * cross)


def kid(features: torch.Tensor, reference: torch.Tensor, subsets: int = 100, subset_size: int = 1000, seed: int = 0) -> Kid:
    """Kernel inception distance (Binkowski et al. 2018): unbiased squared MMD under the kernel (x . y / D + 1)^3.

    Averaged over `subsets` random subsets of `subset_size` samples drawn without replacement from each set;
    a set smaller than that lowers the size for both. Lower is better; values are not multiplied by 1,000.
    """
    _check(features, reference)
    size = min(subset_size, len(features), len(reference))
    if size < 2 or subsets < 1:
        raise LeaderError(
            f"KID was asked for {subsets} subsets of {size} samples; it needs at least 1 subset of at least 2 samples."
        )
    generator = torch.Generator().manual_seed(seed)
    estimates = torch.stack(
        [squared_mmd(_subset(features, size, generator), _subset(reference, size, generator)) for _ in range(subsets)]
    )
    return Kid(float(estimates.mean()), float(estimates.std()) if subsets > 1 else 0.0)


def squared_mmd(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Unbiased estimate of the squared maximum mean discrepancy of samples [N, D] and [M, D], N, M > 1; scalar float64."""
    x, y = x.double(), y.double()
    return _mean_off_diagonal(_kernel(x, x)) + _mean_off_diagonal(_kernel(y, y)) - 2.0 * _kernel(x, y).mean()


def _kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x @ y.T / x.shape[1] + 1.0) ** 3


def _mean_off_diagonal(kernel: torch.Tensor) -> torch.Tensor:
    count = len(kernel)
    return (kernel.sum() - kernel.diagonal().sum()) / (count * (count - 1))


def _subset(features: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    return features[torch.randperm(len(features), generator=generator)[:size].to(features.device)]


def _moments(features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean [D] and covariance [D, D] (divided by N - 1) in float64."""
    features = features.double()
    return features.mean(dim=0), torch.cov(features.T)


def _check(features: torch.Tensor, reference: torch.Tensor) -> None:
    if features.ndim != 2 or reference.ndim != 2 or features.shape[1] != reference.shape[1]:
        raise LeaderError(
            f"The feature sets have shapes {list(features.shape)} and {list(reference.shape)}; "
            "give [N, D] and [M, D] with one D, for example from inception_features."
        )
