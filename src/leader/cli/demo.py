"""leader demo: a photograph that comes with the package, degraded, restored and drawn."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leader import defaults
from leader.cli.console import to_stderr, to_stdout
from leader.cli.options import Force
from leader.errors import LeaderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PICTURES = ("degraded", "restored", "uncertainty", "figure", "path")
RUN = "run.json"
"""Stored beside the pictures: marks a folder as made by a demo, so that the next one may write into it."""


def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder to write into; created if missing.")] = Path("out"),
    steps: Annotated[int | None, typer.Option("--steps", "-n", help="Network steps; fewer are faster.")] = defaults.STEPS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random draw.")] = defaults.SEED,
    force: Force = False,
) -> None:
    """Degrades and restores a photograph that comes with the package, and draws every figure."""
    from leader.cli.results import check_outputs, write_run
    from leader.cli.running import run_and_tell
    from leader.files import replacing
    from leader.pictures import figures, read_picture
    from leader.restoration.degrade import degrade_file as spoil
    from leader.restoration.restore import prepare
    from leader.samples import demo_photograph

    paths = {name: out / f"{name}.png" for name in PICTURES}
    figures.check_figure(paths["figure"])
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LeaderError(f"The folder {out} cannot be created ({error.strerror}); choose another.") from error
    run = out / RUN
    check_outputs({}, {**paths, "run": run}, force or _is_of_a_demo(run))
    with demo_photograph() as original, tempfile.TemporaryDirectory() as folder:
        truth = read_picture(original)
        degraded = Path(folder) / "degraded.png"
        spoil(original, degraded, "sr", sigma=0.02, seed=seed)
        restored = run_and_tell(prepare(degraded, "sr", steps=steps, seed=seed))
        content = degraded.read_bytes()
    write_run(run, restored)  # first: an interrupted demo can then be started again
    with replacing(paths["degraded"]) as temporary:
        temporary.write_bytes(content)
    restored.save(paths["restored"])
    spread = restored.uncertainty
    if spread is not None:
        figures.draw_map(paths["uncertainty"], spread)
    views = [("degraded", restored.given.pixels), ("restored", restored.array), ("original", truth.pixels)]
    figures.draw_side_by_side(paths["figure"], views, spread)
    figures.draw_path(paths["path"], next(iter(restored.result.trace.values())))
    to_stderr(_scores(restored.array, truth.pixels))
    for path in (*paths.values(), run):
        to_stdout(str(path))


def _scores(restored: NDArray[np.float32], truth: NDArray[np.float32]) -> str:
    """How close the picture is to the original, which a demo knows."""
    import torch

    from leader import metrics

    found, wanted = (torch.from_numpy(pixels).permute(2, 0, 1)[None] for pixels in (restored, truth))
    near, alike = float(metrics.psnr(found, wanted)), float(metrics.lpips(found, wanted))
    return f"Against the original: PSNR {near:.2f} dB, LPIPS {alike:.3f}."


def _is_of_a_demo(run: Path) -> bool:
    """Whether the folder holds the run of an earlier demo."""
    from leader.cli.settings import is_run, read_settings

    if not run.is_file():
        return False
    try:
        return is_run(read_settings(run))
    except LeaderError:
        return False
