"""The task jpeg: candidates for its path (src/leader/presets/paths.toml), and what was chosen on test photographs.

    python benchmarks/jpeg_paths.py run photos/val       # resumes; records in benchmarks/records/jpeg-paths.jsonl
    python benchmarks/jpeg_paths.py table                # gains over the JPEG itself, by candidate and quality
    python benchmarks/jpeg_paths.py test photos/test     # resumes; records in benchmarks/records/jpeg-test.jsonl
    python benchmarks/jpeg_paths.py tested               # the bars
    python benchmarks/jpeg_paths.py exact photos/val     # how many coefficients are found again exactly; no network
    python benchmarks/jpeg_paths.py levels photos/val    # the true error over that of rounding what is not zero; no network

The middle 192 x 192 pixels of photographs at half size, which hides what their own compression did, compressed by Pillow.
Gains are those over the decoded JPEG: PSNR in dB (more is better), LPIPS (less is better). One thread, one seed.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
import typer
from PIL import Image
from torch import Tensor

from leader import Prior, Sampler, load_prior
from leader.bench.statistics import bootstrap_interval
from leader.forensics.jpeg.coefficients import read_coefficients
from leader.metrics import lpips, psnr
from leader.pictures import Picture, from_pil, list_pictures
from leader.plugins import Plugin
from leader.plugins.cells import Cells
from leader.priors.base import Prior as AnyPrior
from leader.problem import Problem
from leader.restoration.pose import pose_picture
from leader.restoration.restore import prepare

RECORDS = Path(__file__).parent / "records" / "jpeg-paths.jsonl"
TESTED = RECORDS.with_name("jpeg-test.jsonl")
SIDE = 192
SUBSAMPLINGS = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}
TRIED = (10, 40, 75)
QUALITIES = (10, 20, 40, 60, 75, 85, 95)

app = typer.Typer(add_completion=False, help=__doc__)


@dataclass(frozen=True)
class Open(Cells):
    """Begins as Cells do, but lets coefficients leave their cells: what the cells are worth."""

    def settle(self, x0: Tensor, x0_hat: Tensor, prior: AnyPrior, problem: Problem) -> Tensor:
        return x0_hat


QUIET = {"lam": 7.0, "zeta": 0.0}
PLAIN = {"form": "simple", "eta": 0.0}
CANDIDATES: dict[str, tuple[str, int, Plugin, dict[str, Any]]] = {
    "diffpir, from 4 sigma": ("diffpir", 6, Cells(begin=4.0, fresh=0.0), QUIET),
    "diffpir, from 2 sigma": ("diffpir", 6, Cells(begin=2.0, fresh=0.0), QUIET),
    "diffpir, from 6 sigma": ("diffpir", 6, Cells(begin=6.0, fresh=0.0), QUIET),
    "diffpir, 3 steps": ("diffpir", 3, Cells(begin=4.0, fresh=0.0), QUIET),
    "diffpir, without cells": ("diffpir", 6, Open(begin=4.0, fresh=0.0), QUIET),
    "diffpir, noise drawn": ("diffpir", 6, Cells(begin=2.0), {"lam": 7.0, "zeta": 0.5}),
    "ddnm, from 6 sigma": ("ddnm", 6, Cells(begin=6.0, fresh=0.0), PLAIN),
}


@cache
def crop(path: Path) -> Image.Image:
    """The middle of the photograph at half its size."""
    half = Image.open(path).convert("RGB").reduce(2)
    left, top = (half.width - SIDE) // 2, (half.height - SIDE) // 2
    return half.crop((left, top, left + SIDE, top + SIDE))


def compressed(image: Image.Image, quality: int, subsampling: str) -> Picture:
    """The picture behind Pillow's JPEG, as it is read from a file."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=SUBSAMPLINGS[subsampling])
    return from_pil(Image.open(buffer))


def as_tensor(pixels: Any) -> Tensor:
    """[H, W, C] in [0, 1] -> [1, C, H, W]."""
    return torch.from_numpy(np.ascontiguousarray(pixels, dtype=np.float32)).permute(2, 0, 1)[None]


@cache
def _prior() -> Prior:
    return load_prior("embedded")


def gains(restored: Tensor, given: Picture, image: Image.Image) -> dict[str, float]:
    """PSNR and LPIPS of the JPEG, and what was gained."""
    truth, before = as_tensor(np.asarray(image) / 255), as_tensor(given.pixels)
    return {
        "jpeg_psnr": round(float(psnr(before, truth)), 4),
        "jpeg_lpips": round(float(lpips(before, truth)), 5),
        "psnr": round(float(psnr(restored, truth)), 4),
        "lpips": round(float(lpips(restored, truth)), 5),
    }


def trial(name: str, given: Picture, image: Image.Image) -> dict[str, float]:
    """One candidate on one JPEG."""
    method, steps, plugin, settings = CANDIDATES[name]
    problem = pose_picture(given, "jpeg", None, {}).problem
    sampler = Sampler(_prior(), method, plugin, steps, estimator=None, use_presets=False, **settings)
    return gains(((sampler.run(problem).images + 1) / 2).clamp(0, 1), given, image)


