"""`leader train` and `leader fit-variance`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leader.cli.console import to_stderr, to_stdout
from leader.errors import LeaderError

TRAIN_EXAMPLE = "Example: leader train --images photos/train --validation photos/val --state run --hours 3"
FIT_EXAMPLE = "Example: leader fit-variance --prior my-model.safetensors --images photos"

Images = Annotated[Path, typer.Option(help="A folder of photographs.")]


def train(
    images: Images,
    state: Annotated[Path, typer.Option(help="The folder for checkpoints, cache and log; an existing run goes on.")],
    validation: Annotated[Path | None, typer.Option(help="A folder of held-out photographs.")] = None,
    start: Annotated[Path | None, typer.Option(help="Weights of an earlier pyramid to start from.")] = None,
    start_ffdnet: Annotated[Path | None, typer.Option(help="FFDNet's colour weights, for the low-noise expert.")] = None,
    hours: Annotated[float, typer.Option(help="Training time; the learning rate falls over it.", min=0.0)] = 3.0,
    seed: Annotated[int, typer.Option(help="Chooses crops and noise.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps.")] = "cpu",
    autocast: Annotated[bool, typer.Option("--autocast", help="Mixed precision, for GPUs.")] = False,
    compile: Annotated[bool, typer.Option("--compile", help="torch.compile the networks.")] = False,
) -> None:
    """Trains the embedded prior, or one of your own, on a folder of photographs."""
    from leader.train.run import TrainConfig, train

    _check_folder(images)
    config = TrainConfig(
        images=images,
        state=state,
        validation=validation,
        start_pyramid=start,
        start_ffdnet=start_ffdnet,
        seconds=3600 * hours,
        seed=seed,
        device=device,
        autocast=autocast,
        compile=compile,
    )

    def say(record: dict[str, object]) -> None:
        shown = "  ".join(f"{key} {_short(value)}" for key, value in record.items() if key != "kind")
        to_stderr(f"{record.get('kind', 'train')}: {shown}")

    train(config, say=say)
    to_stdout(str(state))


def fit_variance(
    prior: Annotated[str, typer.Option(help="A checkpoint, a diffusers folder or a registered name.")],
    images: Images,
    out: Annotated[Path | None, typer.Option(help="The head's file; beside the checkpoint by default.")] = None,
    minutes: Annotated[float, typer.Option(help="Fitting time.", min=0.0)] = 5.0,
    seed: Annotated[int, typer.Option(help="Chooses crops and noise.")] = 0,
) -> None:
    """Fits a variance head to a frozen network, which the estimator `head` uses from then on."""
    from leader.priors import registry
    from leader.priors.loading import load_prior
    from leader.train.variance import FitSettings
    from leader.train.variance import fit_variance as fit
    from leader.uncertainty.head import beside

    _check_folder(images)
    source = registry.ENTRIES[prior].path if prior in registry.ENTRIES else Path(prior)
    if out is None and not source.exists():
        raise LeaderError(f"'{prior}' is not a file or folder of its own: say with --out where the head shall be written.")
    target = out or beside(source)
    settings = FitSettings(seconds=60 * minutes, steps=10**9, seed=seed)
    _, report = fit(load_prior(prior, whole=True), images, target, settings, say=to_stderr)
    to_stderr(
        f"{report.steps} steps in {report.seconds:.0f} s; squared error over predicted variance on held-out "
        f"pictures: {report.ratio:.2f}."
    )
    to_stdout(str(target))


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise LeaderError(f"{folder} is not a folder of photographs: give an existing one with --images.")


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    return str(value)
