"""Which kernel made a thumbnail: the table is fitted to photographs, and how often and how surely it is right is measured.

    python benchmarks/thumbnails.py fit photos/train
    python benchmarks/thumbnails.py measure photos/val

Photographs are halved (which hides what their own compression did), random squares of them are reduced by Pillow's five
kernels, factors 2 to 8, to 32 to 96 pixels, half of them behind JPEG 50 to 96. `fit` writes forensics/size/thumbnails.json:
linear discriminants, the normal log-likelihoods of the features with one covariance for all kernels. `measure` prints, for
files with and without JPEG, the share recognised by kernel, the mean negative log-likelihood and how it changes with a
temperature; 1 means that the probabilities are honest. And how many the verdict doubts (`leader.trust.limits.MISREAD`),
where the likeliest kernel is taken.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image

from leader.forensics.size.thumbnails import KERNELS, features, probabilities
from leader.pictures import list_pictures
from leader.trust.limits import MISREAD

FACTORS = (2, 3, 4, 4, 4, 6, 8)
SIDES = (32, 48, 64, 96)
RIDGE = 1e-4
"""Of the covariance's diagonal, added to it."""

app = typer.Typer(add_completion=False)


def halved(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGB")
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def behind_jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def thumbnails(folder: Path, each: int) -> Iterator[tuple[str, bool, NDArray[np.float64]]]:
    """(kernel, whether compressed, features) of `each` squares of every photograph, by every kernel."""
    rng = np.random.default_rng(0)
    for path in list_pictures(folder):
        photograph = halved(path)
        for number in range(each):
            factor = int(rng.choice(FACTORS))
            side = min(int(rng.choice(SIDES)) * factor, min(photograph.size) // factor * factor)
            left, top = (int((length - side) * place) for length, place in zip(photograph.size, rng.random(2)))
            square = photograph.crop((left, top, left + side, top + side))
            quality = int(rng.integers(50, 97)) if number % 2 else None
            for name in KERNELS:
                small = square.resize((side // factor, side // factor), Image.Resampling[name.upper()])
                seen = small if quality is None else behind_jpeg(small, quality)
                yield name, quality is not None, features(np.asarray(seen) / 255)


@app.command()
def fit(folder: Path, each: int = 6) -> None:
    """Fits the table to a folder of photographs."""
    rows = list(thumbnails(folder, each))
    table: dict[str, Any] = {}
    for kind, wanted in (("plain", False), ("compressed", True)):
        groups = {name: np.array([x for n, c, x in rows if n == name and c == wanted]) for name in KERNELS}
        means = {name: group.mean(0) for name, group in groups.items()}
        covariance = np.mean([np.cov(group.T) for group in groups.values()], axis=0)
        covariance += RIDGE * np.diag(np.diag(covariance))
        table[kind] = {}
        for name, mean in means.items():
            weights = np.linalg.solve(covariance, mean - means["bicubic"])  # what is common to all says nothing
            constant = -0.5 * float(weights @ (mean + means["bicubic"]))
            table[kind][name] = {"constant": round(constant, 5), "weights": [float(f"{w:.6g}") for w in weights]}
    file = Path(str(resources.files("leader.forensics.size") / "thumbnails.json"))
    file.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    typer.echo(f"{len(rows)} thumbnails -> {file.name}")


@app.command()
def measure(folder: Path, each: int = 8) -> None:
    """Prints how well the kernels of other photographs are recognised."""
    names = list(KERNELS)
    rows = [(names.index(name), c, np.array(list(probabilities(x, c).values()))) for name, c, x in thumbnails(folder, each)]
    for kind, wanted in (("PNG", False), ("JPEG 50 to 96", True)):
        truth = np.array([t for t, c, _ in rows if c == wanted])
        chances = np.array([p for _, c, p in rows if c == wanted])
        guess = chances.argmax(1)
        typer.echo(f"\n{kind}: {100 * (guess == truth).mean():.0f} % of {len(truth)} recognised")
        typer.echo("| made by | " + " | ".join(f"taken for {name}" for name in names) + " |")
        typer.echo("|---" * (len(names) + 1) + "|")
        for index, name in enumerate(names):
            counts = [f"{100 * (guess[truth == index] == other).mean():.0f} %" for other in range(len(names))]
            typer.echo(f"| {name} | " + " | ".join(counts) + " |")
        for temperature in (0.75, 1.0, 1.25, 1.5):
            scaled = np.log(chances.clip(1e-12)) / temperature
            scaled -= np.logaddexp.reduce(scaled, axis=1)[:, None]
            typer.echo(f"temperature {temperature}: {-scaled[np.arange(len(truth)), truth].mean():.3f} nats")
        typer.echo(doubted(names, truth, chances))


def doubted(names: list[str], truth: NDArray[np.intp], chances: NDArray[np.float64]) -> str:
    """How many of each kernel [N] the verdict doubts by probabilities [N, kernels], and how many misread ones it does not."""
    nearest = names.index("nearest")
    taken = chances.argmax(1) == nearest
    doubt = np.where(taken, 1 - chances[:, nearest], chances[:, nearest]) > MISREAD.doubtful
    said = ", ".join(f"{name} {100 * doubt[truth == index].mean():.0f} %" for index, name in enumerate(names))
    wrong = taken != (truth == nearest)
    return f"doubtful: {said}; of {wrong.sum()} misread ones {(wrong & ~doubt).sum()} are not"


if __name__ == "__main__":
    app()
