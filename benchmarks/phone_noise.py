"""Noise of cameras behind JPEG: Poisson noise, or noise of light; is its level found, is it removed, what says the verdict?

    python benchmarks/phone_noise.py PHOTOGRAPHS [--count 8] [--side 192] [--restore] [--out rows.jsonl]

Central crops; Poisson noise of peaks 40, 80 and 160 (photons of white), and noise of 0.02 and 0.05 that was added to light,
pixels to the power of 2.2, behind JPEG 75, 90 and 95, 4:2:0. A row a file: the estimated over the true root mean square of the
noise, and whether it is said to grow or fall with brightness; with --restore PSNR of the file, of `leader.restore` without a
level and of non-local means (scikit-image) with the true level, and the verdict. Clean crops behind the same compression come
last: what is called noise there is not.
"""

import math
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from common import append_records, compress, measure_psnr, read_crop, spread_out, to_image
from numpy.typing import NDArray

import leader
from leader.forensics import NotExamined, examine
from leader.forensics.noise.light import LightNoise
from leader.pictures import from_pil

PEAKS, READS, QUALITIES = (40, 80, 160), (0.02, 0.05), (75, 90, 95)
KINDS = (*(f"peak {peak}" for peak in PEAKS), *(f"light {read}" for read in READS), "clean")
GAMMA = 2.2
Floats = NDArray[np.float64]


def add_noise(truth: Floats, kind: str, seed: int) -> tuple[Floats, float]:
    """The noisy picture of a kind, and the root mean square of its noise: expected, or of what is left of it in [0, 1]."""
    rng, (name, *number) = np.random.default_rng(seed), kind.split()
    if name == "clean":
        return truth, 0.0
    if name == "peak":
        peak = float(number[0])
        return rng.poisson(truth * peak) / peak, math.sqrt(float(truth.mean()) / peak)
    light = truth**GAMMA + float(number[0]) * rng.standard_normal(truth.shape)
    noisy = light.clip(0, 1) ** (1 / GAMMA)
    return noisy, float(np.sqrt(((noisy - truth) ** 2).mean()))


def remove_by_patches(pixels: Floats, sigma: float) -> NDArray[Any]:
    from skimage.restoration import denoise_nl_means

    cleaned: NDArray[Any] = denoise_nl_means(
        pixels, h=0.8 * sigma, sigma=sigma, fast_mode=True, patch_size=5, patch_distance=6, channel_axis=-1
    )
    return cleaned


def measure_file(truth: Floats, kind: str, quality: int, seed: int, restored: bool) -> dict[str, Any]:
    """One row, of a file with noise of a kind."""
    noisy, sigma = add_noise(truth, kind, seed)
    file = compress(to_image(255 * noisy), quality)
    found = examine(from_pil(file)).noise
    level, shape = (0.0, None) if isinstance(found, NotExamined) else (found.white, found.shot)
    row: dict[str, Any] = {"kind": kind, "quality": quality, "photograph": seed, "level": round(level, 4)}
    row["shape"] = None if shape is None else "falls" if isinstance(shape, LightNoise) else "grows"
    if not sigma:
        return row
    row["ratio"] = round(level / sigma, 3)
    if restored:
        seen = np.asarray(file, np.float64) / 255
        done = leader.restore(from_pil(file), "denoise")
        assert done.verdict is not None
        row |= {
            "file": round(measure_psnr(seen, truth), 2),
            "leader": round(measure_psnr(done.picture.pixels, truth), 2),
            "patches": round(measure_psnr(remove_by_patches(seen, sigma), truth), 2),
            "verdict": done.verdict.in_words(),
        }
    return row


def main(
    photographs: Path,
    count: int = 8,
    side: int = 192,
    restore: Annotated[bool, typer.Option("--restore")] = False,
    out: Path | None = None,
) -> None:
    """Print a line for every kind and quality; keep the rows in a file."""
    if out is not None:
        out.unlink(missing_ok=True)
    chosen = spread_out(sorted(photographs.iterdir()), count)
    crops = [np.asarray(read_crop(path, side, halved=False), np.float64) / 255 for path in chosen]
    for kind, quality in product(KINDS, QUALITIES):
        rows = [measure_file(truth, kind, quality, seed, restore) for seed, truth in enumerate(crops)]
        if out is not None:
            append_records(out, *rows)
        print(f"{kind}, JPEG {quality}: {summarise(rows)}", flush=True)


def summarise(rows: list[dict[str, Any]]) -> str:
    told = ", ".join(f"said to {word[:-1]} in {sum(row['shape'] == word for row in rows)}" for word in ("grows", "falls"))
    if "ratio" not in rows[0]:
        return f"largest level called noise {max(row['level'] for row in rows):.3f}, {told}"
    ratios = [row["ratio"] for row in rows]
    near = sum(0.8 <= ratio <= 1.2 for ratio in ratios)
    text = f"estimate {np.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {near} of {len(rows)} within 20 %"
    text += f", {told}"
    if "leader" in rows[0]:
        file, ours, patches = (np.mean([row[name] for row in rows]) for name in ("file", "leader", "patches"))
        behind = sum(row["leader"] < row["patches"] for row in rows)
        fine = sum(row["verdict"].startswith("fine") for row in rows)
        text += f"; {file:.2f} -> {ours:.2f} dB, patches {patches:.2f}, behind them in {behind}; fine {fine}"
    return text


if __name__ == "__main__":
    typer.run(main)
