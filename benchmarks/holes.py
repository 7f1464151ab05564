"""Square holes in photographs: beside OpenCV's Telea and scikit-image's biharmonic fill, and how deep a fill can be believed.

    python benchmarks/holes.py run --images photos/val --count 8          resumes; records in benchmarks/records/holes.jsonl
    python benchmarks/holes.py table --part val                           PSNR, LPIPS and verdicts beside the two others
    python benchmarks/holes.py blend photos/val --count 8                 by the share of patches in the answer
    python benchmarks/holes.py distance photos/val --count 4              errors by distance from the nearest known pixel
    python benchmarks/holes.py maps photos/val                            what the trust map does not know, by task

Crops of 192 x 192 pixels from the middle of photographs at half size, kept in 8 bits; the hole lies anywhere that leaves 16
pixels around it. The noise level is not given. OpenCV and scikit-image need not be installed: their columns are then left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import torch
import typer
from common import Record, add_missing, locate_records, print_rows, read_records
from torch import Tensor
from torch.nn import functional as F

import leader
from leader.bench.images import list_images, load_image
from leader.metrics import lpips, psnr
from leader.operators.pointwise import box_mask
from leader.trust.limits import FAR
from leader.trust.maps import LAST
from leader.trust.residual import find_far_pixels

RECORDS = locate_records("holes")
SIDE, MARGIN = 192, 16
HOLES = (32, 64, 96)
SIZES = (8, 16, 24, 32, 64, 96)
"""Holes in which errors by distance are measured."""
OURS = ("natural", "faithful")

app = typer.Typer(add_completion=False, help=__doc__)


def crops(folder: Path, count: int) -> list[tuple[str, Tensor]]:
    """(name, [1, 3, 192, 192] in [0, 1]) of photographs that are evenly spaced in a folder."""
    files = list_images(str(folder))
    chosen = [files[number * len(files) // count] for number in range(min(count, len(files)))]
    return [(file.name, load_image(file, "half", SIDE)) for file in chosen]


def mask_of(hole: int, index: int) -> Tensor:
    """[192, 192], 0 in a hole of hole x hole pixels, at another place in every photograph."""
    top, left = np.random.default_rng(1000 * hole + index).integers(MARGIN, SIDE - hole - MARGIN + 1, 2)
    return box_mask(SIDE, SIDE, int(top), int(left), hole, hole)


def fill_simply(given: Tensor, mask: Tensor, way: str) -> Tensor:
    """What another program makes of a picture [1, 3, H, W]."""
    pixels, hole = (255 * given[0].permute(1, 2, 0)).round().to(torch.uint8).numpy(), mask.numpy() == 0
    if way == "telea":
        import cv2

        filled = cv2.inpaint(pixels, 255 * hole.astype(np.uint8), 3, cv2.INPAINT_TELEA) / 255.0
    else:
        from skimage.restoration import inpaint_biharmonic

        filled = inpaint_biharmonic(pixels / 255.0, hole, channel_axis=-1)
    return torch.from_numpy(filled).permute(2, 0, 1)[None].float()


def restore(given: Tensor, mask: Tensor, look: str) -> tuple[Tensor, Record]:
    """The picture [1, 3, H, W] restored, and what became of it."""
    done = leader.restore(given[0], "inpaint", mask=mask.numpy(), look=look)
    assert done.verdict is not None and done.uncertainty is not None
    deep = find_far_pixels(mask[None] > 0, FAR).numpy()
    red = float((done.uncertainty[deep] * 255 * 1.6449 >= LAST - 0.01).mean()) if deep.any() else None
    codes = [reason.code for reason in done.verdict.reasons]
    fact = {"verdict": done.verdict.level, "codes": codes, "red": red, "seconds": done.seconds, "version": leader.__version__}
    return torch.from_numpy(done.array).permute(2, 0, 1)[None].float(), fact


def measure(truth: Tensor, mask: Tensor, way: str) -> Record:
    """The score of a hole filled in one way, and what else is known of it."""
    filled, facts = restore(truth * mask, mask, way) if way in OURS else (fill_simply(truth * mask, mask, way), {})
    return {**score(filled, truth), **facts}


def score(filled: Tensor, truth: Tensor) -> Record:
    """PSNR in dB and LPIPS of the whole picture, in 8 bits."""
    kept = (255 * filled.clamp(0, 1)).round() / 255
    return {"psnr": float(psnr(kept, truth)[0]), "lpips": float(lpips(kept, truth)[0])}


def list_jobs(images: Path, count: int, looks: list[str]) -> Iterator[tuple[Record, Callable[[], Record]]]:
    libraries = {"telea": "cv2", "biharmonic": "skimage"}
    ways = [*(way for way, library in libraries.items() if find_spec(library)), *looks]
    for index, (name, truth) in enumerate(crops(images, count)):
        for hole in HOLES:
            for way in ways:
                what = {"part": images.name, "photograph": name, "hole": hole, "way": way}
                yield what, partial(measure, truth, mask_of(hole, index), way)


@app.command()
def run(
    images: Annotated[Path, typer.Option(help="A folder of photographs; its name is that of the part.")],
    count: int = 8,
    looks: str = "natural",
) -> None:
    add_missing(RECORDS, list_jobs(images, count, looks.split(",")))


@app.command()
def blend(images: Path, count: int = 8, holes: str = "40,64,96", shares: str = "0,0.3,0.4,0.5,0.6,0.7,0.8,1") -> None:
    """PSNR and LPIPS by the share of patches in the answer; the rest is the network's."""
    groups: dict[tuple[int, float], list[Record]] = defaultdict(list)
    for index, (_, truth) in enumerate(crops(images, count)):
        for hole in map(int, holes.split(",")):
            mask = mask_of(hole, index)
            network, patches = (
                torch.from_numpy(
                    leader.restore((truth * mask)[0], "inpaint", mask=mask, check=False, settings={"patches": setting}).array
                ).permute(2, 0, 1)[None]
                for setting in ({"wide": SIDE}, {"share": 1.0})
            )
            for share in map(float, shares.split(",")):
                groups[hole, share].append(score(torch.lerp(network, patches, share), truth))
    print("| hole | share | PSNR | LPIPS |\n| ---: | ---: | ---: | ---: |")
    for (hole, share), rows in sorted(groups.items()):
        means = f"{mean(r['psnr'] for r in rows):.2f}", f"{mean(r['lpips'] for r in rows):.4f}"
        print_rows([[hole, f"{share:.1f}", *means]])


