"""Which kernel made a thumbnail: the table is fitted to photographs, and how often and how surely it is right is measured.

    python benchmarks/thumbnails.py fit photos/train
    python benchmarks/thumbnails.py measure photos/val

Photographs are halved (which hides what their own compression did), random squares of them are reduced by Pillow's five
kernels, factors 4/3 to 8, to 32 to 96 pixels, half of them behind JPEG 50 to 96. `fit` writes forensics/size/thumbnails.json: a
network of two hidden layers on the features, stopped short of learning the photographs. `measure` prints, for both kinds
of files, the share recognised by kernel, the mean negative log-likelihood and how it changes with a temperature; 1 means that
the probabilities are honest. Then how often nearest neighbour is claimed, rightly and wrongly, by the probability asked for,
and how many the verdict doubts (`leader.trust.limits.MISREAD`). What a wrong guess costs: benchmarks/thumbnail_loss.py.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from leader.forensics.size.kernel_features import find_features
from leader.forensics.size.thumbnails import FARTHEST, KERNELS, SURE_OF_NEAREST, add_facts, probabilities
from leader.pictures import list_pictures
from leader.trust.limits import MISREAD

FACTORS = (4 / 3, 1.5, 1.5, 1.75, 2.5, 2, 2, 2, 3, 4, 4, 6, 8)
SIDES = (32, 36, 48, 64, 96)
WIDTH, DROPPED, EPOCHS, BATCH, RATE, DECAY = 32, 0.2, 40, 128, 2e-3, 0.1
"""Chosen on a tenth of the training photographs, by the likelihood."""

app = typer.Typer(add_completion=False)


def halved(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGB")
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def behind_jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def thumbnails(folder: Path, each: int) -> Iterator[tuple[str, float, bool, NDArray[np.float64]]]:
    """(kernel, factor, whether compressed, features) of `each` squares of every photograph, by every kernel."""
    rng = np.random.default_rng(0)
    for path in list_pictures(folder):
        photograph = halved(path)
        for factor in rng.choice(FACTORS, each).tolist():
            side = min(int(rng.choice(SIDES)), int(min(photograph.size) / factor))
            large = round(side * factor)
            left, top = (int((length - large) * place) for length, place in zip(photograph.size, rng.random(2)))
            square = photograph.crop((left, top, left + large, top + large))
            quality = int(rng.integers(50, 97)) if rng.random() < 0.5 else None
            for name in KERNELS:
                small = square.resize((side, side), Image.Resampling[name.upper()])
                seen = small if quality is None else behind_jpeg(small, quality)
                yield name, factor, quality is not None, find_features(np.asarray(seen) / 255, factor)


@app.command()
def fit(folder: Path, each: int = 7) -> None:
    """Fits the network to a folder of photographs."""
    rows = list(thumbnails(folder, each))
    found = torch.from_numpy(np.array([add_facts(features, factor, compressed) for _, factor, compressed, features in rows]))
    mean, spread = found.mean(0), found.std(0) + 1e-9
    normal = ((found - mean) / spread).clamp(-FARTHEST, FARTHEST).float()
    layers = fit_network(normal, torch.tensor([list(KERNELS).index(row[0]) for row in rows]))
    table = {
        "mean": rounded(mean),
        "spread": rounded(spread),
        "layers": [{"weights": rounded(layer.weight), "constants": rounded(layer.bias)} for layer in layers],
    }
    file = Path(str(resources.files("leader.forensics.size") / "thumbnails.json"))
    file.write_text(json.dumps(table) + "\n", encoding="utf-8")
    typer.echo(f"{len(rows)} thumbnails -> {file.name}")


def rounded(values: Tensor) -> Any:
    """As nested lists, to four digits."""
    return np.vectorize(lambda value: float(f"{value:.4g}"))(values.detach().numpy()).tolist()


def fit_network(found: Tensor, labels: Tensor) -> list[nn.Linear]:
    """The layers of the network that tells labels [N] from found [N, features]."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [nn.Linear(found.shape[1], WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, len(KERNELS))]
    between = [nn.ReLU(), nn.Dropout(DROPPED)]
    network = nn.Sequential(layers[0], *between, layers[1], *between, layers[2])
    search = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.CosineAnnealingLR(search, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(found)), BATCH):
            loss = functional.cross_entropy(network(found[batch]), labels[batch])
            search.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            search.step()
        pace.step()
    return layers


@app.command()
def measure(folder: Path, each: int = 26) -> None:
    """Prints how well the kernels of other photographs are recognised."""
    names = list(KERNELS)
    rows = [
        (names.index(name), compressed, np.array(list(probabilities(found, factor, compressed).values())))
        for name, factor, compressed, found in thumbnails(folder, each)
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
