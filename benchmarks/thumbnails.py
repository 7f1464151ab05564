"""Which kernel made a thumbnail: the table is fitted to photographs, and how often and how surely it is right is measured.

    python benchmarks/thumbnails.py fit photos/train
    python benchmarks/thumbnails.py measure photos/val
    python benchmarks/thumbnails.py alternation photos/train

Photographs are halved (which hides what their own compression did), random squares of them, some turned and some of a
smaller copy, are reduced by Pillow's five kernels and OpenCV's two without antialiasing, factors 4/3 to 8, to 36 to 72 pixels,
half of them behind JPEG 50 to 96. `fit` writes forensics/size/thumbnails.safetensors: a network of three
hidden layers on the features. `measure` prints, for both kinds of files, the share recognised by kernel, the mean negative
log-likelihood and how it changes with a temperature; 1 means that the probabilities are honest. Then how often nearest
neighbour is claimed, rightly and wrongly, by the probability asked for. What a wrong guess costs: benchmarks/thumbnail_loss.py.
"""

import math
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import typer
from common import compress, halve
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn import functional

from leader.forensics.size.kernel_features import FITTED_SIDES, find_features
from leader.forensics.size.thumbnails import (
    FARTHEST,
    KERNELS,
    OPENCVS,
    add_facts,
    kernel_chances,
    list_equal,
    probabilities,
    weigh_alternation,
)
from leader.operators.pillow_resize import pillow_matrix
from leader.pictures import list_pictures

FACTORS = (4 / 3, *(1.5,) * 3, 1.75, *(2,) * 4, 2.5, *(3,) * 3, *(4,) * 3, 6, 8)
DRAWS = 3
"""How often squares are drawn anew for the fit, each time from other seeds."""
WIDTH, DROPPED, EPOCHS, BATCH, RATE, DECAY = 160, 0.4, 24, 256, 2e-3, 0.1
"""Chosen by the likelihood of 500 thumbnails of validation photographs (that of `thumbnail_loss.py`)."""
COUNTED = (0, 200, 400, 600, 800, 1000)
PILLOWS = tuple(name for name in KERNELS if name not in OPENCVS)
SMALLER, SMALLEST = 0.25, 0.6
"""Share of the squares that are taken of a smaller copy of the photograph, and the smallest copy."""

app = typer.Typer(add_completion=False)


def without_antialiasing(pixels: NDArray[np.uint8], size: tuple[int, int], kernel: str) -> Image.Image:
    """cv2.resize of pixels [H, W, 3] to (width, height) by one of OPENCVS; exact but for the rounding."""
    down, across = (pillow_matrix(length, count, kernel).numpy() for length, count in zip(pixels.shape, size[::-1]))
    made = np.einsum("ri,ijk,cj->rck", down, pixels.astype(np.float64), across, optimize=True)
    return Image.fromarray(made.round().clip(0, 255).astype(np.uint8))


def draw_square(photograph: Image.Image, factor: float, rng: np.random.Generator) -> NDArray[np.uint8] | None:
    """A random square of a photograph, turned, and sometimes of a smaller copy; None if it is too small."""
    large = round(FITTED_SIDES[factor] * factor)
    chosen = photograph
    if rng.random() < SMALLER:
        share, kernel = rng.uniform(SMALLEST, 1), Image.Resampling[str(rng.choice(PILLOWS)).upper()]
        size = (round(photograph.width * share), round(photograph.height * share))
        chosen = photograph.resize(size, kernel) if int(min(size) / factor) >= FITTED_SIDES[factor] else photograph
    if large > min(chosen.size):
        return None
    left, top = (int((length - large) * place) for length, place in zip(chosen.size, rng.random(2)))
    square = np.asarray(chosen.crop((left, top, left + large, top + large)))
    return np.ascontiguousarray(np.rot90(square, int(rng.integers(4))))


def draw_quality(rng: np.random.Generator) -> int | None:
    """None for a PNG, 75 in every third JPEG or so."""
    draw = rng.random()
    if draw < 0.5:
        return None
    return 75 if draw < 0.65 else int(rng.integers(50, 97))


def thumbnails(folder: Path, each: int, seed: int, cut: int = 0) -> Iterator[tuple[str, float, bool, NDArray[np.float64]]]:
    """(kernel, factor, whether compressed, pixels) of `each` squares of every photograph, by every kernel that is one.

    At factor 2 OpenCV's bilinear one is box, and at odd factors both of its are nearest neighbour.

    cut  pixels by which the squares are smaller than their thumbnails and the factor say
    """
    rng = np.random.default_rng(seed)
    for path in list_pictures(folder):
        photograph = halve(path)
        for _ in range(each):
            factor = FACTORS[rng.integers(len(FACTORS))]
            square = draw_square(photograph, factor, rng)
            if square is None:
                continue
            square = square[: len(square) - cut, : len(square) - cut]
            quality, side = draw_quality(rng), FITTED_SIDES[factor]
            for name in (name for name in KERNELS if name not in list_equal(factor)):
                if name in OPENCVS:
                    small = without_antialiasing(square, (side, side), name)
                else:
                    small = Image.fromarray(square).resize((side, side), Image.Resampling[name.upper()])
                seen = small if quality is None else compress(small, quality)
                yield name, factor, quality is not None, np.asarray(seen) / 255


