"""Draws the figures of the documentation's idea pages with the software itself, into docs/images/.

    python -m tools.doc_figures              all of them (about a minute)
    python -m tools.doc_figures sigma front  some

sigma   what the network knows at four noise levels: its estimate, the spread it reports, and its true error
metric  one data step on a picture with holes: as the papers take it, and in the metric of Sigma
front   PSNR against LPIPS of every method with and without LEADer, from the records of Table 1 and of the related work
looks   one enlarged photograph by every quality and look
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "src/leader/samples/test"
OSPREY = SAMPLES / "BuddiesOfBudgie_5bf63903e7.png"
TIMES = (20, 80, 200, 400)
BASELINES = ("Measurement", "A⁺ y")
"""Rows of Table 1 that are no method: far off in these plots."""
FRONT_CROPS = 8
"""The first test crops, which the methods of the related work have too."""
Panel = tuple[NDArray[Any], str]


def read_crop(path: Path, left: int, top: int, side: int) -> Tensor:
    """A square of a photograph, [1, 3, side, side] in [-1, 1]."""
    image = Image.open(path).convert("RGB").crop((left, top, left + side, top + side))
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 127.5 - 1).permute(2, 0, 1)[None]


def show_image(x: Tensor) -> NDArray[Any]:
    """[1, 3, H, W] in [-1, 1] as [H, W, 3] in [0, 1]."""
    shown: NDArray[Any] = ((x[0].clamp(-1, 1) + 1) / 2).permute(1, 2, 0).numpy()
    return shown


def show_spread(std: Tensor) -> NDArray[Any]:
    """Standard deviations or absolute errors [1, 3, H, W] of [-1, 1] images, in the colours of the trust map."""
    from leader.trust.maps import colours

    joined = std[0].square().mean(0).sqrt() / 2
    return colours(joined.numpy())


def draw_panels(rows: Sequence[Sequence[Panel]], out: Path, side: float = 1.9) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(side * len(rows[0]), (side + 0.25) * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for panels, row in zip(rows, grid, strict=True):
        for (pixels, title), axes in zip(panels, row, strict=True):
            axes.imshow(pixels, interpolation="nearest")
            axes.set_title(title, fontsize=9)
            axes.axis("off")
    figure.savefig(out, dpi=110, pil_kwargs={"quality": 72} if out.suffix == ".webp" else {})


def make_noisy(x: Tensor, t: int, prior: Any, seed: int) -> Tensor:
    """x_t of a clean image x."""
    level = prior.schedule.level(torch.tensor([t]), x)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    return torch.as_tensor(level.signal * x + level.noise * noise)


def draw_sigma(out: Path) -> None:
    from leader import load_prior

    prior = load_prior("embedded")
    truth = read_crop(OSPREY, 20, 20, 160)
    columns: list[list[Panel]] = []
    for t in TIMES:
        noisy = make_noisy(truth, t, prior, seed=1)
        with torch.no_grad():
            answer = prior.predict(noisy, torch.tensor([t]))
        assert answer.variance is not None
        columns.append(
            [
                (show_image(noisy), f"x_t at t = {t}"),
                (show_image(answer.x0), "estimate of x0"),
                (show_spread(answer.variance.sqrt()), "square root of Sigma_t"),
                (show_spread((answer.x0 - truth).abs()), "true error"),
            ]
        )
    draw_panels(list(zip(*columns, strict=True)), out / "sigma.webp", side=1.7)


def draw_metric(out: Path) -> None:
    from leader import load_prior
    from leader.operators import Inpainting
    from leader.uncertainty.covariance import error_covariance
    from leader.uncertainty.metric import Calibrated, Euclidean

    prior, t = load_prior("embedded"), 600
    truth = read_crop(OSPREY, 20, 20, 128)
    known = torch.rand(128, 128, generator=torch.Generator().manual_seed(3)) < 0.2
    operator = Inpainting((3, 128, 128), known)
    y = operator.A(truth)
    with torch.no_grad():
        answer = prior.predict(make_noisy(truth, t, prior, seed=1), torch.tensor([t]))
        assert answer.variance is not None
        misfit = y - operator.A(answer.x0)
        plain = answer.x0 + Euclidean(operator).pinv(misfit)
        covariance = error_covariance(prior, t, answer.variance)
        metric = Calibrated(covariance, operator, float(answer.variance.mean()), 1.0, 12, 0.02, 0.01)
        calibrated = answer.x0 + metric.pinv(misfit)
    panels: list[list[Panel]] = [
        [
            (show_image(operator.AT(y)), "measured: one pixel in five"),
            (show_image(answer.x0), f"estimate of x0, {tell_psnr(answer.x0, truth)}"),
            (show_image(plain), f"papers' data step, {tell_psnr(plain, truth)}"),
            (show_image(calibrated), f"in the metric, {tell_psnr(calibrated, truth)}"),
        ]
    ]
    draw_panels(panels, out / "metric.webp", side=2.4)


def tell_psnr(x: Tensor, truth: Tensor) -> str:
    """PSNR of [-1, 1] images in words."""
    return f"{-10 * float(((x.clamp(-1, 1) - truth) / 2).square().mean().log10()):.1f} dB"


def read_table(name: str) -> list[dict[str, str]]:
    """The numbers of an experiment's first test crops, one a line."""
    command = [sys.executable, "-c", "from leader.cli import main; main()", "bench", "table", name, "--format", "csv"]
    answer = subprocess.run([*command, "--count", str(FRONT_CROPS)], capture_output=True, text=True, check=True)
    return list(csv.DictReader(answer.stdout.splitlines()))


