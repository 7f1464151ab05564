"""How often the picture refutes the width of a kernel (`leader.forensics.blur.width`), right ones and others. No network.

    python benchmarks/kernel_width.py photos/val

The rows' blurs of benchmarks/real_rows.py on crops of 192 x 192 pixels; given are their kernels at 0.5 to 1.5 times the
width. "found" is the median width that is found, over the true one, where the given one is refuted; "ahead" the largest and
the median log-evidence of another width, as it is used: of a wider one where all are known, of a narrower one everywhere.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from real import crop
from real_rows import Pixels, Spoil, blurred, gaussian, line, write

from leader.forensics import NotExamined, examine
from leader.forensics.blur.periodogram import luma_plane
from leader.forensics.blur.width import AT_MOST_GIVEN, FACTORS, evidence_by_width, find_better_width
from leader.forensics.noise.estimate import NoiseEstimate
from leader.pictures import list_pictures, read_picture

GIVEN = (0.5, 0.75, 1.0, 1.25, 1.5)
BLURS = {"gaussian 1.5": (gaussian, 1.5), "gaussian 2.5": (gaussian, 2.5), "motion 9": (line, 9.0), "motion 15": (line, 15.0)}


def main(
    photographs: Annotated[Path, typer.Argument(help="A folder.")],
    every: Annotated[int, typer.Option(help="Of so many photographs one.")] = 1,
) -> None:
    typer.echo("| blur | file | given over true | refuted | found over true | ahead: largest, median |")
    typer.echo("|---|---|---|---|---|---|")
    pixels = [crop(path) for path in list_pictures(photographs)[::every]]
    for name, (make, width) in BLURS.items():
        for file in ("png", "jpeg 92", "jpeg 75"):
            pictures = [_picture(one, blurred(make(width)), file) for one in pixels]
            for share in GIVEN:
                kernel, found, ahead = torch.from_numpy(make(width * share)), [], []
                for luma, noise in pictures:
                    widths = evidence_by_width(luma, kernel, noise)
                    narrower = evidence_by_width(luma, kernel, noise, AT_MOST_GIVEN)
                    assert widths is not None and narrower is not None
                    ahead.append(float(max(widths[FACTORS >= 1].max(), narrower.max())))
                    better = find_better_width(luma, kernel, noise)
                    found += [] if better is None else [share * better.factor]
                middle = f"{np.median(found):.2f}" if found else ""
                typer.echo(
                    f"| {name} | {file} | {share:g} | {len(found)} of {len(pictures)} | {middle} | {max(ahead):.1f}, "
                    f"{np.median(ahead):.1f} |"
                )
    typer.echo(f"\nWidths tried: {FACTORS[0]:.2f} to {FACTORS[-1]:.2f} of the given one.")


def _picture(pixels: Pixels, spoil: Spoil, file: str) -> tuple[Pixels, NoiseEstimate]:
    """The luma and the noise of a degraded picture, read from its file."""
    with tempfile.TemporaryDirectory() as folder:
        picture = read_picture(write(spoil(pixels, np.random.default_rng(0)), file, Path(folder)))
    noise = examine(picture).noise
    assert not isinstance(noise, NotExamined)
    return luma_plane(picture.pixels), noise


if __name__ == "__main__":
    typer.run(main)
