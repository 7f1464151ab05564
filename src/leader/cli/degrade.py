"""leader degrade: degrades a good picture as a bad camera would."""

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Annotated

import typer

from leader import defaults
from leader.cli.console import to_stderr, to_stdout
from leader.cli.options import Force, borrow, with_options
from leader.restoration.request import word

EXAMPLES = """
Examples:

    leader degrade photo.jpg small.png --task sr --factor 4 --sigma 0.02

    leader degrade photo.jpg shaken.png --task deblur-motion --kernel motion:3

    leader degrade photo.png holes.npz --task inpaint --mask random:0.5

    leader degrade photo.png blocky.jpg --task jpeg --quality 20

    leader degrade square.png measured.npz --task cs --ratio 0.25 --sigma 0.05
"""


@dataclass(frozen=True)
class Degradation:
    """The degradation of a picture."""

    task: str = borrow("task", default=MISSING, help="What to do to the picture: see leader tasks.")
    sigma: float = borrow("sigma", default=0.0, help="Noise to add, 0.05 = 5 % of the range.")
    seed: int = borrow("seed", default=defaults.SEED)
    kernel: str | None = borrow("kernel")
    mask: str | None = borrow("mask")
    factor: float | None = borrow("factor")
    down: str | None = borrow("down")
    ratio: float | None = word(None, "Share of coefficients cs measures (0.25).", float)
    order: str | None = word(None, "Which ones: random, sequency or published.")
    quality: int | None = word(None, "Quality of the JPEG for the task jpeg (75).", int, least=1, most=100)


@with_options
def degrade(
    picture: Annotated[Path, typer.Argument(metavar="IN", help="A good picture.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A picture, or a container (.npz) that keeps everything.")],
    degradation: Degradation,
    force: Force = False,
) -> None:
    """Degrades a good picture, to test a restoration against a known original."""
    from leader.cli.results import check_outputs, existing_files
    from leader.files import check_readable
    from leader.restoration.degrade import degrade_file as spoil

    read = {"IN": picture, "--mask": degradation.mask, "--kernel": degradation.kernel}
    check_outputs(existing_files(read), {"OUT": out}, force)
    check_readable(picture, "picture")
    notes = spoil(picture, out, **vars(degradation))
    for note in notes:
        to_stderr(note)
    to_stdout(str(out))
