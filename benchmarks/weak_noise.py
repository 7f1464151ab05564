"""What taking weak noise away gains: noise of some levels on clean pictures, denoised with the level that is found.

    python benchmarks/weak_noise.py --photographs photos/val

Plain parts of 96 x 96 pixels of photographs halved in size, since the photographs themselves are JPEGs. Below
`Denoising.weak_noise` a picture is left as it is where nobody gives a level; here the level that is found is given.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import self_check as runs

from leader.pictures.real_noise import measure_noise
from leader.priors.loading import load_prior
from leader.restoration.restore import restore

LEVELS = (0.0, 0.002, 0.004, 0.006, 0.008)
PHOTOGRAPHS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=Path, required=True, help="a folder of photographs (.jpg)")
    paths = sorted(parser.parse_args().photographs.glob("*.jpg"))[::4][:PHOTOGRAPHS]
    runs.SIDE = 96
    prior = load_prior("embedded")
    for level in LEVELS:
        found, gains = [], []
        for number, path in enumerate(paths):
            truth = runs.part(path, textured=False, halved=True)
            given = runs.plain(level)(truth, np.random.default_rng(number))
            found.append(measure_noise(np.asarray(given) / 255).sigma)
            answer = restore(given, "denoise", sigma=found[-1], prior=prior, seed=number, threads=1, check=False).image
            centre = np.round(255 * truth[runs.MARGIN : -runs.MARGIN, runs.MARGIN : -runs.MARGIN]) / 255
            gains.append(runs.psnr(np.asarray(answer) / 255, centre) - runs.psnr(np.asarray(given) / 255, centre))
        said = ", ".join(f"{value:.4f}" for value in found)
        print(f"noise {level}: found {said}; gain in dB {', '.join(f'{gain:.1f}' for gain in gains)}", flush=True)


if __name__ == "__main__":
    main()
