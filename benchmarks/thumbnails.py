"""Which kernel made a thumbnail: the table is fitted to photographs, and how often and how surely it is right is measured.

    python benchmarks/thumbnails.py fit photos/train
    python benchmarks/thumbnails.py measure photos/val

Photographs are halved (which hides what their own compression did), random squares of them, some turned and some of a
smaller copy, are reduced by Pillow's five kernels and every other one by OpenCV's two without antialiasing, factors 4/3 to 8,
to 32 to 96 pixels, half of them behind JPEG 50 to 96. `fit` writes forensics/size/thumbnails.safetensors: a network of three
hidden layers on the features. `measure` prints, for both kinds of files, the share recognised by kernel, the mean negative
log-likelihood and how it changes with a temperature; 1 means that the probabilities are honest. Then how often nearest
neighbour is claimed, rightly and wrongly, by the probability asked for, and how many the verdict doubts
(`leader.trust.limits.MISREAD`). What a wrong guess costs: benchmarks/thumbnail_loss.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn import functional

from leader.forensics.size.kernel_features import find_features
from leader.forensics.size.thumbnails import FARTHEST, KERNELS, SURE_OF_NEAREST, add_facts, probabilities
from leader.operators.pillow_resize import pillow_matrix
from leader.pictures import list_pictures
from leader.trust.limits import MISREAD

FACTORS = (4 / 3, 1.5, 1.5, 1.75, 2.5, 2, 2, 2, 3, 4, 4, 6, 8)
SIDES = (32, 36, 48, 64, 96)
WIDTH, DROPPED, EPOCHS, BATCH, RATE, DECAY = 160, 0.4, 24, 256, 2e-3, 0.1
"""Chosen by the likelihood of the calibration photographs."""
OPENCVS = "opencv-bilinear"
PILLOWS = tuple(name for name in KERNELS if name != OPENCVS)
SMALLER, SMALLEST = 0.25, 0.6
"""Share of the squares that are taken of a smaller copy of the photograph, and the smallest copy."""

app = typer.Typer(add_completion=False)


def halved(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGB")
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def behind_jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def without_antialiasing(pixels: NDArray[np.uint8], size: tuple[int, int], cubic: bool) -> Image.Image:
    """cv2.resize of pixels [H, W, 3] to (width, height) by INTER_LINEAR, or INTER_CUBIC; exact but for the rounding."""
    down, across = (
        cubic_matrix(length, count) if cubic else pillow_matrix(length, count, OPENCVS).numpy()
        for length, count in zip(pixels.shape, size[::-1])
    )
    made = np.einsum("ri,ijk,cj->rck", down, pixels.astype(np.float64), across, optimize=True)
    return Image.fromarray(made.round().clip(0, 255).astype(np.uint8))


def cubic_matrix(size: int, rows: int) -> NDArray[np.float64]:
    """[rows, size] of OpenCV's bicubic interpolation (a = -0.75), whose outermost pixels are repeated beyond the border."""
    places = (np.arange(rows) + 0.5) * size / rows - 0.5
    first = np.floor(places).astype(int)
    table = np.zeros((rows, size))
    for offset in range(-1, 3):
        d = np.abs(places - first - offset)
        near, far = (1.25 * d - 2.25) * d * d + 1, ((-0.75 * d + 3.75) * d - 6) * d + 3
        np.add.at(table, (np.arange(rows), (first + offset).clip(0, size - 1)), np.where(d <= 1, near, far))
    return table


def draw_square(photograph: Image.Image, factor: float, rng: np.random.Generator) -> tuple[NDArray[np.uint8], int]:
    """(a random square of a photograph, the side of its thumbnail), turned, and sometimes of a smaller copy."""
    if rng.random() < SMALLER:
        share, kernel = rng.uniform(SMALLEST, 1), Image.Resampling[str(rng.choice(PILLOWS)).upper()]
        photograph = photograph.resize((round(photograph.width * share), round(photograph.height * share)), kernel)
    side = min(int(rng.choice(SIDES)), int(min(photograph.size) / factor))
    large = round(side * factor)
    left, top = (int((length - large) * place) for length, place in zip(photograph.size, rng.random(2)))
    square = np.asarray(photograph.crop((left, top, left + large, top + large)))
    return np.ascontiguousarray(np.rot90(square, int(rng.integers(4)))), side


