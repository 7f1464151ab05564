"""Commands that fit parts to a prior: `leader fit-trust`, `calibrate`, `calibrate-satp`, and `adapt` for all of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leader.cli.console import to_stderr, to_stdout
from leader.cli.errors import INTERRUPTED
from leader.cli.options import with_options
from leader.cli.priors import Checkpoint
from leader.cli.training import Images, check_folder, check_minutes
from leader.errors import LeaderError, UsageError
from leader.progress import format_duration
from leader.restoration.request import word
from leader.train import defaults

if TYPE_CHECKING:
    from leader.engines import Engine
    from leader.train.trust_runs import RunCase

FIT_EXAMPLE = "Example: leader fit-trust --prior my-model.safetensors --images photos/train"
CALIBRATE_EXAMPLE = "Example: leader calibrate --prior my-model.safetensors --images photos/held-out"
SATP_EXAMPLE = "Example: leader calibrate-satp --prior my-model.safetensors --images photos/held-out > satp.toml"
ADAPT_EXAMPLE = "Example: leader adapt my-model.safetensors --data photos"

PriorName = Annotated[str, typer.Option("--prior", help="A checkpoint, a diffusers folder or a registered name.")]
Jobs = Annotated[int | None, typer.Option(help="Worker processes for the runs; 0 (the default) uses none.", min=0)]


@dataclass(frozen=True)
class Runs:
    """The runs whose truth is known: of which prior, where and for how long they are made."""

    prior: str = word("embedded", "A checkpoint, a diffusers folder or a registered name.")
    minutes: float = word(
        defaults.TRUST_MINUTES, "Time for runs; the fit of a referee takes a third of it more.", float, least=0
    )
    store: Path | None = word(None, "Keep the runs in this folder, to continue a stopped command; else discard them.", Path)
    jobs: int | None = word(None, "Worker processes for the runs; 0 (the default) uses none.", int, least=0)
    engine: str = word("local", "Where to make the runs: local, or ray for a Ray cluster.")
    address: str | None = word(None, "Address of the Ray cluster: auto, or HOST:PORT.")

    def make(self, images: Path, list_cases: Callable[[int], list[RunCase]], use: Callable[[list[Path]], None]) -> None:
        """Makes as many runs as fit into the time, and uses their files."""
        from leader.pictures import list_pictures
        from leader.priors.loading import load_prior
        from leader.train.trust_runs import make_runs, make_timed_runs

        workers, model = make_run_engine(self.jobs, self.engine, self.address), load_prior(self.prior)
        source = str(Path(self.prior).expanduser().resolve()) if Path(self.prior).expanduser().exists() else self.prior
        cases = list_cases(len(list_pictures(images)))
        with tempfile.TemporaryDirectory(prefix="leader-runs-") if self.store is None else nullcontext(self.store) as folder:
            runs = make_runs(model, images, cases, Path(folder), to_stderr, workers, source)
            use(make_timed_runs(runs, workers, 60 * self.minutes))


@with_options
def fit_trust(
    images: Images,
    runs: Runs,
    out: Annotated[Path | None, typer.Option(help="The referee's file; beside the prior's weights by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of crops, tasks and noise.", min=0)] = defaults.SEED,
) -> None:
    """Fits the referee that estimates the errors of a prior's restorations."""
    from leader.files import check_writable
    from leader.train.trust_fit import FitSettings, fit_referee, read_lessons
    from leader.train.trust_runs import training_cases

    check_folder(images)
    check_minutes(runs.minutes)
    target = _referee_file(runs.prior, out)
    check_writable(target)

    def fit(files: list[Path]) -> None:
        to_stderr(f"{len(files)} runs; now the referee.")
        settings = FitSettings(seconds=20 * runs.minutes, seed=seed)
        fit_referee(read_lessons(files), settings, to_stderr).save(target)

    runs.make(images, lambda count: training_cases(count, defaults.TRUST_RUNS, seed), fit)
    to_stderr("It is not calibrated yet: run 'leader calibrate' with pictures that it has not seen.")
    to_stdout(str(target))


@with_options
def calibrate(
    images: Images,
    runs: Runs,
    referee: Annotated[Path | None, typer.Option(help="The referee's file; beside the prior's weights by default.")] = None,
    crops: Annotated[int, typer.Option(help="Crops of each picture.", min=1, max=1000)] = 4,
) -> None:
    """Measures, on your own pictures, how much to scale the trust map for every task and noise level."""
    from leader.files import check_writable
    from leader.train.trust_fit import fit_calibration
    from leader.train.trust_runs import every_family, read_run
    from leader.trust.calibration import LEVELS, SHOWN, beside
    from leader.trust.referee import Referee

    check_folder(images)
    check_minutes(runs.minutes)
    source = _referee_file(runs.prior, referee)
    if not source.is_file():
        raise LeaderError(f"The prior '{runs.prior}' has no referee at {source}; fit one first with 'leader fit-trust'.")
    judge, target = Referee.load(source), beside(source)
    check_writable(target)

    def fit(files: list[Path]) -> None:
        table = fit_calibration(judge, (read_run(file) for file in files))
        table.save(target)
        for family, nodes in table.families.items():
            said = ", ".join(f"{node.noise:g}: {node.factors[LEVELS.index(SHOWN)]:.2f} ({node.runs} runs)" for node in nodes)
            to_stderr(f"{family}: 90 % of errors lie within this many of the referee's standard deviations, by noise: {said}.")

    runs.make(images, lambda count: every_family(count, crops), fit)
    to_stdout(str(target))


