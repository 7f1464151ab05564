"""JPEG as a measurement: coefficients of 8 x 8 blocks of luma and of subsampled chroma, rounded to multiples of their steps.

    A = W P G      G: RGB -> YCbCr (not orthonormal), chroma averaged over some pixels, orthonormal DCT of 8 x 8 blocks
                   P: 1 for measured coefficients, 0 for those that were rounded to zero, which may be any small number
                   W: level / (noise of the row), so that the noise of every row is `level`

Rounding to a multiple of q is noise of q / sqrt(12); that of samples to 8 bits before it adds a little. The level is free: it
is set to the error that the compression caused in the picture, so that the sigma of a problem has its usual meaning.

Every coefficient of the true picture also lies in its cell, within q / 2 of the stored multiple: `confine` keeps it there,
zeros included.

Inverses: (A A^T + eta)^-1 acts on P G G^T P + eta W^-2. G G^T is the same in every unit of blocks, and the rows of luma and
chroma meet at an angle (cosines -0.45, -0.24 and 0.03), so that with unit diagonal its condition number is 3, at any picture
size and for any eta and P: conjugate gradients gain a factor of 3.7 per step, 1e-6 in about eleven. A decomposition would have
to be recomputed for every pattern of zeros, which differs between units, and a dense one of 4:2:0 has 384 rows per unit.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from leader.censoring import mean_between
from leader.errors import LeaderError
from leader.operators.base import Eta, LinearOperator
from leader.operators.caches import CastCache
from leader.operators.cg import conjugate_gradients
from leader.transforms import BLOCK, YCBCR, dct_matrix

ROUNDED = 2 / 12
"""Variance, in grey levels, of rounding to 8 bits twice: luma and chroma before the compression, the picture after it."""
SLACK = 0.5
"""Grey levels by which a coefficient may leave its cell: encoders round luma and chroma to 8 bits first."""

LEAST_SPREAD = 1e-4
"""Standard deviation below which a coefficient, of images in [-1, 1], is not known: a hundredth of a grey level."""


class Jpeg(LinearOperator):
    """Coefficients [B, N] of images [B, 1 or 3, H, W]: luma blocks row by row, 64 each, then those of Cb and of Cr.

    image_shape  whole units: H and W are multiples of 8 times the sampling
    luma         quantisation steps [8, 8], rows of vertical frequency, in grey levels of 0..255
    chroma       the same for Cb and Cr; None for grey images
    sampling     (rows, columns) of luma for one of chroma
    level        the noise level of [0, 1] images that every row is scaled to; None: that of rounding every coefficient
    measured     [N] bool, False for coefficients that were rounded to zero; None: all were measured
    doubt        [N] in grey levels, additional distance by which a coefficient may leave its cell, >= 0; None: zero

    strength     how strong the compression was: the error of [0, 1] images of rounding to the geometric mean of luma's steps

    >>> Jpeg((1, 16, 16), torch.full((8, 8), 16.0))
    Jpeg('jpeg', [1, 16, 16])
    """

    task = "jpeg"

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        luma: Tensor,
        chroma: Tensor | None = None,
        sampling: tuple[int, int] = (1, 1),
        level: float | None = None,
        measured: Tensor | None = None,
        doubt: Tensor | None = None,
    ) -> None:
        super().__init__(image_shape)
        channels, height, width = image_shape
        rows, columns = sampling
        if channels not in (1, 3) or (channels == 3) != (chroma is not None):
            raise LeaderError(f"JPEG needs a table for grey images and two for colour ones; found {channels} channels.")
        if height % (BLOCK * rows) or width % (BLOCK * columns):
            raise LeaderError(
                f"JPEG needs whole units of {BLOCK * columns} x {BLOCK * rows} pixels; found {width} x {height}: pad the image."
            )
        self.sampling = sampling
        tables = [_table(luma)] if chroma is None else [_table(luma), _table(chroma), _table(chroma)]
        sizes = [(height // BLOCK, width // BLOCK), *2 * [(height // BLOCK // rows, width // BLOCK // columns)]][: len(tables)]
        self._sizes = sizes
        self._splits = [BLOCK * BLOCK * down * across for down, across in sizes]
        steps = torch.cat([table.expand(down, across, -1, -1).reshape(-1) for table, (down, across) in zip(tables, sizes)])
        known = torch.ones(len(steps), dtype=torch.bool) if measured is None else measured
        if known.dtype != torch.bool or known.shape != steps.shape:
            raise LeaderError(
                f"JPEG needs {len(steps)} flags for measured coefficients; found {list(known.shape)} of {known.dtype}."
            )
        self.strength = float(tables[0].log().mean().exp()) / math.sqrt(12) / 255
        self.level = rounding_error(tables, channels) if level is None else float(level)
        if not (self.level > 0 and math.isfinite(self.level)):
            raise LeaderError(f"The noise level of JPEG must be positive and finite; found {self.level}.")
        noise = ((steps**2 / 12 + ROUNDED).sqrt() / 255).float()
        self._weights = CastCache(torch.where(known, self.level / noise, 0.0))
        more = torch.zeros(1) if doubt is None else doubt
        if more.shape not in ((1,), steps.shape) or not bool((more >= 0).all()):
            raise LeaderError(f"JPEG needs {len(steps)} doubts >= 0 of its coefficients; found {list(more.shape)}.")
        self._reach = CastCache(((steps / 2 + SLACK + more) * (2 / 255)).float())
        colours = torch.tensor(YCBCR if channels == 3 else [[1.0]], dtype=torch.float64)
        shares = torch.tensor([1.0, *2 * [1 / (rows * columns)]][: len(tables)], dtype=torch.float64)
        self._colours, self._mixing = CastCache(colours), CastCache(torch.linalg.inv(colours) / shares)
        whole, tall, wide = (_average_dct(count) for count in (1, rows, columns))
        self._bases = [(CastCache(down), CastCache(across)) for down, across in [(whole, whole), *2 * [(tall, wide)]]]
        self._angles: list[list[float]] = (colours @ colours.mT).tolist()
        self._diagonal = (colours.square().sum(1) * shares).tolist()
        self._meeting = CastCache(torch.kron(_cross_blocks(rows), _cross_blocks(columns)))

    def A(self, x: Tensor) -> Tensor:
        return self.weighted(self.coefficients(x))

    def AT(self, y: Tensor) -> Tensor:
        return self._spread(self.weighted(y))

    def weighted(self, c: Tensor) -> Tensor:
        """W P c: coefficients [B, N] as measurements, and their adjoint."""
        return self._weights.like(c) * c

    def pinv(self, y: Tensor) -> Tensor:
        return self.regularised_pinv(y, 0.0)  # the measured rows are independent, and far from dependent

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        weights = self._weights.like(r)
        known = weights > 0
        safe = torch.where(known, weights, 1.0)
        shift = torch.as_tensor(eta, dtype=r.dtype, device=r.device).reshape(-1, 1) / safe.square()
        diagonal = torch.cat([r.new_full((count,), value) for count, value in zip(self._splits, self._diagonal)])
        scale = torch.where(known, (diagonal + shift).rsqrt(), 0.0)

        def apply(v: Tensor) -> Tensor:
            u = scale * v
            return scale * (self._gram_of_rows(u) + shift * u)

        solution, self.residual = conjugate_gradients(apply, scale * r / safe, iterations=40)
        return self._spread(scale * solution)

    def confine(self, x: Tensor, y: Tensor, share: float | Tensor = 1.0) -> Tensor:
        """Images x [B, C, H, W] in [-1, 1] with every coefficient clamped to its cell around measurements y of such images, or
        to the inner `share` of it, one number or [B, 1].

        Luma and chroma are corrected separately, chroma equally over the pixels it was averaged over.
        """
        middle, reach, now = self._stored(y), share * self._reach.like(y), self.coefficients(x)
        return x + self.lift(torch.clamp(now, middle - reach, middle + reach) - now)

    def expect(self, x: Tensor, y: Tensor, variance: Tensor) -> Tensor:
        """Images x [B, C, H, W] in [-1, 1] with every coefficient at its mean within its cell around measurements y, if it has
        the mean that x says and the `variance` [B, N].
        """
        middle, reach, now = (item.double() for item in (self._stored(y), self._reach.like(y), self.coefficients(x)))
        spread = variance.double().sqrt().clamp_min(LEAST_SPREAD)
        between = mean_between((middle - reach - now) / spread, (middle + reach - now) / spread)
        return x + self.lift((spread * between).to(x))

    def variances(self, variance: Tensor) -> Tensor:
        """Of all coefficients [B, N], where pixels err independently by `variance` [B, C, H, W], alike within a block."""
        planes = torch.einsum("pc,bchw->bphw", self._colours.like(variance).square(), variance)
        parts = []
        for number, (down, across) in enumerate(self._sizes):
            shared = self.sampling[0] * self.sampling[1] if number else 1
            blocks = adaptive_avg_pool2d(planes[:, number], (down, across)) / shared
            parts.append(blocks.flatten(1).repeat_interleave(BLOCK * BLOCK, 1))
        return torch.cat(parts, 1)

    def enlarge_open(self, x: Tensor, luma: float, chroma: float) -> Tensor:
        """Images with coefficients that were rounded to zero enlarged by a share, that of luma or chroma: in full from the
        middle of the frequencies on, below that in proportion to the frequency.
        """
        place = torch.arange(BLOCK, dtype=x.dtype, device=x.device)
        height = ((place[:, None] + place) / BLOCK).clamp_max(1).flatten()
        gains = [
            height.repeat(count // len(height)) * (luma if not number else chroma) for number, count in enumerate(self._splits)
        ]
        now = self.coefficients(x)
        return x + self.lift(torch.where(self._weights.like(now) > 0, 0.0, torch.cat(gains) * now))

    def decoded(self, y: Tensor) -> Tensor:
        """The image that a decoder shows for measurements y: zeros where nothing was measured, chroma repeated."""
        return self.lift(self._stored(y))

    def _stored(self, y: Tensor) -> Tensor:
        """The coefficients behind measurements, 0 where nothing was measured."""
        weights = self._weights.like(y)
        return torch.where(weights > 0, y / torch.where(weights > 0, weights, 1.0), 0.0)

    def coefficients(self, x: Tensor) -> Tensor:
        """G x: all coefficients [B, N] of images, of their range."""
        self.check_image(x)
        planes = torch.einsum("pc,bchw->bphw", self._colours.like(x), x)
        parts = []
        for plane, (tall, wide), (down, across) in zip(planes.unbind(1), self._bases, self._sizes):
            narrow = plane.reshape(len(x), down, -1, across, wide.constant.shape[1]) @ wide.like(x).mT
            parts.append((tall.like(x) @ narrow.transpose(2, 3)).reshape(len(x), -1))
        return torch.cat(parts, 1)

    def lift(self, c: Tensor) -> Tensor:
        """Images whose coefficients are c [B, N], chroma constant over the pixels it was averaged over."""
        return torch.einsum("cp,bphw->bchw", self._mixing.like(c), self._planes(c))

    def _spread(self, c: Tensor) -> Tensor:
        """G^T c."""
        return torch.einsum("pc,bphw->bchw", self._colours.like(c), self._planes(c))

    def _planes(self, c: Tensor) -> Tensor:
        """Luma and chroma [B, P, H, W] from coefficients, chroma shared out over the pixels it was averaged over."""
        planes = []
        for part, (tall, wide), (down, across) in zip(torch.split(c, self._splits, 1), self._bases, self._sizes):
            blocks = part.reshape(len(c), down, across, BLOCK, BLOCK)
            high = (tall.like(c).mT @ blocks).transpose(2, 3) @ wide.like(c)
            planes.append(high.reshape(len(c), *self.image_shape[1:]))
        return torch.stack(planes, 1)

    def _gram_of_rows(self, c: Tensor) -> Tensor:
        """G G^T c, without a way through pixels: luma and chroma meet within a unit of blocks, at the angle of their rows."""
        luma, *chroma = torch.split(c, self._splits, 1)
        if not chroma:
            return self._angles[0][0] * luma
        (rows, columns), (down, across), meeting = self.sampling, self._sizes[1], self._meeting.like(c)
        units = luma.reshape(-1, down, rows, across, columns, BLOCK, BLOCK).permute(0, 1, 3, 2, 5, 4, 6)
        seen = (units.reshape(-1, meeting.shape[1]) @ meeting.mT).reshape(len(c), -1)
        (own, *others), share = self._angles[0], 1 / (rows * columns)
        back = (others[0] * chroma[0] + others[1] * chroma[1]).reshape(-1, len(meeting)) @ meeting
        back = back.reshape(-1, down, across, rows, BLOCK, columns, BLOCK).permute(0, 1, 3, 2, 5, 4, 6)
        found = [own * luma + back.reshape(luma.shape)]
        for first, *rest in self._angles[1:]:
            found.append(first * seen + share * (rest[0] * chroma[0] + rest[1] * chroma[1]))
        return torch.cat(found, 1)

    def reached(self, y: Tensor) -> Tensor:
        return self._weights.like(y) > 0

    def unit_range(self) -> tuple[Tensor, Tensor]:
        basis, colours = self._bases[0][0].constant, self._colours.constant
        waves = torch.einsum("ki,lj->klij", basis, basis).reshape(BLOCK * BLOCK, -1)
        up, down = waves.clamp_min(0).sum(1), waves.clamp_max(0).sum(1)
        lows, highs = [], []
        for row, (tall, wide) in zip(colours, self._sizes):
            plus, minus = float(row.clamp_min(0).sum()), float(row.clamp_max(0).sum())
            lows.append((plus * down + minus * up).repeat(tall * wide))
            highs.append((plus * up + minus * down).repeat(tall * wide))
        weights = self._weights.constant.double()
        return weights * torch.cat(lows), weights * torch.cat(highs)


def _average_dct(count: int) -> Tensor:
    """The DCT of a block of means of `count` neighbours, [8, 8 count]."""
    return torch.tensor(dct_matrix(BLOCK)).repeat_interleave(count, 1) / count


def _cross_blocks(count: int) -> Tensor:
    """The DCT of a block of means of `count` neighbours from the DCTs of the blocks that they lie in, [8, 8 count]."""
    return _average_dct(count) @ torch.kron(torch.eye(count), _average_dct(1)).mT


def rounding_error(tables: list[Tensor], channels: int) -> float:
    """Root mean square error of [0, 1] images where every coefficient is rounded to a multiple of its step."""
    mixing = torch.linalg.inv(torch.tensor(YCBCR)) if channels == 3 else torch.ones(1, 1)
    gains = mixing.square().mean(0).tolist()
    total = sum(gain * float((table**2).mean()) / 12 for gain, table in zip(gains, tables))
    return math.sqrt(total + 1 / 12) / 255


def _table(steps: Tensor) -> Tensor:
    table = torch.as_tensor(steps, dtype=torch.float64)
    if table.shape != (BLOCK, BLOCK) or not bool((torch.isfinite(table) & (table > 0)).all()):
        raise LeaderError(f"A quantisation table holds 8 x 8 positive steps; found {list(table.shape)}.")
    return table
