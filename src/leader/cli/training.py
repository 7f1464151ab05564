"""`leader train`, `leader publish` and `leader fit-variance`."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from leader.cli.console import to_stderr, to_stdout
from leader.cli.errors import INTERRUPTED
from leader.errors import LeaderError, UsageError
from leader.progress import format_clock
from leader.train import defaults

TRAIN_EXAMPLE = "Example: leader train --images photos/train --validation photos/val --state run --hours 3"
PUBLISH_EXAMPLE = "Example: leader publish --state run --images photos/train --calibration photos/calib --out mine.safetensors"
FIT_EXAMPLE = "Example: leader fit-variance --prior my-model.safetensors --images photos"

RATE = f"Peak learning rate of the main body; heads: {defaults.HEAD_FACTOR:.0f} times it."
BATCH = f"Crops a step for each body; {defaults.MAIN_BATCH} and {defaults.EXPERT_BATCH} by default."

Images = Annotated[Path, typer.Option(help="A folder of photographs.")]


def train(
    images: Images,
    state: Annotated[Path, typer.Option(help="The folder for checkpoints, cache and log; an existing run is continued.")],
    validation: Annotated[Path | None, typer.Option(help="A folder of held-out photographs.")] = None,
    start: Annotated[str, typer.Option(help="Where to start: embedded, scratch, or the weights of another run.")] = "embedded",
    start_ffdnet: Annotated[Path | None, typer.Option(help="FFDNet's colour weights, for the low-noise expert.")] = None,
    hours: Annotated[float, typer.Option(help="Training time, over which the learning rate falls.", min=0.0)] = defaults.HOURS,
    parts: Annotated[str, typer.Option(help="Train these, freeze the others.")] = ",".join(defaults.PARTS),
    rate: Annotated[float, typer.Option(help=RATE, min=0.0)] = defaults.RATE,
    expert_rate: Annotated[float, typer.Option(help="Peak rate of the low-noise expert.", min=0.0)] = defaults.EXPERT_RATE,
    share_rate: Annotated[
        float, typer.Option(help="Peak rate of the share of the coarser level.", min=0.0)
    ] = defaults.SHARE_RATE,
    batch: Annotated[int | None, typer.Option(help=BATCH, min=1, max=4096)] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads; 1 is best beside other work.", min=1, max=1024)] = None,
    seed: Annotated[int, typer.Option(help="Seed of crops and noise.", min=0)] = defaults.SEED,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps.")] = defaults.DEVICE,
    autocast: Annotated[bool, typer.Option("--autocast", help="Mixed precision, for GPUs.")] = False,
    compile: Annotated[bool, typer.Option("--compile", help="torch.compile the networks.")] = False,
) -> None:
    """Trains the embedded prior, or one of your own, on a folder of photographs."""
    import torch

    from leader.train.run import TrainConfig, expert_task, main_task, train

    check_folder(images)
    main, expert = main_task(), expert_task()
    config = TrainConfig(
        images=images,
        state=state,
        validation=validation,
        start_pyramid=_start_weights(start),
        start_ffdnet=start_ffdnet,
        main=replace(main, batch=batch or main.batch),
        expert=replace(expert, batch=batch or expert.batch),
        parts=tuple(part.strip() for part in parts.split(",")),
        rate=rate,
        expert_rate=expert_rate,
        share_rate=share_rate,
        seconds=3600 * hours,
        seed=seed,
        device=device,
        autocast=autocast,
        compile=compile,
    )
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        train(config, say=lambda record: to_stderr(training_line(record, config.seconds)))
    except KeyboardInterrupt as error:
        to_stderr("Interrupted: the same command continues from the last checkpoint, if one was saved.")
        raise typer.Exit(INTERRUPTED) from error
    to_stdout(str(state))


def publish(
    state: Annotated[Path, typer.Option(help="The folder of a training run.")],
    images: Images,
    calibration: Annotated[Path, typer.Option(help="A folder of photographs that neither trained nor validated the prior.")],
    out: Annotated[Path, typer.Option(help="The .safetensors file to write; its settings are written beside it.")],
) -> None:
    """Calibrates a trained prior's variance and writes the pair of files that `--prior` takes."""
    from leader.train.publish import publish_state

    for folder in (state, images, calibration):
        check_folder(folder)
    publish_state(state, images, calibration, out, say=to_stderr)
    to_stdout(str(out))


