"""Operators that act on rows and columns separately: A X = B1 X B2^T, by the SVDs of the two small factors.

With B = U S V^T for each axis, c = V1^T X V2 and the singular values are the products s1_i s2_j. The cut
acts on the 1-D values, so that A^+ Y = B1^+ Y (B2^+)^T holds exactly.
"""

import math
from functools import cached_property

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import Eta, SpectralOperator
from leader.operators.caches import CastCache
from leader.operators.components import MeasuredAxis, SeparableComponents, measured_axis

_BLOCKS = 8


class BandedMatrix(CastCache):
    """M [m, n], built in float64. Entries below 1 % of the rounding of the largest are dropped.

    The factors of resizing and blur are exactly zero away from the diagonal, and the inverses of well-conditioned ones decay
    exponentially. Multiplying only the columns that matter, block of rows by block of rows, is several times cheaper than a
    dense product at 1024 x 1024 pixels.
    """

    def __init__(self, matrix: Tensor) -> None:
        super().__init__(matrix)
        self._spans: dict[torch.dtype, list[tuple[slice, slice]]] = {}

    def rows(self, x: Tensor) -> Tensor:
        """M x on the second last axis: [..., n, k] -> [..., m, k]."""
        matrix = self.like(x)
        return torch.cat([matrix[r, c] @ x[..., c, :] for r, c in self._blocks(matrix)], dim=-2)

    def columns(self, x: Tensor) -> Tensor:
        """x M^T, i.e. M on the last axis: [..., n] -> [..., m]."""
        matrix = self.like(x)
        return torch.cat([x[..., c] @ matrix[r, c].mT for r, c in self._blocks(matrix)], dim=-1)

    def _blocks(self, matrix: Tensor) -> list[tuple[slice, slice]]:
        """Blocks of rows, each with the columns where it is not negligible in the precision of `matrix`."""
        if matrix.dtype not in self._spans:
            size = self.constant.abs()
            present = size > 0.01 * torch.finfo(matrix.dtype).eps * size.max()
            height = -(-matrix.shape[0] // _BLOCKS)
            spans = []
            for top in range(0, matrix.shape[0], height):
                used = present[top : top + height].any(0).nonzero().flatten().tolist() or [0]
                spans.append((slice(top, min(top + height, matrix.shape[0])), slice(used[0], used[-1] + 1)))
            covered = sum((r.stop - r.start) * (c.stop - c.start) for r, c in spans)
            # Little to save: one dense product is faster than several.
            whole = [(slice(0, matrix.shape[0]), slice(0, matrix.shape[1]))]
            self._spans[matrix.dtype] = spans if covered < 0.7 * matrix.numel() else whole
        return self._spans[matrix.dtype]


DENSE_SIDE = 384
"""Up to here two dense products are faster than the blocks of `BandedMatrix`, where y is small."""
LONGEST_SIDE = 20_000
"""Longest side in pixels whose matrix is decomposed: twice as many pixels take most of an hour and 13 GB."""


def check_side(size: int) -> None:
    """Rejects, before it is built, a matrix that is too large to decompose."""
    if size > LONGEST_SIDE:
        raise LeaderError(
            f"The picture has a side of {size} pixels, and this operator needs the decomposition of a matrix over it; at most "
            f"{LONGEST_SIDE} are supported, so cut the picture into parts."
        )


class Factor:
    """A 1-D factor B [m, n] in float64; decompositions are computed on first use.

    singular  its n values (those beyond the rank are 0), descending
    kept      the same with those below rcond * largest set to 0
    """

    def __init__(self, matrix: Tensor, rcond: float) -> None:
        if matrix.ndim != 2 or not bool(torch.isfinite(matrix).all()) or not bool((matrix != 0).any()):
            raise LeaderError(f"A separable operator needs finite, non-zero matrices; found shape {list(matrix.shape)}.")
        self.rcond = rcond
        self.matrix = BandedMatrix(matrix.to("cpu", torch.float64))

    @cached_property
    def _thin(self) -> tuple[Tensor, Tensor, Tensor]:
        left, values, right = torch.linalg.svd(self.matrix.constant, full_matrices=False)
        return left, values, right.mT.contiguous()

    @property
    def rank(self) -> int:
        """The number of values that can be non-zero: min(m, n)."""
        return int(self._thin[1].shape[0])

    @cached_property
    def singular(self) -> Tensor:
        missing = self.matrix.constant.shape[1] - self.rank
        return torch.nn.functional.pad(self._thin[1], (0, missing))

    @cached_property
    def kept(self) -> Tensor:
        return torch.where(self.singular > self.rcond * self.singular[0], self.singular, 0.0)

    @cached_property
    def row_sums(self) -> tuple[Tensor, Tensor]:
        """The sums [m] of the negative and of the positive entries of every row."""
        return self.matrix.constant.clamp_max(0).sum(1), self.matrix.constant.clamp_min(0).sum(1)

    @cached_property
    def adjoint(self) -> BandedMatrix:
        """B^T [n, m]."""
        return BandedMatrix(self.matrix.constant.mT.contiguous())

    @cached_property
    def gram(self) -> BandedMatrix:
        """B^T B [n, n]."""
        return BandedMatrix(self.matrix.constant.mT @ self.matrix.constant)

    @cached_property
    def inverse(self) -> BandedMatrix:
        """B^+ [n, m], cut."""
        left, _, right = self._thin
        kept = self.kept[: self.rank]
        gain = torch.where(kept > 0, 1 / kept.clamp_min(torch.finfo(kept.dtype).tiny), 0.0)
        return BandedMatrix((right * gain) @ left.mT)

    @cached_property
    def left(self) -> CastCache:
        """U [m, rank]."""
        return CastCache(self._thin[0])

    @cached_property
    def seen(self) -> CastCache:
        """The first `rank` columns of V [n, rank]: the row space of B."""
        return CastCache(self._thin[2])

    @cached_property
    def right(self) -> CastCache:
        """V [n, n], orthogonal: `seen` completed."""
        thin = self._thin[2]
        whole, _ = torch.linalg.qr(thin, mode="complete")
        return CastCache(torch.cat([thin, whole[:, self.rank :]], dim=1))

    @cached_property
    def measured(self) -> MeasuredAxis:
        """Only the kept part."""
        return measured_axis(self.matrix.constant, self.rcond * float(self.singular[0]))


class SeparableOperator(SpectralOperator):
    """A X = B1 X B2^T per channel, B1 [h, H] and B2 [w, W]; y [B, C, h, w].

    rcond_1d  1-D singular values below rcond_1d * largest are not inverted

    >>> SeparableOperator((1, 4, 4), torch.eye(4)[:2], torch.eye(4))(torch.rand(1, 1, 4, 4)).shape
    torch.Size([1, 1, 2, 4])
    """

    task = "separable"

    def __init__(
        self, image_shape: tuple[int, int, int], B1: Tensor | Factor, B2: Tensor | Factor, rcond_1d: float = 1e-3
    ) -> None:
        self.vertical = B1 if isinstance(B1, Factor) else Factor(B1, rcond_1d)
        self.horizontal = B2 if isinstance(B2, Factor) else Factor(B2, rcond_1d)
        columns = tuple(factor.matrix.constant.shape[1] for factor in (self.vertical, self.horizontal))
        if columns != tuple(image_shape[1:]):
            raise LeaderError(
                f"The two factors act on images of {columns[0]} x {columns[1]} pixels; "
                f"expected {image_shape[1]} x {image_shape[2]}."
            )
        spectrum = torch.outer(self.vertical.singular, self.horizontal.singular)[None, None]
        kept = torch.outer(self.vertical.kept, self.horizontal.kept)[None, None]
        super().__init__(image_shape, spectrum, rcond=self.vertical.rcond, s=kept)

    @cached_property
    def measured(self) -> SeparableComponents:
        return SeparableComponents(self.vertical.measured, self.horizontal.measured)

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self.vertical.right.like(x).mT @ x @ self.horizontal.right.like(x)

    def back(self, c: Tensor) -> Tensor:
        return self.vertical.right.like(c) @ c @ self.horizontal.right.like(c).mT

    def data(self, y: Tensor) -> Tensor:
        w = self._transform_data(y)
        _, height, width = self.image_shape
        return torch.nn.functional.pad(w, (0, width - w.shape[-1], 0, height - w.shape[-2]))

    def measure(self, w: Tensor) -> Tensor:
        seen = w[..., : self.vertical.rank, : self.horizontal.rank]
        return self.vertical.left.like(w) @ seen @ self.horizontal.left.like(w).mT

    def _transform_data(self, y: Tensor) -> Tensor:
        """`data` without the zeros: [B, C, rank, rank]."""
        return self.vertical.left.like(y).mT @ y @ self.horizontal.left.like(y)

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        # The full V, cubic in the side of the image, is not needed for the measured part.
        gain = self.tikhonov(eta, r)[..., : self.vertical.rank, : self.horizontal.rank]
        return self.vertical.seen.like(r) @ (gain * self._transform_data(r)) @ self.horizontal.seen.like(r).mT

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self.horizontal.matrix.columns(self.vertical.matrix.rows(x))

    def AT(self, y: Tensor) -> Tensor:
        return self.vertical.adjoint.rows(self.horizontal.adjoint.columns(y))

    def gram(self, x: Tensor) -> Tensor:
        if math.prod(self.measurement_shape) < math.prod(self.image_shape):  # through the few numbers of y
            if max(self.image_shape[1:]) > DENSE_SIDE:
                return super().gram(x)
            rows, columns = self.vertical.matrix.like(x), self.horizontal.matrix.like(x)
            return rows.mT @ (rows @ (x @ columns.mT)) @ columns
        return self.horizontal.gram.columns(self.vertical.gram.rows(x))

    def pinv(self, y: Tensor) -> Tensor:
        return self.vertical.inverse.rows(self.horizontal.inverse.columns(y))

    def unit_range(self) -> tuple[Tensor, Tensor]:
        # A product of weights is positive where both are, or neither is.
        vertical, horizontal = self.vertical.row_sums, self.horizontal.row_sums
        high = torch.outer(vertical[1], horizontal[1]) + torch.outer(vertical[0], horizontal[0])
        low = torch.outer(vertical[1], horizontal[0]) + torch.outer(vertical[0], horizontal[1])
        return low[None, None], high[None, None]
