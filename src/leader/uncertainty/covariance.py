"""A covariance, not a variance: Cov[x0 | x_t] between pixels, and what a measurement y leaves of it.

S = L L^T is kept by its root L. For networks S = D^(1/2) C_t D^(1/2), with D = diag Sigma_t from the estimator and C_t the
stationary correlation of `leader.priors.spectrum`; for Gaussian priors it is exact. Given y = A x + sigma z it becomes

    P = S - S A^T (A S A^T + sigma^2)^{-1} A S = L M^{-1} L^T,   M = I + L^T A^T A L / sigma^2,

whose products are conjugate-gradient solves in whitened coordinates: the identity in M keeps them well posed whatever A is.
A stationary S has the DCT for its white coordinates, where most cameras are nearly diagonal too: what A^T A does to each
frequency, measured by two probes, makes a preconditioner that needs a tenth of the iterations.
Data without noise get a floor (`FLOOR`): below it the model of S, not the data, is what is wrong.

Related: Analytic-DPM and TMPD (covariances of x0 for sampling), Peng et al. 2024 and MMPS (posterior covariances in
guidance), Free Hunch (covariances across times).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from leader.operators.base import LinearOperator
from leader.operators.cg import conjugate_gradients
from leader.operators.pointwise import DiagonalOperator
from leader.priors.base import Prior
from leader.priors.gaussian import GaussianPrior
from leader.priors.spectrum import Spectrum
from leader.uncertainty.dct import SHORT, dct2, fold, from_waves, idct2, pair_up, thin_dct2, thin_idct2, to_waves, unfold
from leader.uncertainty.tables import TableCache

Map = Callable[[Tensor], Tensor]
Easing = Callable[[Tensor], Map]
"""From what A^T A / sigma^2 does to every frequency, [H, W] >= 0, to (I + L^T diag L)^(-1/2) in white coordinates."""

FLOOR = 0.01
"""Smallest noise level assumed of a measurement, [-1, 1] units: about one of 255 grey levels."""
ITERATIONS = 200
TOLERANCE = 1e-4
"""Of a solve; the spectrum of P, which only chooses a time, is content with a hundred times as much."""
LARGEST_TILE = 512
"""Pixels a side that are correlated with each other; errors are hardly correlated over a tenth of that."""
PROBES = 2
"""Of the gain of A^T A by frequency, smoothed over a window of WINDOW x WINDOW frequencies and all channels."""
WINDOW = 5
_TABLES = TableCache(256 * 2**20)
"""Correlations by spectrum, time and size: 160 times of 256 px, or 40 of the largest tile."""
LOOK = 4
"""Iterations of `share_out` between two looks at its error that wait for a GPU."""
ALONE = 8.0
"""An eigenvalue found exactly with less weight than this is a single one: (z v)^2 exceeds 8 once in 200 draws."""


@dataclass(frozen=True)
class Covariance:
    """S = L L^T over images [B, C, H, W]; `root` is L, from white coordinates, `transposed` L^T, to them.

    White coordinates have a shape of their own: what `transposed` returns.

    easing  the preconditioner of solves, for covariances that are diagonal in the DCT up to channels
    fit     white coordinates from standard normal ones in the shape of the images, where the two shapes differ
    folded  the same for pixels in the order of `dct.fold`, where that is faster
    parts   D^(1/2), C, and the order in which C wants pixels, there and back, of an S = D^(1/2) C D^(1/2)
    """

    root: Map
    transposed: Map
    easing: Easing | None = None
    fit: Map | None = None
    folded: Covariance | None = None
    parts: tuple[Tensor, Covariance, Map, Map] | None = None

    def product(self, v: Tensor) -> Tensor:
        """S v."""
        return self.root(self.transposed(v))

    def draw(self, white: Tensor) -> Tensor:
        """A draw of N(0, S) from standard normal `white` [B, C, H, W]."""
        return self.root(white if self.fit is None else self.fit(white))

    def given(self, operator: LinearOperator, sigma: float) -> Posterior:
        """What remains when y = A x + sigma z is known, sigma in [-1, 1] units."""
        return Posterior(self, operator, max(sigma, FLOOR))


@dataclass(frozen=True)
class Posterior:
    """P = L M^{-1} L^T: the covariance of x0 given y."""

    prior: Covariance
    operator: LinearOperator
    sigma: float

    def product(self, v: Tensor, tolerance: float = TOLERANCE) -> Tensor:
        """P v, one solve."""
        return self.prior.root(self._solve(self.prior.transposed(v), tolerance))

    def mean(self, y: Tensor, before: Tensor) -> Tensor:
        """E[x0 | y] where x0 ~ N(before, S): before + P A^T (y - A before) / sigma^2."""
        misfit = self.operator.AT(y - self.operator.A(before)) / self.sigma**2
        return before + self.product(misfit, TOLERANCE / 10)

    def draw(self, y: Tensor, before: Tensor, white: Tensor, noise: Tensor) -> Tensor:
        """A draw of N(E[x0 | y], P): an unconditional one moved to where its own noisy measurement agrees with y.

        white  standard normal like x0; noise: standard normal like y
        """
        free = before + self.prior.draw(white)
        return self.mean(y - self.sigma * noise, free)

    def diagonal(self, probes: Tensor) -> Tensor:
        """An unbiased estimate of diag P: the mean of z * (P z) over probes z = +-1, [K, C, H, W] -> [1, C, H, W]."""
        return (probes * self.product(probes)).mean(0, keepdim=True)

    def eigenvalues(self, probe: Tensor, steps: int = 8) -> tuple[Tensor, Tensor]:
        """Nodes and weights, float64 [steps], with sum w f(p) close to tr f(P) for smooth f, from one probe z = +-1.

        The bulk of the spectrum averages over all pixels, so that one probe is enough for it; see `lanczos` for the rest.
        """
        return lanczos(lambda v: self.product(v, 100 * TOLERANCE), probe, steps)

    def _solve(self, right: Tensor, tolerance: float) -> Tensor:
        """M^{-1} right, as E (E M E)^{-1} E right with E close to M^(-1/2)."""
        ease, whitened = self._ease(right), _whitened(self.prior, self.operator, self.sigma**2)
        return ease(conjugate_gradients(lambda v: ease(whitened(ease(v))), ease(right), tolerance, ITERATIONS)[0])

    def _ease(self, like: Tensor) -> Map:
        if self.prior.easing is None:
            return lambda v: v
        if not self._eased:
            self._eased.append(self.prior.easing(dct_gain(self.operator, like) / self.sigma**2))
        return self._eased[0]

    @cached_property
    def _eased(self) -> list[Map]:
        """The preconditioner once it is made."""
        return []


def _whitened(covariance: Covariance, operator: LinearOperator, variance: float) -> Map:
    """M = I + L^T A^T A L / variance."""
    return lambda v: v + covariance.transposed(operator.AT(operator.A(covariance.root(v)))) / variance


def share_out(
    covariance: Covariance, operator: LinearOperator, variance: float | Tensor, r: Tensor, iterations: int, visible: float
) -> Tensor:
    """S A^T (A S A^T + variance)^{-1} r of one image, by a few conjugate gradients.

    The answer is L v with M v = L^T A^T r / variance. In white coordinates conjugate gradients find first what S says is
    largest, so that a handful does most of the work; a preconditioner that treats all frequencies alike takes that order
    away, and the last step's solution is no guess of this one's. L v is kept on the way, so that the answer costs no further
    product. Numbers stay on their device: a solve that has ended takes steps of 0 until it is looked at.

    visible  the error of v at which the solve ends, root mean square: v is in standard deviations of S
    """
    if covariance.parts is None or not isinstance(operator, DiagonalOperator):
        return _solve(covariance, operator.A, operator.gram, operator.AT(r), variance, iterations, visible)
    # A mask after D^(1/2) is a mask too, and does not mind in which order pixels come: four passes fewer an iteration.
    deviation, correlation, turn, turn_back = covariance.parts
    weights = turn(deviation * operator.cast(operator.spectrum, r))
    power = weights.square()
    change = _solve(correlation, weights.mul, power.mul, weights * turn(r), variance, iterations, visible)
    return turn_back(change) * deviation


def _solve(
    covariance: Covariance, forward: Map, gram: Map, back: Tensor, variance: float | Tensor, iterations: int, visible: float
) -> Tensor:
    """`share_out` of a camera by its products A and A^T A; back: A^T r."""
    residual = covariance.transposed(back).div_(variance)
    direction, energy = residual.clone(), _dot(residual, residual)
    length = energy
    limit = visible**2 * residual.numel()
    change = torch.zeros_like(back)
    looks = _choose_looks(iterations, back.device)
    for iteration in range(iterations):
        if iteration in looks and bool(energy <= limit):
            break
        along = covariance.root(direction)
        if iteration + 1 == iterations:
            seen = forward(along)
            bend = length + _dot(seen, seen) / variance
            change.addcmul_(along, torch.where(energy > limit, energy / bend, 0.0))
            break
        image = covariance.transposed(gram(along))
        bend = length + _dot(direction, image) / variance
        step = torch.where(energy > limit, energy / bend, 0.0)
        change.addcmul_(along, step)
        residual.addcmul_(direction, -step).addcmul_(image, -step / variance)
        fresh = _dot(residual, residual)
        bent = fresh / energy.clamp_min(torch.finfo(back.dtype).tiny)
        torch.addcmul(residual, direction, bent, out=direction)
        length = fresh + bent**2 * length  # of the direction: residuals are orthogonal to those before
        energy = fresh
    return change


def _choose_looks(iterations: int, device: torch.device) -> range:
    """The iterations before which a solve looks at its error: on the CPU all, elsewhere every LOOK, since a look waits."""
    return range(iterations) if device.type == "cpu" else range(LOOK, iterations, LOOK)


def _dot(v: Tensor, w: Tensor) -> Tensor:
    return torch.dot(v.flatten(), w.flatten())


def lanczos(apply: Map, probe: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights of the spectral density of a symmetric `apply` >= 0, seen from `probe`.

    Gauss quadrature gives an eigenvalue the weight (z v)^2, which is right on average only. For the few large ones that
    stand alone (a hole's brightness) that is a lottery; but those Lanczos finds exactly, and each counts once.
    """
    basis = [probe.double() / probe.double().norm()]
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(steps):
        image = apply(basis[-1].to(probe)).double()
        diagonal.append(float((image * basis[-1]).sum()))
        for direction in (*basis, *basis):  # all, twice: in float32 the three-term recurrence loses orthogonality
            image = image - (image * direction).sum() * direction
        beside.append(float(image.norm()))
        if beside[-1] <= 1e-6 * max(diagonal):
            break
        basis.append(image / beside[-1])
    off = torch.tensor(beside[:-1], dtype=torch.float64)
    matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64)) + torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(matrix)
    weights = vectors[0] ** 2 * float(probe.double().square().sum())
    alone = (beside[-1] * vectors[-1].abs() < 0.01 * values) & (weights < ALONE)
    return values.clamp_min(0), torch.where(alone, torch.ones_like(weights), weights)


