"""The covariance of x0, before and after a measurement, against dense algebra."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators import (
    BicubicSR,
    Blur,
    Denoising,
    Inpainting,
    LinearOperator,
    WalshHadamard,
    gaussian_kernel,
    random_mask,
)
from leader.priors.gaussian import Gaussian, GaussianPrior, stationary
from leader.priors.spectrum import Spectrum, dct_radius
from leader.uncertainty import covariance
from leader.uncertainty.dct import dct2
from tests.cheap_prior import CheapPrior
from tests.uncertainty.spectra import toy_spectrum

SHAPE = (3, 8, 8)
SIGMA = 0.1


def dense(apply: covariance.Map, shape: tuple[int, ...] = SHAPE) -> Tensor:
    """The matrix of a linear map of images, column by column."""
    size = math.prod(shape)
    eye = torch.eye(size, dtype=torch.float64).reshape(size, *shape)
    return apply(eye).reshape(size, -1).T


OPERATORS: dict[str, LinearOperator] = {
    "sr": BicubicSR(SHAPE, 2),
    "blur": Blur(SHAPE, gaussian_kernel(1.0)),
    "inpaint": Inpainting(SHAPE, random_mask(8, 8, 0.5, 1)),
    "cs": WalshHadamard(SHAPE, 0.4),
    "denoise": Denoising(SHAPE),
}


def test_a_spectrum_reproduces_its_nodes_and_has_unit_mean() -> None:
    spectrum = toy_spectrum()
    abar = 1 / (1 + math.exp(-4.0))  # s^2 = exp(-4): the first node
    table = spectrum.at(abar, 8, 12)
    assert float(table.diagonal(dim1=-2, dim2=-1).mean()) == pytest.approx(1)
    radius = dct_radius(8, 8)
    assert float(radius[0, 2]) == pytest.approx(0.125) and float(radius[3, 4]) == pytest.approx(math.hypot(3, 4) / 16)
    ratio = table[0, 6] / table[0, 0]  # radius 0.25 is a node; the mean has a row of its own, times the pixels
    expected = spectrum.power[0, 2] / (96 * spectrum.mean[0])
    assert torch.allclose(ratio, expected, rtol=1e-9)
    between = torch.linalg.eigvalsh(spectrum.at(0.5, 8, 8))
    assert float(between.min()) > 0  # blends of covariances are covariances


def test_a_spectrum_survives_its_file_and_refuses_others(tmp_path: object) -> None:

    path = Path(str(tmp_path)) / "x.spectrum.json"
    spectrum = toy_spectrum()
    spectrum.save(path)
    again = Spectrum.load(path)
    assert torch.allclose(again.power, spectrum.power, rtol=1e-5) and torch.allclose(again.colour, spectrum.colour)
    for broken in ("[]", "{}", path.read_text().replace("0.06", "-1"), path.read_text()[:-40], "[" * 100_000):
        path.write_text(broken)
        with pytest.raises(LeaderError, match="fit it again"):
            Spectrum.load(path)


def test_product_draws_and_local_variance() -> None:
    table = toy_spectrum().at(0.3, 8, 8)
    like = torch.zeros(1, *SHAPE, dtype=torch.float64)
    spread = 0.1 + torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    S = covariance.local(spread, covariance.stationary(table, like))
    matrix = dense(S.product)
    # in the DCT: blocks of channel matrices; in pixels: scaled by the deviations
    basis = dense(dct2)
    blocks = torch.zeros(192, 192, dtype=torch.float64)
    for i in range(8):
        for j in range(8):
            where = [c * 64 + i * 8 + j for c in range(3)]
            blocks[np.ix_(where, where)] = table[i, j]
    deviation = spread.flatten().sqrt()
    expected = deviation[:, None] * (basis.T @ blocks @ basis) * deviation
    assert torch.allclose(matrix, expected, atol=1e-10)
    root = dense(S.root)
    assert torch.allclose(root @ root.T, expected, atol=1e-10)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("sigma", [SIGMA, 0.5])
def test_what_a_measurement_leaves_equals_dense_algebra(name: str, sigma: float) -> None:
    operator = OPERATORS[name]
    gaussian = stationary(SHAPE, 0.5, mean=0.2)
    prior = GaussianPrior(gaussian)
    y = torch.randn(1, *operator.measurement_shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = covariance.image_covariance(prior, torch.zeros(1, *SHAPE, dtype=torch.float64))
    assert found is not None
    before, S = found
    posterior = S.given(operator, sigma)
    mean, expected = gaussian.posterior(operator, y[0], sigma)
    scale = float(expected.diagonal().max())
    assert torch.allclose(dense(lambda v: posterior.product(v, 1e-9)), expected, atol=1e-6 * scale)
    assert torch.allclose(posterior.mean(y, before)[0], mean, atol=2e-3)
    values = torch.linalg.eigvalsh(expected)
    probe = torch.randint(0, 2, (1, *SHAPE), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    nodes, weights = posterior.eigenvalues(probe, 30)
    # one probe over 192 coordinates: tr f(P) to sqrt(2 sum f^2) at most, four of them allowed
    for power in (1, 2):
        exact = float((values**power).sum())
        slack = 4 * math.sqrt(2 * float((values ** (2 * power)).sum()))
        assert abs(float((weights * nodes**power).sum()) - exact) < slack


def test_error_covariance_is_exact_for_gaussians_and_local_for_networks() -> None:
    gaussian = Gaussian(torch.zeros(SHAPE).double(), stationary(SHAPE, 0.5).variances, fourier=True)
    prior = GaussianPrior(gaussian)
    spread = torch.ones(1, *SHAPE, dtype=torch.float64)
    abar = float(prior.schedule.abar(300))
    C = gaussian.covariance()
    expected = C - abar * C @ torch.linalg.inv(abar * C + (1 - abar) * torch.eye(192)) @ C
    assert torch.allclose(dense(covariance.error_covariance(prior, 300, spread).product), expected, atol=1e-9)
    network = CheapPrior()
    network.spectrum = toy_spectrum()
    spread = 0.1 + torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own = covariance.stationary(network.spectrum.at(float(network.schedule.abar(700)), 8, 8), spread)
    found = dense(covariance.error_covariance(network, 700, spread).product)
    assert torch.allclose(found, dense(covariance.local(spread, own).product), atol=1e-12)


def test_the_floor_and_grey() -> None:
    S = covariance.independent(torch.ones(1, 1, 4, 4))
    assert S.given(Denoising((1, 4, 4)), 0.0).sigma == covariance.FLOOR
    grey = toy_spectrum().grey()
    assert grey.channels == 1 and float(grey.power[0, 0]) == pytest.approx(float(toy_spectrum().power[0, 0].mean()))


def test_the_diagonal_from_probes() -> None:
    operator = OPERATORS["sr"]
    gaussian = stationary(SHAPE, 0.5)
    found = covariance.image_covariance(GaussianPrior(gaussian), torch.zeros(1, *SHAPE, dtype=torch.float64))
    assert found is not None
    posterior = found[1].given(operator, SIGMA)
    expected = gaussian.posterior(operator, torch.zeros(operator.measurement_shape, dtype=torch.float64), SIGMA)[1]
    # of +-1 probes: exactly z (P z)
    probes = torch.randint(0, 2, (3, *SHAPE), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    flat = probes.reshape(3, -1)
    assert torch.allclose(posterior.diagonal(probes).flatten(), (flat * (flat @ expected)).mean(0), atol=1e-3)


def test_a_photographs_model_has_its_colour_and_its_channels() -> None:
    prior = CheapPrior()
    prior.spectrum = toy_spectrum()
    found = covariance.image_covariance(prior, torch.zeros(1, *SHAPE, dtype=torch.float64))
    assert found is not None and torch.allclose(found[0][0, :, 3, 5], prior.spectrum.colour)
    expected = covariance.stationary(prior.spectrum.photographs(8, 8), torch.zeros(1, dtype=torch.float64))
    x = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(found[1].product(x), expected.product(x))
    grey = covariance.image_covariance(prior, torch.zeros(1, 1, 8, 8, dtype=torch.float64))
    assert grey is not None and grey[0].shape == (1, 1, 8, 8) and grey[1].product(x[:, :1]).shape == (1, 1, 8, 8)
    assert float(grey[0].mean()) == pytest.approx(float(prior.spectrum.colour.mean()))
    assert covariance.image_covariance(prior, torch.zeros(1, 2, 8, 8)) is None


def test_lanczos_stays_orthogonal_in_single_precision() -> None:
    """A spectrum over six orders of magnitude: in float32 the bare recurrence finds large values again and again."""
    values = torch.logspace(2, -4, 60)
    probe = torch.ones(1, 1, 1, 60)
    nodes, weights = covariance.lanczos(lambda v: v * values.reshape(1, 1, 1, -1), probe, 40)
    assert float((weights * nodes).sum()) == pytest.approx(float(values.sum()), rel=0.02)
    large = nodes[nodes > 20]
    assert len(large) == int((values > 20).sum()) and torch.allclose(
        large.sort(descending=True).values, values[values > 20].double(), rtol=1e-3
    )


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("sigma", [0.05, SIGMA])
def test_solves_with_a_preconditioner_are_those_of_dense_algebra(name: str, sigma: float) -> None:
    """A spectrum over four orders of magnitude, channels that move together."""
    operator = OPERATORS[name]
    S = covariance.stationary(toy_spectrum().photographs(8, 8), torch.zeros(1, dtype=torch.float64))
    assert S.easing is not None
    A, full = dense(operator.A), dense(S.product)
    expected = full - full @ A.T @ torch.linalg.solve(A @ full @ A.T + sigma**2 * torch.eye(len(A)).double(), A @ full)
    posterior = S.given(operator, sigma)
    scale = float(expected.diagonal().max())
    assert torch.allclose(dense(lambda v: posterior.product(v, 1e-9)), expected, atol=1e-6 * scale)
    before = torch.full((1, *SHAPE), 0.3, dtype=torch.float64)
    y = operator.A(before + S.draw(torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(2), dtype=torch.float64)))
    wanted = before.flatten() + expected @ A.T @ (y.flatten() - A @ before.flatten()) / sigma**2
    # a residual of 1e-5, and E M E of a condition below 1000 here; the first guess is 2 away
    assert torch.allclose(posterior.mean(y, before).flatten(), wanted, atol=1e-2 * float(wanted.abs().max()))


def test_the_preconditioner_is_the_inverse_root_where_camera_and_picture_share_the_dct() -> None:
    """Denoising: A^T A = 1 at every frequency, so that one iteration solves; a blur that wraps around needs a few more."""
    S = covariance.stationary(toy_spectrum().photographs(32, 32), torch.zeros(1, dtype=torch.float64))
    shape, sigma = (3, 32, 32), 0.05
    assert torch.allclose(covariance.dct_gain(Denoising(shape), torch.zeros(1, *shape)), torch.ones(32, 32))
    v = torch.randn(1, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = {}
    for name, operator in (("denoise", Denoising(shape)), ("blur", Blur(shape, gaussian_kernel(1.0)))):
        for eased in (True, False):
            asked: list[Tensor] = []

            def root(w: Tensor, asked: list[Tensor] = asked) -> Tensor:
                asked.append(w)
                return S.root(w)

            covariance.Covariance(root, S.transposed, S.easing if eased else None).given(operator, sigma).product(v)
            counts[name, eased] = len(asked) - 1  # the last one leaves the white coordinates
    assert counts["denoise", True] == 1 < counts["denoise", False]
    assert 5 * counts["blur", True] < counts["blur", False], counts


@pytest.mark.parametrize("steps", [6, 12])
def test_only_eigenvalues_that_lanczos_has_found_count_once(steps: int) -> None:
    """Ritz pairs by dense algebra: those that miss A v = p v by less than 1 % of p, and weigh little, stand alone."""
    generator = torch.Generator().manual_seed(4)
    turned, _ = torch.linalg.qr(torch.randn(80, 80, generator=generator, dtype=torch.float64))
    matrix = turned * torch.cat([torch.tensor([40.0, 25.0]), torch.logspace(0.5, -3, 78)]).double() @ turned.T
    probe = torch.randint(0, 2, (1, 1, 8, 10), generator=generator).double() * 2 - 1
    nodes, weights = covariance.lanczos(lambda v: (v.flatten(1) @ matrix).reshape(v.shape), probe, steps)
    z = probe.flatten()
    krylov = [z / z.norm()]
    for _ in range(steps - 1):
        image = matrix @ krylov[-1]
        for direction in (*krylov, *krylov):
            image = image - (image @ direction) * direction
        krylov.append(image / image.norm())
    basis = torch.stack(krylov, 1)
    values, inner = torch.linalg.eigh(basis.T @ matrix @ basis)
    ritz = basis @ inner
    missed = (matrix @ ritz - values * ritz).norm(dim=0)
    plain = (z @ ritz) ** 2
    once = (missed < 0.01 * values) & (plain < covariance.ALONE)
    assert 0 < int(once.sum()) < steps, "both kinds occur"
    assert torch.allclose(nodes, values, rtol=1e-8) and torch.allclose(weights, torch.where(once, 1.0, plain), rtol=1e-6)


def test_the_spectrum_of_photographs_has_their_mean_at_its_origin() -> None:
    spectrum = toy_spectrum()
    table = spectrum.photographs(8, 16)
    assert torch.allclose(table[0, 0], spectrum.images_mean * 128)
    assert torch.allclose(table[0, 8], spectrum.images[2]) and torch.allclose(table[4, 0], spectrum.images[2])  # radius 0.25
    radius = math.hypot(2 / 16, 2 / 32)
    low, high = (float(r) for r in spectrum.radii[1:3])  # between 0.12 and 0.25, a share in the logarithm
    share = (math.log(radius) - math.log(low)) / (math.log(high) - math.log(low))
    first, second = spectrum.images[1], spectrum.images[2]
    sizes = [float(item.diagonal().sum()) for item in (first, second)]
    shape = (1 - share) * first / sizes[0] + share * second / sizes[1]
    assert torch.allclose(table[2, 2], shape * math.exp((1 - share) * math.log(sizes[0]) + share * math.log(sizes[1])))


@pytest.mark.parametrize("name", ["radii", "log_noise"])
def test_the_nodes_of_a_spectrum_ascend(name: str) -> None:
    spectrum = toy_spectrum()
    content = {key: getattr(spectrum, key).tolist() for key in spectrum.__dataclass_fields__}
    assert Spectrum.checked(content).channels == 3
    content[name][1] = content[name][0]
    with pytest.raises(ValueError, match=f"{name} does not ascend"):
        Spectrum.checked(content)