def thumbnails(folder: Path, each: int) -> Iterator[tuple[str, float, bool, NDArray[np.float64]]]:
    """(kernel, factor, whether compressed, features) of `each` squares of every photograph, by every kernel that is one.

    At factor 2 OpenCV's bilinear one is box, and at odd factors both of its are nearest neighbour.
    """
    rng = np.random.default_rng(0)
    for path in list_pictures(folder):
        photograph = halved(path)
        for factor in rng.choice(FACTORS, each).tolist():
            square, side = draw_square(photograph, factor, rng)
            quality = int(rng.integers(50, 97)) if rng.random() < 0.5 else None
            plain, cubic = rng.random(2) < 0.5
            for name in KERNELS if plain and factor % 2 != 1 else PILLOWS:
                if name == OPENCVS:
                    small = without_antialiasing(square, (side, side), bool(cubic) or factor == 2)
                else:
                    small = Image.fromarray(square).resize((side, side), Image.Resampling[name.upper()])
                seen = small if quality is None else behind_jpeg(small, quality)
                yield name, factor, quality is not None, find_features(np.asarray(seen) / 255, factor)


@app.command()
def fit(folder: Path, each: int = 24) -> None:
    """Fits the network to a folder of photographs."""
    rows = list(thumbnails(folder, each))
    found = torch.from_numpy(np.array([add_facts(features, factor, compressed) for _, factor, compressed, features in rows]))
    mean, spread = found.mean(0), found.std(0) + 1e-9
    normal = ((found - mean) / spread).clamp(-FARTHEST, FARTHEST).float()
    possible = torch.tensor([factor % 2 != 1 for _, factor, *_ in rows])
    layers = fit_network(normal, torch.tensor([list(KERNELS).index(row[0]) for row in rows]), possible)
    table = {"mean": mean, "spread": spread}
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

    possible [N]: whether OpenCV's is a kernel of its own
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = (found.shape[1], WIDTH, WIDTH, WIDTH, len(KERNELS))
    layers = [nn.Linear(before, behind) for before, behind in pairwise(sizes)]
    between = [part for layer in layers[:-1] for part in (layer, nn.ReLU(), nn.Dropout(DROPPED))]
    network = nn.Sequential(*between, layers[-1])
    search = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.CosineAnnealingLR(search, EPOCHS)
    opencvs = torch.arange(len(KERNELS)) == list(KERNELS).index(OPENCVS)
    for _ in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(found)), BATCH):
            scores = torch.where(possible[batch, None] | ~opencvs, network(found[batch]), -torch.inf)
            loss = functional.cross_entropy(scores, labels[batch])
            search.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            search.step()
        pace.step()
    return layers


@app.command()
def measure(folder: Path, each: int = 26) -> None:
    """Prints how well Pillow's kernels are recognised on other photographs; OpenCV's counts as nearest neighbour."""
    names = list(PILLOWS)
    rows = [
        (names.index(name), compressed, count_together(probabilities(found, factor, compressed)))
        for name, factor, compressed, found in thumbnails(folder, each)
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
        for sure in (0.5, 0.7, 0.8, SURE_OF_NEAREST):
            claimed = chances[:, names.index("nearest")] >= sure
            right, wrong = (100 * claimed[(truth == names.index("nearest")) == same].mean() for same in (True, False))
            typer.echo(f"nearest claimed from {sure:.2f} on: {right:.0f} % of its thumbnails, {wrong:.2f} % of the others")
        typer.echo(doubted(names, truth, chances))


def count_together(chances: dict[str, float]) -> NDArray[np.float64]:
    """[5], of PILLOWS: that of nearest neighbour with that of the other that leaves pixels out."""
    return np.array([chances[name] + (chances[OPENCVS] if name == "nearest" else 0) for name in PILLOWS])


def doubted(names: list[str], truth: NDArray[np.intp], chances: NDArray[np.float64]) -> str:
    """How many of each kernel [N] the verdict doubts by probabilities [N, kernels], and how many misread ones it does not."""
    nearest = names.index("nearest")
    taken = chances[:, nearest] >= SURE_OF_NEAREST
    doubt = np.where(taken, 1 - chances[:, nearest], chances[:, nearest]) > MISREAD.doubtful
    said = ", ".join(f"{name} {100 * doubt[truth == index].mean():.0f} %" for index, name in enumerate(names))
    wrong = taken != (truth == nearest)
    return f"doubtful: {said}; of {wrong.sum()} misread ones {(wrong & ~doubt).sum()} are not"


if __name__ == "__main__":
    app()
