"""A fitted spectrum against the one the pictures were drawn with."""

import torch

from leader.priors.gaussian import GaussianPrior, stationary
from leader.priors.spectrum import dct_radius
from leader.train.tables import Rings, count_affordable_crops, fit_spectrum


def test_rings_find_the_power_of_white_and_of_coloured_noise() -> None:
    generator = torch.Generator().manual_seed(0)
    mix = torch.tensor([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.2, 0.3, 0.5]], dtype=torch.float64)
    white = torch.randn(40, 3, 32, 32, generator=generator, dtype=torch.float64)
    rings = Rings(32, 32)
    power, mean = rings.power(torch.einsum("cd,ndhw->nchw", mix, white))
    expected = mix @ mix.T
    for found in power[-4:]:  # the outer rings hold hundreds of coefficients of every picture
        assert torch.allclose(found, expected, atol=0.06)
    assert float(mean[0, 0]) * 1024 < 3  # the mean's power, not its pixels': about 1
    assert torch.all(rings.radii[1:] > rings.radii[:-1]) and float(rings.radii[-1]) <= float(dct_radius(32, 32).max())


def test_the_error_of_a_gaussian_prior_has_its_posterior_s_spectrum() -> None:
    """Normalised by its variance, the error at a time has unit mean, falls with the frequency, and photographs have theirs."""
    gaussian = stationary((3, 32, 32), 0.5)
    prior = GaussianPrior(gaussian)
    clean = gaussian.sample(24, torch.Generator().manual_seed(1)).float()
    spectrum = fit_spectrum(prior, clean)
    assert spectrum.channels == 3 and len(spectrum.log_noise) == 10
    low, high = spectrum.power.diagonal(dim1=-2, dim2=-1).mean(-1)[:, [2, -1]].unbind(1)
    assert bool((low[2:] > 3 * high[2:]).all())
    assert abs(float(spectrum.at(0.3, 32, 32).diagonal(dim1=-2, dim2=-1).mean()) - 1) < 1e-9
    total = spectrum.photographs(32, 32).diagonal(dim1=-2, dim2=-1).mean()
    assert abs(float(total) / 0.25 - 1) < 0.25  # the pixels' variance of the prior
    assert 1 <= count_affordable_crops(prior, clean[:1], 60.0) <= 48
    weights = torch.tensor([float(where.sum()) for where in Rings(32, 32).members], dtype=torch.float64)
    share = (spectrum.power.diagonal(dim1=-2, dim2=-1).mean(-1) * weights).sum(-1) / weights.sum()
    assert bool(((share - 1).abs() < 0.15).all()), "in units of its own standard deviation"
