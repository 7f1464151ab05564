"""Noise in 8-bit files against the same noise as it was: what clipping at black and white costs.

    python benchmarks/clipped.py PHOTOGRAPHS [--count 16] [--given] [--levels 15 25 50 75]

Central crops of 192 pixels, white noise, rounded to 8 bits, through `leader.restore(task="denoise")`. Columns, mean PSNR in dB:
unclipped noise, clipped, clipped with limits taken for values; then the mean noise estimate over the truth, and its extremes.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import leader

SIDE = 192


def read_crop(path: Path) -> NDArray[np.float32]:
    """The middle SIDE x SIDE pixels, [H, W, 3] in [0, 1]."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return (np.asarray(image.crop((left, top, left + SIDE, top + SIDE)), np.float32) / 255).astype(np.float32)


def measure_psnr(restored: NDArray[np.float32], truth: NDArray[np.float32]) -> float:
    return -10 * math.log10(float(((np.clip(restored, 0, 1) - truth) ** 2).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--levels", type=float, nargs="+", default=[15, 25, 50, 75])
    parser.add_argument("--given", action="store_true", help="hand the true level in; otherwise it is estimated")
    args = parser.parse_args()
    crops = [read_crop(path) for path in sorted(args.photographs.iterdir())[: args.count]]
    print(f"{'sigma':>5} {'unclipped':>9} {'clipped':>8} {'as values':>9} {'estimate':>8} {'least':>6} {'most':>6}")
    for level in args.levels:
        rows, ratios = [], []
        for number, truth in enumerate(crops):
            sigma = level / 255
            noisy = truth + sigma * np.random.default_rng(number).standard_normal(truth.shape).astype(np.float32)
            file = (noisy.clip(0, 1) * 255).round().astype(np.uint8)
            row = []
            for image, clipped in ((noisy, True), (file, True), (file, False)):
                chosen = {"sigma": sigma} if args.given or image is noisy else {}
                done = leader.restore(image, "denoise", check=False, clipped=clipped, **chosen)
                row.append(measure_psnr(done.picture.pixels, truth))
            rows.append(row)
            ratios.append(done.sigma / sigma)
        mean = np.mean(rows, axis=0)
        print(
            f"{level:5g} {mean[0]:9.2f} {mean[1]:8.2f} {mean[2]:9.2f} "
            f"{np.mean(ratios):8.3f} {min(ratios):6.3f} {max(ratios):6.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