@app.command()
def table(part: str = "val") -> None:
    """Means by hole and way; how often the verdict says "invented", and how much of what is invented is red on the map."""
    groups: dict[tuple[int, str], list[Record]] = defaultdict(list)
    for record in read_records(RECORDS):
        if record["part"] == part:
            groups[record["hole"], record["way"]].append(record)
    print("| hole | way | pictures | PSNR | LPIPS | invented | red |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for (hole, way), rows in sorted(groups.items()):
        said, red = "", ""
        if way in OURS:
            said = f"{100 * mean('invented' in r['codes'] and r['verdict'] != 'fine' for r in rows):.0f} %"
            red = f"{100 * mean(r['red'] or 0.0 for r in rows):.0f} %"
        means = f"{mean(r['psnr'] for r in rows):.2f}", f"{mean(r['lpips'] for r in rows):.4f}"
        print_rows([[hole, way, len(rows), *means, said, red]])


@app.command()
def distance(images: Path, count: int = 8) -> None:
    """The share of pixels, by distance from the nearest known one, that lie more than 40 grey levels from the truth."""
    off: dict[int, list[Tensor]] = defaultdict(list)
    for index, (_, truth) in enumerate(crops(images, count)):
        for hole in SIZES:
            mask = mask_of(hole, index)
            filled = restore(truth * mask, mask, "natural")[0]
            error = 255 * (filled - truth).abs().mean(1)[0]
            known, steps = mask[None, None], 0
            while not bool(known.all()):
                wider = F.max_pool2d(known, 3, 1, 1)
                steps += 1
                off[steps].append((error[(wider > known)[0, 0]] > LAST).float().mean()[None])
                known = wider
    for steps, shares in sorted(off.items()):
        print(f"{steps:3d} pixels: {100 * float(torch.cat(shares).mean()):5.1f} % of the pixels, {len(shares)} holes")


@app.command()
def maps(images: Path, count: int = 4) -> None:
    """The share of the picture that the trust map does not know to within 20 grey levels, by task."""
    for index, (name, truth) in enumerate(crops(images, count)):
        x = truth[..., 32:160, 32:160]
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(index))
        tasks: dict[str, tuple[Tensor, dict[str, Any]]] = {
            "noise 0.1": ((x + 0.1 * noise).clamp(0, 1), {"task": "denoise", "sigma": 0.1}),
            "noise 0.3": ((x + 0.3 * noise).clamp(0, 1), {"task": "denoise", "sigma": 0.3}),
            "enlarged": (F.avg_pool2d(x, 4), {"task": "sr", "factor": 4, "down": "box", "quality": "draft"}),
            "colourised": (x.mean(1, keepdim=True).expand_as(x), {"task": "colourise", "quality": "draft"}),
        }
        for task, (given, choices) in tasks.items():
            judged = leader.restore(given[0], **choices).verdict
            assert judged is not None
            print(f"{name} {task}: {judged.numbers['unsure']:.2f}, {judged.level}")


if __name__ == "__main__":
    app()