def draw_features(folder: Path, each: int, seed: int) -> Iterator[tuple[str, float, bool, NDArray[np.float32]]]:
    for name, factor, compressed, pixels in thumbnails(folder, each, seed):
        yield name, factor, compressed, find_features(pixels, factor).astype(np.float32)


@app.command()
def fit(folder: Path, each: int = 12) -> None:
    draws = (sorted(draw_features(folder, each, 1 + draw), key=lambda row: row[1]) for draw in range(DRAWS))
    rows = [row for draw in draws for row in draw]
    found = np.array([add_facts(features, factor, compressed) for _, factor, compressed, features in rows])
    mean, spread = found.mean(0), found.std(0) + 1e-9
    normal = torch.from_numpy(((found - mean) / spread).clip(-FARTHEST, FARTHEST)).float()
    possible = torch.tensor([[name not in list_equal(factor) for name in KERNELS] for _, factor, *_ in rows])
    layers = fit_network(normal, torch.tensor([list(KERNELS).index(row[0]) for row in rows]), possible)
    table = {"mean": torch.from_numpy(mean), "spread": torch.from_numpy(spread)}
    for number, layer in enumerate(layers):
        table |= {f"weights{number}": layer.weight, f"constants{number}": layer.bias}
    file = Path(str(resources.files("leader.forensics.size") / "thumbnails.safetensors"))
    save_file({name: values.detach().numpy().astype(kind(name)) for name, values in table.items()}, file)
    typer.echo(f"{len(rows)} thumbnails -> {file.name}")


def kind(name: str) -> type[np.floating]:
    """Half precision for the layers; the mean and the spread of the inputs reach beyond it."""
    return np.float32 if name in ("mean", "spread") else np.float16


def fit_network(found: Tensor, labels: Tensor, possible: Tensor) -> list[nn.Linear]:
    """The layers of the network that tells labels [N] from found [N, features].

    possible [N, kernels]: whether it is a kernel of its own
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = (found.shape[1], WIDTH, WIDTH, WIDTH, len(KERNELS))
    layers = [nn.Linear(before, behind) for before, behind in pairwise(sizes)]
    between = [part for layer in layers[:-1] for part in (layer, nn.ReLU(), nn.Dropout(DROPPED))]
    network = nn.Sequential(*between, layers[-1])
    search = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.CosineAnnealingLR(search, EPOCHS * math.ceil(len(found) / BATCH))
    for _ in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(found)), BATCH):
            scores = torch.where(possible[batch], network(found[batch]), -1e9)
            loss = functional.cross_entropy(scores, labels[batch])
            search.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            search.step()
            pace.step()
    return layers


@app.command()
def measure(folder: Path, each: int = 12) -> None:
    """Prints how well Pillow's kernels are recognised on other photographs; OpenCV's counts as nearest neighbour."""
    names = list(PILLOWS)
    rows = [
        (names.index(name), compressed, count_together(kernel_chances(pixels, factor, compressed)))
        for name, factor, compressed, pixels in thumbnails(folder, each, seed=0)
        if name in PILLOWS
    ]
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
        for sure in (0.5, 0.7, 0.8, 0.9):
            claimed = chances[:, names.index("nearest")] >= sure
            right, wrong = (100 * claimed[(truth == names.index("nearest")) == same].mean() for same in (True, False))
            typer.echo(f"nearest claimed from {sure:.2f} on: {right:.0f} % of its thumbnails, {wrong:.2f} % of the others")


@app.command()
def alternation(folder: Path, each: int = 1) -> None:
    """Prints how many pixels of the alternation should count: at factors that are not whole, in thumbnails without JPEG."""
    names = list(PILLOWS)
    typer.echo("nats by the number that counts: " + ", ".join(map(str, COUNTED)))
    for words, cut in (("sizes as the factor says", 0), ("a pixel less, lost in rounding", 1)):
        lost = []
        for name, factor, compressed, pixels in thumbnails(folder, each, 0, cut):
            if name in PILLOWS and factor != int(factor) and not compressed:
                chances = probabilities(find_features(pixels, factor), factor, compressed)
                weighed = (count_together(weigh_alternation(chances, pixels, factor, counted)) for counted in COUNTED)
                lost.append([-math.log(max(chance[names.index(name)], 1e-12)) for chance in weighed])
        typer.echo(f"{words}: {', '.join(f'{nats:.2f}' for nats in np.mean(lost, axis=0))} ({len(lost)} thumbnails)")


def count_together(chances: dict[str, float]) -> NDArray[np.float64]:
    """[5], of PILLOWS: that of nearest neighbour with those of the others that leave pixels out."""
    left = sum(chances[name] for name in OPENCVS)
    return np.array([chances[name] + (left if name == "nearest" else 0) for name in PILLOWS])


if __name__ == "__main__":
    app()
