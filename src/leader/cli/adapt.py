"""`leader adapt`: everything that belongs to a checkpoint of one's own, fitted by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leader.cli.console import to_stderr, to_stdout
from leader.cli.errors import INTERRUPTED
from leader.cli.priors import Checkpoint
from leader.cli.training import check_folder
from leader.cli.trust import Jobs, check_minutes, make_run_engine
from leader.train import defaults

EXAMPLE = "Example: leader adapt my-model.safetensors --data photos"


def adapt(
    checkpoint: Checkpoint,
    data: Annotated[Path, typer.Option(help="A folder of pictures of the kind it knows, 30 or more.")],
    minutes: Annotated[float, typer.Option(help="Time for everything; more is better.", min=0.0)] = defaults.ADAPT_MINUTES,
    seed: Annotated[int, typer.Option(help="Chooses crops, tasks and noise.", min=0)] = defaults.SEED,
    jobs: Jobs = None,
    again: Annotated[bool, typer.Option("--again", help="Begin anew; by default a stopped command goes on.")] = False,
) -> None:
    """Fits to a checkpoint what restoring with it needs: variance, spectrum, precision, SATP's eta, referee and factors."""
    from leader.train.adapt import adapt as fit
    from leader.train.adapt import plan_adaptation

    check_folder(data)
    check_minutes(minutes)
    plan = plan_adaptation(checkpoint, data, 60 * minutes, seed, to_stderr)
    try:
        fit(plan, lambda: make_run_engine(jobs), to_stderr, again)
    except KeyboardInterrupt as error:
        to_stderr("Interrupted: what is done is kept, and the same command goes on.")
        raise typer.Exit(INTERRUPTED) from error
    to_stderr(f"Restore with it: leader restore IN OUT --prior {checkpoint}")
    to_stdout(str(plan.home))