def _referee_file(name: str, given: Path | None) -> Path:
    """The referee's file: the one named, or that beside the prior's weights."""
    from leader.trust.referee import SUFFIX, beside, weights_of

    if given is not None:
        if not given.name.endswith(SUFFIX):
            raise UsageError(f"The referee's file must end in {SUFFIX}; found {given}.")
        return given
    weights = weights_of(name)
    if weights is None:
        raise UsageError(f"'{name}' is not a file or folder: say where its referee is.")
    return beside(weights)


def make_run_engine(jobs: int | None, engine: str = "local", address: str | None = None) -> Engine | None:
    """The engine for the runs; None for this process, which already has the prior."""
    from leader.engines import make_engine

    if engine == "local" and address is None and not jobs:
        return None
    return make_engine(jobs, threads=None, engine=engine, address=address)


def calibrate_satp(
    images: Images,
    prior: PriorName = "embedded",
    estimator: Annotated[str, typer.Option(help="How Sigma is estimated; `leader estimators` lists them.")] = "auto",
    count: Annotated[int, typer.Option(help="Pictures; each takes three runs of 100 steps.", min=1)] = 4,
    size: Annotated[int | None, typer.Option(help="Side of the crops; the network's own by default, else 128.", min=16)] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:0 or mps.")] = "cpu",
    store: Annotated[bool, typer.Option("--store", help="Store it beside the prior's weights, for every later run.")] = False,
) -> None:
    """Finds SATP's eta for a prior, so that the paper's budgets leave the right number of 100 calls. Prints a --settings
    file.
    """
    from leader.presets.stored import add_stored
    from leader.priors.loading import load_prior
    from leader.train.data import central_crops
    from leader.train.pruning import RANGES, STEPS, TASKS, calibrate_eta, curves, eta_entry, predict_seconds

    check_folder(images)
    model = load_prior(prior, device=device)
    if store and model.home is None:
        raise UsageError(f"The prior '{prior}' has no weights file beside which --store could write; leave --store out.")
    side = size or (128 if model.size is None else min(model.size))
    crops = central_crops(images, side)[:count].to(device)
    seconds = predict_seconds(model, crops, estimator)
    to_stderr(f"{TASKS * len(crops)} runs of {STEPS} steps will take about {format_duration(seconds)}.")
    found = calibrate_eta(curves(model, crops, estimator, say=to_stderr))
    for budget, mean in found.calls.items():
        low, high = RANGES[budget]
        missed = ": no eta fits all budgets" if budget in found.missed else ""
        to_stderr(f"B = {budget:g}: {mean:.1f} calls of 100, wanted {low:g} to {high:g}{missed}")
    if store and model.home is not None:
        file = add_stored(model.home, [eta_entry(found)])
        to_stderr(f"eta = {found.eta:g} is stored in {file}, and every run with this prior uses it.")
    to_stdout(f"satp = {{ eta = {found.eta:g} }}\nsatp-paper = {{ eta = {found.eta:g} }}")


def adapt(
    checkpoint: Checkpoint,
    data: Annotated[Path, typer.Option(help="A folder of 30 or more pictures like its training data.")],
    minutes: Annotated[float, typer.Option(help="Time for everything; more is better.", min=0.0)] = defaults.ADAPT_MINUTES,
    seed: Annotated[int, typer.Option(help="Seed of crops, tasks and noise.", min=0)] = defaults.SEED,
    jobs: Jobs = None,
    again: Annotated[bool, typer.Option("--again", help="Start over; by default a stopped command continues.")] = False,
) -> None:
    """Fits everything that restoration needs to a checkpoint: variance, spectrum, precision, SATP's eta, referee and
    factors.
    """
    from leader.train.adapt import adapt as fit
    from leader.train.adapt import plan_adaptation

    check_folder(data)
    check_minutes(minutes)
    plan = plan_adaptation(checkpoint, data, 60 * minutes, seed, to_stderr)
    try:
        fit(plan, lambda: make_run_engine(jobs), to_stderr, again)
    except KeyboardInterrupt as error:
        to_stderr("Interrupted: finished work is kept, and the same command continues.")
        raise typer.Exit(INTERRUPTED) from error
    to_stderr(f"Restore with it: leader restore IN OUT --prior {checkpoint}")
    to_stdout(str(plan.home))
