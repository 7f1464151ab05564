"""Noise of phones behind JPEG: Poisson noise, then compression; is its level found, is it removed, what says the verdict?

    python benchmarks/phone_noise.py PHOTOGRAPHS [--count 8] [--side 192] [--restore] [--out rows.jsonl]

Central crops; peaks 40, 80 and 160 (photons of white) behind JPEG 75, 90 and 95, 4:2:0. A row a file: the estimated over the
true root mean square of the noise, and whether it is said to grow with brightness; with --restore PSNR of the file, of
`leader.restore` without a level and of non-local means (scikit-image) with the true level, and the verdict. Clean crops behind
the same compression come last: what is called noise there is not.
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
from leader.pictures import from_pil

PEAKS, QUALITIES = (40, 80, 160), (75, 90, 95)
Floats = NDArray[np.float64]


def remove_by_patches(pixels: Floats, sigma: float) -> NDArray[Any]:
    from skimage.restoration import denoise_nl_means

    cleaned: NDArray[Any] = denoise_nl_means(
        pixels, h=0.8 * sigma, sigma=sigma, fast_mode=True, patch_size=5, patch_distance=6, channel_axis=-1
    )
    return cleaned


def measure_file(truth: Floats, peak: int | None, quality: int, seed: int, restored: bool) -> dict[str, Any]:
    """One row: of a noisy file, or of a clean one where peak is None."""
    noisy = truth if peak is None else np.random.default_rng(seed).poisson(truth * peak) / peak
    file = compress(to_image(255 * noisy), quality)
    found = examine(from_pil(file)).noise
    level = 0.0 if isinstance(found, NotExamined) else found.white
    row: dict[str, Any] = {"peak": peak, "quality": quality, "photograph": seed, "level": round(level, 4)}
    if peak is None:
        return row
    sigma = math.sqrt(float(truth.mean()) / peak)
    row |= {"ratio": round(level / sigma, 3), "grows": not isinstance(found, NotExamined) and found.shot is not None}
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
    """Print a line for every peak and quality; keep the rows in a file."""
    if out is not None:
        out.unlink(missing_ok=True)
    chosen = spread_out(sorted(photographs.iterdir()), count)
    crops = [np.asarray(read_crop(path, side, halved=False), np.float64) / 255 for path in chosen]
    for peak, quality in product((*PEAKS, None), QUALITIES):
        rows = [measure_file(truth, peak, quality, seed, restore) for seed, truth in enumerate(crops)]
        if out is not None:
            append_records(out, *rows)
        print(f"peak {peak}, JPEG {quality}: {summarise(rows)}", flush=True)


def summarise(rows: list[dict[str, Any]]) -> str:
    if "ratio" not in rows[0]:
        return f"largest level called noise {max(row['level'] for row in rows):.3f}"
    ratios = [row["ratio"] for row in rows]
    near = sum(0.8 <= ratio <= 1.2 for ratio in ratios)
    text = f"estimate {np.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {near} of {len(rows)} within 20 %"
    text += f", said to grow in {sum(row['grows'] for row in rows)}"
    if "leader" in rows[0]:
        file, ours, patches = (np.mean([row[name] for row in rows]) for name in ("file", "leader", "patches"))
        behind = sum(row["leader"] < row["patches"] for row in rows)
        fine = sum(row["verdict"].startswith("fine") for row in rows)
        text += f"; {file:.2f} -> {ours:.2f} dB, patches {patches:.2f}, behind them in {behind}; fine {fine}"
    return text


if __name__ == "__main__":
    typer.run(main)