def dct_gain(operator: LinearOperator, like: Tensor) -> Tensor:
    """The diagonal of A^T A in the DCT, smoothed over neighbouring frequencies, [H, W]: two probes tell it well enough."""
    height, width = like.shape[-2:]
    shape, generator = (1, *like.shape[1:]), torch.Generator().manual_seed(0)
    total = torch.zeros(1, 1, height, width, dtype=like.dtype, device=like.device)
    for _ in range(PROBES):
        signs = torch.randint(0, 2, shape, generator=generator).to(like) * 2 - 1
        total += (signs * dct2(operator.AT(operator.A(idct2(signs))))).mean(1, keepdim=True) / PROBES
    smooth = avg_pool2d(total, WINDOW, 1, WINDOW // 2, count_include_pad=False)
    return smooth[0, 0].clamp_min(0)


def _correlation(spectrum: Spectrum, abar: float, height: int, width: int, like: Tensor, share: float) -> Covariance:
    """C_t of a spectrum, of the low frequencies that hold a `share` of its variance. Its table is kept: a run asks for it at
    every step, and the next run at the same times.
    """

    def make() -> Tensor:
        matrices = spectrum.at(abar, height, width, share)
        roots = _lower_roots(matrices.permute(2, 3, 0, 1))
        planes = roots[tuple(torch.tril_indices(len(roots), len(roots)))]
        if max(planes.shape[-2:]) > SHORT and matrices.shape[:2] == (height, width):
            planes = torch.stack(pair_up(planes), -1)
        else:
            planes = planes.mT  # thin products leave columns first
        return planes.to(like).contiguous()

    table = _TABLES.find((spectrum, abar, height, width, like.dtype, like.device, share), make)
    if table.ndim == 4:

        def waves(folded: bool) -> Covariance:
            return Covariance(
                lambda w: from_waves(_mix_down(table, w), width, folded),
                lambda v: _mix_up(table, to_waves(v, folded)),
                fit=to_waves,
                folded=None if folded else waves(True),
            )

        return waves(False)
    turned = table.mT
    rows, columns = int(turned.shape[-2]), int(turned.shape[-1])

    def root(w: Tensor) -> Tensor:
        mixed = _mix_down(turned, w.permute(1, 2, 3, 0)).permute(3, 0, 1, 2)
        return thin_idct2(mixed.flatten(1, 2), height, width).view(*w.shape[1:3], height, width)

    def transposed(v: Tensor) -> Tensor:
        thin = thin_dct2(v.flatten(0, 1), rows, columns).view(columns, *v.shape[:2], rows)
        _mix_up(turned, thin.permute(1, 2, 3, 0))
        return thin

    return Covariance(root, transposed, fit=lambda white: white[..., :rows, :columns].permute(3, 0, 1, 2).contiguous())


def _mix_down(table: Tensor, c: Tensor) -> Tensor:
    """L c of coefficients [B, C, ...], L lower triangular in channels by its planes [C (C + 1) / 2, ...], row by row."""
    mixed, plane = torch.empty_like(c), 0
    for row in range(c.shape[1]):
        torch.mul(table[plane], c[:, 0], out=mixed[:, row])
        for column in range(1, row + 1):
            mixed[:, row].addcmul_(table[plane + column], c[:, column])
        plane += row + 1
    return mixed


def _mix_up(table: Tensor, c: Tensor) -> Tensor:
    """L^T c, in the place of c."""
    for column in range(c.shape[1]):
        c[:, column].mul_(table[column * (column + 3) // 2])
        for row in range(column + 1, c.shape[1]):
            c[:, column].addcmul_(table[row * (row + 1) // 2 + column], c[:, row])
    return c


def _lower_roots(matrices: Tensor) -> Tensor:
    """L with L L^T = S for S [C, C, ...] >= 0, L lower triangular: a few products of planes, where eigenvectors take a
    decomposition of every matrix. Any root gives the same products with S.
    """
    roots = torch.zeros_like(matrices)
    for k in range(len(matrices)):
        left = matrices[k:, k] - (roots[k:, :k] * roots[k, :k]).sum(1)
        pivot = left[0].clamp_min(0).sqrt()
        roots[k:, k] = torch.where(pivot > 0, left / pivot, 0.0)
    return roots


def tile_covariance(tile: Covariance, size: tuple[int, int], side: tuple[int, int], shift: tuple[int, int]) -> Covariance:
    """A picture of `size` cut into tiles of `side`, each with the covariance `tile` and independent of the others.

    shift  by how much the first tiles begin outside the picture: from step to step another one, so that seams do not add up

    For one picture [1, C, H, W]. Its white coordinates are [1, tiles, C, h, w]: tiles are no batch, a camera joins them.
    """
    counts = [-(-(n + s) // t) for n, s, t in zip(size, shift, side)]
    padding = [count * t - s - n for count, t, s, n in zip(counts, side, shift, size)]

    def split(whole: Tensor) -> Tensor:
        """[1, C, rows h, columns w] -> [tiles, C, h, w]"""
        parts = whole.reshape(-1, counts[0], side[0], counts[1], side[1])  # C, rows, h, columns, w
        return parts.permute(1, 3, 0, 2, 4).flatten(0, 1)

    def cut(x: Tensor) -> Tensor:
        return split(pad(x, (shift[1], padding[1], shift[0], padding[0])))

    def fit(white: Tensor) -> Tensor:
        """Parts of tiles that lie outside the picture take the draws of its other end."""
        rows, columns = ((torch.arange(count * t) - s) % n for count, t, s, n in zip(counts, side, shift, size))
        tiles = split(white[..., rows.to(white.device), :][..., columns.to(white.device)])
        return (tiles if tile.fit is None else tile.fit(tiles))[None]

    def put_together(tiles: Tensor) -> Tensor:
        parts = tiles.reshape(counts[0], counts[1], -1, side[0], side[1]).permute(2, 0, 3, 1, 4)
        whole = parts.reshape(1, -1, counts[0] * side[0], counts[1] * side[1])
        return whole[..., shift[0] : shift[0] + size[0], shift[1] : shift[1] + size[1]]

    return Covariance(lambda w: put_together(tile.root(w[0])), lambda v: tile.transposed(cut(v))[None], fit=fit)


def stationary(matrices: Tensor, like: Tensor) -> Covariance:
    """The covariance with channel matrices [H, W, C, C] in the DCT, in the precision and on the device of `like`.

    Its white coordinates are DCT coefficients, so that L is one transform, not two.
    """
    values, vectors = torch.linalg.eigh(matrices)
    values = values.clamp_min(0)

    table = _frequency_table(vectors, values.sqrt(), like)

    def easing(gain: Tensor) -> Map:
        eased = _frequency_table(vectors, (1 + values * gain.to(values)[..., None]).rsqrt(), like)
        return lambda c: _multiply(eased, c)

    return _by_frequency(table, easing)


def _by_frequency(table: Tensor, easing: Easing | None = None) -> Covariance:
    """L and L^T from a table of roots [C, C, H, W]."""
    return Covariance(lambda w: idct2(_multiply(table, w)), lambda v: _multiply(table.transpose(0, 1), dct2(v)), easing)


def _frequency_table(vectors: Tensor, gains: Tensor, like: Tensor) -> Tensor:
    """V diag(gains) V^T of every frequency, [C, C, H, W]; vectors [H, W, C, C], gains [H, W, C]."""
    return ((vectors * gains[..., None, :]) @ vectors.mT).permute(2, 3, 0, 1).to(like).contiguous()


def _multiply(table: Tensor, c: Tensor) -> Tensor:
    """The channel matrices of a table applied to coefficients [B, C, H, W], one column after the other: no large product."""
    total = table[:, 0] * c[:, :1]
    for channel in range(1, c.shape[1]):
        total.addcmul_(table[:, channel], c[:, channel : channel + 1])
    return total


def local(spread: Tensor, correlation: Covariance) -> Covariance:
    """D^(1/2) C D^(1/2) with D = diag `spread` [B, C, H, W]."""
    deviation = spread.clamp_min(0).sqrt()
    inner = correlation.folded
    return Covariance(
        lambda w: correlation.root(w).mul_(deviation),
        lambda v: correlation.transposed(deviation * v),
        fit=correlation.fit,
        parts=(deviation, correlation, _same, _same) if inner is None else (deviation, inner, fold, unfold),
    )


def _same(x: Tensor) -> Tensor:
    return x


def independent(spread: Tensor) -> Covariance:
    """diag `spread` [B, C, H, W]: pixels that know nothing of each other."""
    deviation = spread.clamp_min(0).sqrt()
    return Covariance(lambda w: deviation * w, lambda v: deviation * v)


def error_covariance(
    prior: Prior,
    t: int,
    spread: Tensor,
    shifted: bool = False,
    largest: int = LARGEST_TILE,
    share: float = 1.0,
    narrow: float = 1.0,
) -> Covariance:
    """Cov[x0 | x_t] of a prior whose Sigma_t [1, C, H, W] was estimated: exact for Gaussians, else with the fitted spectrum.

    A picture with a side above `largest` is cut into tiles, whose seams lie elsewhere where `shifted`: the memory of a
    table of all its frequencies would be many times its own. With a `share` below 1 only the low frequencies that hold so
    much of the variance count: at high noise these are few, and a product with them costs a fraction.

    narrow  the fitted correlation is that of narrow * t: of a state that knows more than x_t alone
    """
    if isinstance(prior, GaussianPrior):
        abar = float(prior.schedule.abar(t))
        gaussian = prior.gaussian
        values = gaussian.variances * (1 - abar) / (abar * gaussian.variances + 1 - abar)
        return _diagonal_in(gaussian.scale, values, spread)
    spectrum = fitted(prior, spread)
    if spectrum is None:
        return independent(spread)
    size = (int(spread.shape[-2]), int(spread.shape[-1]))
    side = (_tile_side(size[0], largest), _tile_side(size[1], largest))
    correlation = _correlation(spectrum, float(prior.schedule.abar(int(narrow * t))), *side, spread, share)
    if side != size:
        correlation = tile_covariance(correlation, size, side, (side[0] // 2, side[1] // 2) if shifted else (0, 0))
    return local(spread, correlation)


def _tile_side(length: int, largest: int) -> int:
    """The side of the fewest equal tiles that cover `length` pixels, none above `largest`."""
    return -(-length // -(-length // largest))


def image_covariance(prior: Prior, like: Tensor) -> tuple[Tensor, Covariance] | None:
    """Mean [1, C, H, W] and covariance of x0 itself under the prior's Gaussian model, for images like `like`.

    None where the prior has no such model.
    """
    if isinstance(prior, GaussianPrior):
        gaussian = prior.gaussian
        return gaussian.mean[None].to(like), _diagonal_in(gaussian.scale, gaussian.variances, like)
    spectrum = fitted(prior, like)
    if spectrum is None:
        return None
    height, width = int(like.shape[-2]), int(like.shape[-1])
    mean = spectrum.colour.to(like).reshape(1, -1, 1, 1).expand(1, -1, height, width)
    return mean, stationary(spectrum.photographs(height, width), like)


def fitted(prior: Prior, like: Tensor) -> Spectrum | None:
    """The prior's spectrum for images with the channels of `like`: a colour one serves grey images by its mean."""
    spectrum = prior.spectrum
    if spectrum is None or spectrum.channels == like.shape[1]:
        return spectrum
    return _grey(spectrum) if like.shape[1] == 1 else None


@lru_cache(maxsize=8)
def _grey(spectrum: Spectrum) -> Spectrum:
    """One object for one spectrum: the tables that follow from it are kept by it."""
    return spectrum.grey()


def _diagonal_in(scale: Callable[[Tensor, Tensor], Tensor], values: Tensor, like: Tensor) -> Covariance:
    gain = values.sqrt()

    def apply(x: Tensor) -> Tensor:
        return scale(x.double(), gain).to(like)

    return Covariance(apply, apply)