def fit_variance(
    prior: Annotated[str, typer.Option(help="A checkpoint, a diffusers folder or a registered name.")],
    images: Images,
    out: Annotated[Path | None, typer.Option(help="The head's file; beside the checkpoint by default.")] = None,
    minutes: Annotated[float, typer.Option(help="Fitting time.", min=0.0)] = defaults.FIT_MINUTES,
    seed: Annotated[int, typer.Option(help="Seed of crops and noise.", min=0)] = defaults.SEED,
) -> None:
    """Fits a variance head to a frozen network, for the estimator `head`."""
    from leader.files import check_writable
    from leader.priors import catalogue
    from leader.priors.loading import load_prior
    from leader.priors.variance_head import SUFFIX, head_file, is_head
    from leader.train.tables import fit_tables
    from leader.train.variance import FitSettings
    from leader.train.variance import fit_variance as fit

    check_folder(images)
    check_minutes(minutes)
    source = catalogue.ENTRIES[prior].path if prior in catalogue.ENTRIES else Path(prior)
    if out is not None and out.suffix != ".safetensors":
        raise LeaderError(f"The head's file must end in .safetensors, best in {SUFFIX}; found {out}.")
    network = load_prior(prior, whole=True, head=False)  # even with a damaged head beside it
    if out is None and not source.exists():
        raise LeaderError(f"'{prior}' is not a file or folder: use --out to say where to write the head.")
    target = out or head_file(source)
    if target.exists() and not target.name.endswith(SUFFIX) and not is_head(target):
        raise LeaderError(f"{target} exists and is not a variance head: give another name with --out.")
    check_writable(target)
    settings = FitSettings(seconds=60 * minutes, steps=10**9, seed=seed)
    head, report = fit(network, images, target, settings, say=to_stderr)
    checkpoint = source if out is None else target.with_name(target.name.removesuffix(SUFFIX))
    crops = fit_tables(network, head, images, checkpoint, 30 * minutes)
    if crops == 0:
        to_stderr("There was no time for a spectrum, which 'start' and 'ucdc' need; give more --minutes.")
    else:
        to_stderr(f"The spectrum of {crops} crops and the rounding in half precision are beside it.")
    to_stderr(
        f"{report.answers} answers of the network and {report.steps} steps in {report.seconds:.0f} s; squared error over "
        f"predicted variance on held-out pictures: {report.ratio:.2f}."
    )
    to_stdout(str(target))


def _start_weights(name: str) -> Path | None:
    """The weights to start from; None for random ones."""
    from leader.priors.pyramid import embedded_file

    if name == "scratch":
        return None
    path = embedded_file() if name == "embedded" else Path(name)
    if not os.path.isfile(path):  # False for invalid file names, where Path.is_file raises
        raise LeaderError(f"--start takes 'embedded', 'scratch' or a .safetensors file; found '{name}'.")
    return path


def check_folder(folder: Path) -> None:
    """Rejects anything but a folder."""
    if not os.path.isdir(folder):
        raise LeaderError(f"{folder} is not a folder: give an existing one.")


def check_minutes(minutes: float) -> None:
    """Rejects a time that is not positive."""
    if not 0 < minutes < float("inf"):
        raise UsageError(f"--minutes must be above 0; found {minutes}.")


def training_line(record: Mapping[str, Any], seconds: float) -> str:
    """A record of the training log as a line to read; `seconds` is the length of the run."""
    step, left = record["step"], format_clock(max(0.0, seconds - record["seconds"]))
    if record["kind"] == "train":
        shown = [f"{key.removesuffix('_denoising')} {record[key]:.4f}" for key in record if key.endswith("_denoising")]
        ratios = [f"{record[key]:.2f}" for key in record if key.endswith("_ratio")]
        return f"step {step}, {left} left: loss {', '.join(shown)}; squared error / variance {', '.join(ratios)}"
    if record["kind"] == "validation":
        table = zip(record["sigma"], record["psnr"], record["ratio"], strict=True)
        shown = [f"{sigma}: {psnr:.2f} dB ({ratio:.2f})" for sigma, psnr, ratio in table]
        return f"step {step}, held-out pictures, PSNR (squared error / variance) by noise of 255: {', '.join(shown)}"
    verb = {"start": "Training starts", "resume": "Training goes on", "end": "Training ends"}[record["kind"]]
    return f"{verb} at step {step}." if record["kind"] == "end" else f"{verb} at step {step}, {left} left."
