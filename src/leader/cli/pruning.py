"""`leader calibrate-satp`: how far SATP may jump with a prior."""

from __future__ import annotations

from typing import Annotated

import typer

from leader.cli.console import to_stderr, to_stdout
from leader.cli.training import Images, check_folder
from leader.cli.trust import PriorName
from leader.errors import UsageError
from leader.progress import format_duration

EXAMPLE = "Example: leader calibrate-satp --prior my-model.safetensors --images photos/held-out > satp.toml"


def calibrate_satp(
    images: Images,
    prior: PriorName = "embedded",
    estimator: Annotated[str, typer.Option(help="How Sigma is estimated; `leader estimators` lists them.")] = "auto",
    count: Annotated[int, typer.Option(help="Pictures; each takes three runs of 100 steps.", min=1)] = 4,
    size: Annotated[int | None, typer.Option(help="Side of the crops; the network's own by default, else 128.", min=16)] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:0 or mps.")] = "cpu",
    store: Annotated[bool, typer.Option("--store", help="Store it beside the prior's weights, for every later run.")] = False,
) -> None:
    """Finds SATP's eta for a prior: the calls that the paper's budgets shall leave of 100. Prints a file for --settings."""
    from leader.presets.stored import add_stored
    from leader.priors.loading import load_prior
    from leader.train.calibrate import central_crops
    from leader.train.pruning import RANGES, STEPS, TASKS, calibrate_eta, curves, eta_entry, predict_seconds

    check_folder(images)
    model = load_prior(prior, device=device)
    if store and model.home is None:
        raise UsageError(f"The prior '{prior}' has no weights file, beside which --store would write; leave it out.")
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
        to_stderr(f"eta = {found.eta:g} is stored in {file}, where every run with this prior finds it.")
    to_stdout(f"satp = {{ eta = {found.eta:g} }}\nsatp-paper = {{ eta = {found.eta:g} }}")
