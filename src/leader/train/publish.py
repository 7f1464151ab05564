r"""Turns a training state into the pair of files that ships: float16 weights and their settings.

    python -m leader.train.publish --weights STATE/pyramid.safetensors --images TRAIN --cache STATE/cache \
        --calibration CALIB --output FILE
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file

from leader.priors.coarse_gaussian import CoarseGaussian
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidConfig, PyramidNet
from leader.train.calibrate import central_crops, fit_scale
from leader.train.fit_gaussian import fit_coarse_gaussian
from leader.train.run import save_weights

SCHEDULE = {"type": "linear", "beta_start": 1e-4, "beta_end": 2e-2, "steps": 1000}


def publish(net: PyramidNet, coarse: CoarseGaussian, calibration: Path, output: Path, size: int = 256) -> PyramidPrior:
    """Calibrate the variance on central crops of photographs, then write `output` (.safetensors) and its .json."""
    prior = PyramidPrior(net.eval().requires_grad_(False), coarse)
    prior.scale = fit_scale(prior, torch.cat([central_crops(calibration, size, half) for half in (True, False)]))
    save_weights(net, output)
    settings = {
        "name": output.stem,
        "net": asdict(net.config),
        "schedule": SCHEDULE,
        "variance_scale": _rounded(asdict(prior.scale)),
        "coarse": _rounded(asdict(coarse)),
    }
    output.with_suffix(".json").write_text(json.dumps(settings, indent=1) + "\n")
    return PyramidPrior.load(output)


def _rounded(table: dict[str, tuple[float, ...]]) -> dict[str, list[float]]:
    return {key: [float(f"{value:.6g}") for value in values] for key, values in table.items()}


def main() -> None:
    """Parse and publish."""
    parser = argparse.ArgumentParser(prog="python -m leader.train.publish", description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="averaged weights of a training state")
    parser.add_argument("--images", type=Path, required=True, help="training photographs, for the Gaussian prior")
    parser.add_argument("--cache", type=Path, required=True, help="cache of decoded photographs")
    parser.add_argument("--calibration", type=Path, required=True, help="held-out photographs for the variance")
    parser.add_argument("--output", type=Path, required=True, help="the .safetensors file to write")
    options = parser.parse_args()
    net = PyramidNet(PyramidConfig())
    net.load_state_dict({name: tensor.float() for name, tensor in load_file(options.weights).items()})
    coarse = fit_coarse_gaussian(options.images, options.cache)
    prior = publish(net, coarse, options.calibration, options.output)
    scale = prior.scale
    for sigma, factor in zip(scale.sigma, scale.factor, strict=True):
        print(f"sigma {255 * sigma:7.1f}/255  variance factor {factor:.3f}")


if __name__ == "__main__":
    main()
