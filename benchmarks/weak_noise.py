"""What taking weak noise away gains: noise of some levels on clean pictures, denoised with the level that is found.

    python benchmarks/weak_noise.py photos/val               plain parts, whatever `denoise` would do
    python benchmarks/weak_noise.py photos/val --textures    plain and textured parts, as `denoise` does it

Parts of photographs halved in size, since the photographs themselves are JPEGs. Below `Denoising.weak_noise`, and where the
network expects nothing of it (`leader.restoration.worth`), a picture is left as it is where nobody gives a level; without
`--textures` the level that is found is given.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import self_check as runs
import typer
from common import measure_psnr
from PIL import Image

from leader.forensics import NotExamined, examine
from leader.pictures import from_pil
from leader.priors.loading import load_prior
from leader.restoration.restore import restore

LEVELS = (0.0, 0.002, 0.004, 0.006, 0.008)
PHOTOGRAPHS = 6
OF_TEXTURES = (0.0, 0.008, 0.02)


def gained(given: Image.Image, truth: runs.Pixels, answer: Image.Image) -> float:
    """By how many dB the answer is nearer to the part [H, W, 3] in the middle of `truth` than the given picture."""
    centre = np.round(255 * truth[runs.MARGIN : -runs.MARGIN, runs.MARGIN : -runs.MARGIN]) / 255
    after, before = (measure_psnr(np.asarray(picture) / 255, centre, 1e-6) for picture in (answer, given))
    return after - before


def read_noise(given: Image.Image) -> float:
    """The level that is found."""
    noise = examine(from_pil(given)).noise
    assert not isinstance(noise, NotExamined)
    return noise.sigma


def plain(paths: list[Path], prior: Any) -> None:
    """Plain parts of 96 x 96 pixels: what taking away what is found would gain."""
    runs.SIDE = 96
    for level in LEVELS:
        found, gains = [], []
        for number, path in enumerate(paths[::4][:PHOTOGRAPHS]):
            truth = runs.part(path, textured=False, halved=True)
            given = runs.plain(level)(truth, np.random.default_rng(number))
            found.append(read_noise(given))
            answer = restore(given, "denoise", sigma=found[-1], prior=prior, seed=number, threads=1, check=False).image
            gains.append(gained(given, truth, answer))
        said = ", ".join(f"{value:.4f}" for value in found)
        print(f"noise {level}: found {said}; gain in dB {', '.join(f'{gain:.1f}' for gain in gains)}", flush=True)


def textures(paths: list[Path], prior: Any) -> None:
    """Plain and textured parts of 64 x 64 pixels: how many are left as they are, and what the others gain."""
    for level in OF_TEXTURES:
        gains: list[float] = []
        left: list[float] = []
        for number, path in enumerate(paths[::3]):
            for textured in (False, True):
                truth = runs.part(path, textured, halved=True)
                given = runs.plain(level)(truth, np.random.default_rng(number))
                made = restore(given, "denoise", prior=prior, seed=number, threads=1, check=False)
                here = any("left as it is" in note for note in made.notes)
                there = restore(given, "denoise", sigma=read_noise(given), prior=prior, seed=number, threads=1, check=False)
                (left if here else gains).append(gained(given, truth, there.image if here else made.image))
        taken, kept = f"taken away in {len(gains)}, gain {_spread(gains)}", f"left in {len(left)}, would gain {_spread(left)}"
        print(f"noise {level}: {taken}; {kept}", flush=True)


def _spread(gains: list[float]) -> str:
    return f"{min(gains):.1f}, {np.median(gains):.1f}, {max(gains):.1f} dB (least, median, most)" if gains else "none"


def main(photographs: Path, by_textures: Annotated[bool, typer.Option("--textures")] = False) -> None:
    (textures if by_textures else plain)(sorted(photographs.glob("*.jpg")), load_prior("embedded"))


if __name__ == "__main__":
    typer.run(main)
