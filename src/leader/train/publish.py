"""Converts a training state to the pair of published files: float16 weights and their settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from leader.errors import LeaderError
from leader.priors import mixed
from leader.priors.coarse_gaussian import CoarseGaussian
from leader.priors.int8 import is_exact, load_int8
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidNet
from leader.priors.spectrum import spectrum_file
from leader.train.calibrate import central_crops, crops_of_both_sizes, fit_scale
from leader.train.data import Images
from leader.train.fit_gaussian import fit_coarse_gaussian
from leader.train.int8 import SIDE, fit_int8, save_int8
from leader.train.run import save_weights
from leader.train.spectrum import fit_spectrum
from leader.train.tables import fit_rounding

SPECTRUM_SIDE, SPECTRUM_CROPS = 128, 24
SCHEDULE = {"type": "linear", "beta_start": 1e-4, "beta_end": 2e-2, "steps": 1000}


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