def chosen(look: str, given: Picture, image: Image.Image) -> dict[str, Any]:
    """What `leader restore --task jpeg` gives, and its verdict."""
    restored = prepare(given, "jpeg", prior=_prior(), look=look).run()
    assert restored.verdict is not None
    return {**gains(as_tensor(restored.array), given, image), "verdict": restored.verdict.level}


def stored(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {json.dumps(record["key"]): record for record in map(json.loads, lines)}


def _records(path: Path, keys: list[list[Any]], files: list[Path], measure: Any) -> None:
    """Measures what has no record yet; a key ends in quality, subsampling and the number of the photograph."""
    torch.set_num_threads(1)
    done = stored(path)
    path.parent.mkdir(exist_ok=True)
    for number, key in enumerate(keys):
        if json.dumps(key) in done:
            continue
        quality, subsampling, index = key[-3:]
        image = crop(files[index])
        started = time.perf_counter()
        found = measure(key[0], compressed(image, quality, subsampling), image)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **found, "s": round(time.perf_counter() - started, 2)}) + "\n")
        typer.echo(f"{number + 1} of {len(keys)}", err=True)


@app.command()
def run(images: Path, photographs: int = 8) -> None:
    """Run candidates on development photographs that are spread over the folder."""
    files = list_pictures(images)
    places = [k * len(files) // photographs for k in range(photographs)]
    keys = [[name, quality, "4:2:0", place] for place in places for quality in TRIED for name in CANDIDATES]
    _records(RECORDS, keys, files, trial)


@app.command()
def test(images: Path) -> None:
    """Run what was chosen on test photographs."""
    files = list_pictures(images)
    keys = [[look, q, s, i] for i in range(len(files)) for look in ("natural",) for q in QUALITIES for s in ("4:2:0", "4:4:4")]
    _records(TESTED, keys, files, chosen)


@app.command()
def table() -> None:
    """Print the gains of every candidate."""
    _print(RECORDS, "candidate", lambda key: (key[0], key[1]))


@app.command()
def tested() -> None:
    """Print the gains of what was chosen."""
    _print(TESTED, "sampling", lambda key: (key[2], key[1]))


@app.command()
def exact(images: Path, photographs: int = 8) -> None:
    """Print which share of the coefficients of luma and of chroma is found again exactly."""
    files = list_pictures(images)
    chosen_files = [files[k * len(files) // photographs] for k in range(photographs)]
    typer.echo("| quality | 4:4:4 luma | chroma | 4:2:2 luma | chroma | 4:2:0 luma | chroma |")
    typer.echo("| ---: |" + 6 * " ---: |")
    for quality in (10, 20, 40, 60, 75, 85, 90, 95, 98):
        typer.echo(f"| {quality} | {' | '.join(_shares(chosen_files, quality))} |")


@app.command()
def levels(images: Path, every: int = 2) -> None:
    """Print the error of the compression over that of rounding what was not rounded to zero: LEVEL of the task."""
    typer.echo("| side | quality | lowest | median | highest |")
    typer.echo("| ---: | ---: | ---: | ---: | ---: |")
    for side in (64, 192):
        for quality in (10, 20, 40, 60, 75, 95):
            ratios = []
            for file in list_pictures(images)[::every]:
                image = crop(file).crop((0, 0, side, side))
                for subsampling in ("4:4:4", "4:2:0"):
                    given = compressed(image, quality, subsampling)
                    assert given.history is not None
                    error = float(np.sqrt(((given.pixels - np.asarray(image) / 255) ** 2).mean()))
                    ratios.append(error / read_coefficients(given.pixels, given.history).rounding_error())
            low, middle, high = np.quantile(ratios, [0, 0.5, 1])
            typer.echo(f"| {side} | {quality} | {low:.2f} | {middle:.2f} | {high:.2f} |")


def _shares(files: list[Path], quality: int) -> Iterator[str]:
    for subsampling in SUBSAMPLINGS:
        luma, chroma = [], []
        for file in files:
            given = compressed(crop(file), quality, subsampling)
            assert given.history is not None
            first, *others = read_coefficients(given.pixels, given.history).planes
            luma.append(float(first.exact.mean()))
            chroma += [float(plane.exact.mean()) for plane in others]
        yield f"{100 * mean(luma):.1f} %"
        yield f"{100 * mean(chroma):.1f} %"


def _print(path: Path, title: str, row: Any) -> None:
    rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for record in stored(path).values():
        rows.setdefault(row(record["key"]), []).append(record)
    typer.echo(f"| {title} | quality | pictures | JPEG | PSNR gained | worst | LPIPS changed | s |")
    typer.echo("| --- | ---: | ---: | ---: | --- | ---: | --- | ---: |")
    for (name, quality), found in sorted(rows.items()):
        change = [record["psnr"] - record["jpeg_psnr"] for record in found]
        look = [record["lpips"] - record["jpeg_lpips"] for record in found]
        (low, high), (less, more) = bootstrap_interval(change), bootstrap_interval(look)
        typer.echo(
            f"| {name} | {quality} | {len(found)} | {mean(record['jpeg_psnr'] for record in found):.2f} | {mean(change):+.2f} "
            f"[{low:+.2f}, {high:+.2f}] | {min(change):+.2f} | {mean(look):+.3f} [{less:+.3f}, {more:+.3f}] | "
            f"{mean(record['s'] for record in found):.1f} |"
        )


if __name__ == "__main__":
    app()
