"""leader degrade: what a bad camera would have made of a good picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leader import defaults
from leader.cli import options
from leader.cli.console import to_stderr, to_stdout

EXAMPLES = """
Examples:

    leader degrade photo.jpg small.png --task sr --factor 4 --sigma 0.02

    leader degrade photo.jpg shaken.png --task deblur-motion --kernel motion:3

    leader degrade photo.png holes.npz --task inpaint --mask random:0.5

    leader degrade photo.png blocky.jpg --task jpeg --quality 20

    leader degrade square.png measured.npz --task cs --ratio 0.25 --sigma 0.05
"""


def degrade(
    picture: Annotated[Path, typer.Argument(metavar="IN", help="A good picture.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A picture, or a container (.npz) that keeps everything.")],
    task: options.RequiredTask,
    sigma: Annotated[str, typer.Option("--sigma", metavar="NUMBER", help="Noise to add, 0.05 = 5 % of the range.")] = "0",
    seed: options.Seed = defaults.SEED,
    kernel: options.Kernel = None,
    mask: options.Mask = None,
    factor: options.Factor = None,
    down: options.Down = None,
    ratio: Annotated[float | None, typer.Option("--ratio", help="Share of coefficients cs measures (0.25).")] = None,
    order: Annotated[str | None, typer.Option("--order", help="Which ones: random, sequency or published.")] = None,
    quality: Annotated[int | None, typer.Option("--quality", min=1, max=100, help="Of the JPEG that jpeg makes (75).")] = None,
    force: options.Force = False,
) -> None:
    """Degrades a good picture, to try a restoration on known ground."""
    from leader.cli.outputs import check_outputs, existing_files
    from leader.files import check_readable
    from leader.restoration.arguments import as_sigma
    from leader.restoration.degrade import degrade_file as spoil

    check_outputs(existing_files({"IN": picture, "--mask": mask, "--kernel": kernel}), {"OUT": out}, force)
    check_readable(picture, "picture")
    notes = spoil(
        picture,
        out,
        task,
        sigma=as_sigma(sigma),
        seed=seed,
        kernel=kernel,
        mask=mask,
        factor=factor,
        down=down,
        ratio=ratio,
        order=order,
        quality=quality,
    )
    for note in notes:
        to_stderr(note)
    to_stdout(str(out))
