"""Converts a training state to the pair of published files: float16 weights, and their settings with a calibrated variance."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors import mixed
from leader.priors.coarse_gaussian import CoarseGaussian
from leader.priors.int8 import is_exact, load_int8
from leader.priors.pyramid import PyramidPrior, VarianceScale
from leader.priors.pyramid_net import PyramidNet
from leader.priors.spectrum import spectrum_file
from leader.train.data import Images, central_crops, crops_of_both_sizes
from leader.train.fit_gaussian import fit_coarse_gaussian
from leader.train.int8 import SIDE, fit_int8, save_int8
from leader.train.run import save_weights
from leader.train.tables import fit_rounding, fit_spectrum

SPECTRUM_SIDE, SPECTRUM_CROPS = 128, 24
SCHEDULE = {"type": "linear", "beta_start": 1e-4, "beta_end": 2e-2, "steps": 1000}
NODES = tuple(float(value) / 255 for value in (*np.geomspace(3, 533.5, 10), 950, 1700, 3000, 8000, 20000))
"""Noise levels at which the factor is fitted; log-linear between, constant beyond."""


@torch.no_grad()
def error_and_variance(prior: PyramidPrior, clean: Tensor, sigma: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Squared errors of clamped estimates and predicted variances [N, 3, H, W], in [0, 1] units."""
    generator = torch.Generator().manual_seed(seed)
    errors, variances = [], []
    for image in torch.split(clean, 1):
        noisy = image + sigma * torch.randn(image.shape, generator=generator)
        estimate, variance = prior.denoise(noisy, sigma)
        errors.append((estimate.clamp(0, 1) - image).square())
        variances.append(variance)
    return torch.cat(errors), torch.cat(variances)


def fit_scale(
    prior: PyramidPrior,
    clean: Tensor,
    nodes: tuple[float, ...] = NODES,
    say: Callable[[str], None] | None = None,
) -> VarianceScale:
    """Factors that make mean squared error and mean variance agree at each node, in addition to the current ones.

    clean: held-out crops. At the highest noise levels little more than brightness and layout remains of a picture, a few
    numbers each: there a few dozen crops determine a factor to about 20 % at best. `say` is called with every factor as it is
    found.
    """
    factors = []
    for index, sigma in enumerate(nodes):
        error, variance = error_and_variance(prior, clean, sigma, seed=index)
        factors.append(float(error.mean() / variance.mean()) * prior.scale.at(sigma))
        if say is not None:
            say(f"noise {255 * sigma:7.1f} of 255 ({index + 1} of {len(nodes)}): variance times {factors[-1]:.3f}")
    return VarianceScale(nodes, tuple(factors))


def publish(
    net: PyramidNet,
    coarse: CoarseGaussian,
    calibration: Path,
    output: Path,
    size: int = 256,
    say: Callable[[str], None] | None = None,
    images: Images | None = None,
) -> PyramidPrior:
    """Calibrate the variance on central crops of photographs, then write `output` (.safetensors) and its .json.

    images  to which the integers of eight bits are fitted; without any, or where torch cannot measure them, there are none
    """
    prior = PyramidPrior(net.eval().requires_grad_(False), coarse)
    prior.scale = fit_scale(prior, crops_of_both_sizes(calibration, size), say=say)
    save_weights(net, output)
    settings = {
        "name": output.stem,
        "net": asdict(net.config),
        "schedule": SCHEDULE,
        "variance_scale": _round_values(asdict(prior.scale)),
        "coarse": _round_values(asdict(coarse)),
    }
    output.with_suffix(".json").write_text(json.dumps(settings, indent=1) + "\n")
    crops = central_crops(calibration, min(size, SPECTRUM_SIDE))[:SPECTRUM_CROPS]
    if len(crops) > 1:
        fit_spectrum(prior, 2 * crops - 1).save(spectrum_file(output))
    small = None
    if images is not None and is_exact():
        save_int8(fit_int8(prior, central_crops(images, SIDE)), output)
        small = load_int8(prior, output)
    fit_rounding(prior, 2 * crops - 1, small=small).save(mixed.rounding_file(output))
    return PyramidPrior.load(output)


def _round_values(table: dict[str, tuple[float, ...]]) -> dict[str, list[float]]:
    return {key: [float(f"{value:.6g}") for value in values] for key, values in table.items()}


def publish_state(
    state: Path, images: Path, calibration: Path, output: Path, say: Callable[[str], None] | None = None
) -> PyramidPrior:
    """Publish the averaged weights of a run's folder; `images` fit the Gaussian prior, `calibration` the variance."""
    weights, settings = state / "pyramid.safetensors", state / "pyramid.json"
    if not weights.is_file() or not settings.is_file():
        raise LeaderError(f"{state} holds no trained prior yet: give the folder of a `leader train` run that has saved.")
    if output.suffix != ".safetensors":
        raise LeaderError(f"The prior's file must end in .safetensors; found {output}.")
    if not output.parent.is_dir():
        raise LeaderError(f"The folder {output.parent} does not exist: create it, or give another path.")
    if output.resolve() == weights.resolve():
        raise LeaderError(f"{output} belongs to the training run, which would overwrite it: give another name.")
    net = PyramidPrior.load(weights).net
    return publish(net, fit_coarse_gaussian(images, state / "cache"), calibration, output, say=say, images=images)