def draw_front(out: Path) -> None:
    from matplotlib.figure import Figure

    means: dict[tuple[str, str], dict[str, float]] = {}
    related = read_table("related")
    beyond = {line["row"] for line in related} - {"DDNM"}
    for line in [*read_table("table1"), *related]:
        if line["number"] in ("psnr", "lpips") and int(line["images"]) == FRONT_CROPS:
            means.setdefault((line["task"], line["row"]), {})[line["number"]] = float(line["mean"])
    tasks = list(dict.fromkeys(task for task, _ in means))
    figure = Figure(figsize=(3.3 * 3, 3.1 * 2), layout="constrained")
    for task, axes in zip(tasks, figure.subplots(2, 3).flat, strict=False):
        found = {row: value for (where, row), value in means.items() if where == task and row not in BASELINES}
        for row, value in found.items():
            if "+" not in row:
                fill: Literal["none", "full"] = "none" if row in beyond else "full"
                axes.plot(value["psnr"], value["lpips"], "o", color="0.45", markersize=5, fillstyle=fill)
                axes.annotate(row, (value["psnr"], value["lpips"]), fontsize=6, xytext=(3, 3), textcoords="offset points")
            with_leader = found.get(f"{row} + LEADer")
            if with_leader:
                start, end = ((item["psnr"], item["lpips"]) for item in (value, with_leader))
                axes.plot(*end, "o", color="#1f9e89", markersize=4)
                axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#1f9e89", "lw": 1.3})
        axes.set_title(task, fontsize=9)
        axes.set_xlabel("PSNR in dB", fontsize=7)
        axes.set_ylabel("LPIPS (lower is better)", fontsize=7)
        axes.tick_params(labelsize=6)
        axes.invert_yaxis()
    for axes in figure.axes[len(tasks) :]:
        axes.axis("off")
    figure.savefig(out / "front.webp", dpi=110, pil_kwargs={"quality": 85})


def draw_looks(out: Path) -> None:
    import leader

    with tempfile.TemporaryDirectory() as folder:
        photograph = Image.open(OSPREY).convert("RGB")
        small = Path(folder) / "small.png"
        photograph.resize((64, 64), Image.Resampling.BICUBIC).save(small)
        box = (40, 24, 168, 152)
        rows: list[list[Panel]] = []
        for look in ("natural", "faithful"):
            given = np.asarray(photograph if look == "faithful" else Image.open(small).resize((256, 256)).convert("RGB").copy())
            first = (_cut(given, box), "truth" if look == "faithful" else "given, enlarged")
            made = [(q, leader.restore(small, "sr", factor=4, quality=q, look=look)) for q in ("draft", "standard", "best")]
            rows.append([first, *((_cut(item.array, box), f"{q}, {look}, {item.seconds:.0f} s") for q, item in made)])
    draw_panels(rows, out / "looks.webp", side=2.2)


def _cut(pixels: NDArray[Any], box: tuple[int, int, int, int]) -> NDArray[Any]:
    left, top, right, bottom = box
    return pixels[top:bottom, left:right]


FIGURES: dict[str, Callable[[Path], None]] = {
    "sigma": draw_sigma,
    "metric": draw_metric,
    "front": draw_front,
    "looks": draw_looks,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="figures to draw; all where none is named")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images")
    given = parser.parse_args(arguments)
    for name in given.names or FIGURES:
        FIGURES[name](given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
