"""`leader bench`: run experiments, print their tables, draw their figures."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leader.bench.records import Store, write_atomically
from leader.cli.settings import read_settings
from leader.errors import UsageError

if TYPE_CHECKING:
    from leader.bench.experiment import Experiment
    from leader.bench.run import Gathered

app = typer.Typer(
    name="bench",
    help="Compares methods: the same operators, noise and metrics for every one.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="An experiment: its name in experiments/, or the path of its file.")]
FormName = Annotated[str, typer.Option("--form", help="Which form: small runs here, full needs public checkpoints.")]
Images = Annotated[str | None, typer.Option(help="A folder of pictures instead of the form's.")]
Fit = Annotated[str | None, typer.Option(help="crop, half (half size, then crop), square, or host (square, bilinear).")]
Count = Annotated[int | None, typer.Option(help="How many images.")]
Size = Annotated[int | None, typer.Option(help="Side of the crops in pixels.")]
PriorName = Annotated[str | None, typer.Option("--prior", help="A prior instead of the form's.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:0 or mps instead of the form's.")]
Workers = Annotated[int | None, typer.Option(help="Processes; 2 by default, on GPUs one for each.", min=1, max=256)]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="Settings of plug-ins for all rows (TOML or JSON).")]
Rows = Annotated[str | None, typer.Option(help="Only rows whose name contains this.")]
Tasks = Annotated[str | None, typer.Option(help="Only tasks whose name contains this.")]
Records = Annotated[Path, typer.Option(help="The folder of records.")]
Partial = Annotated[bool, typer.Option("--partial", help="Take the records there are, though some are missing.")]
Out = Annotated[Path | None, typer.Option(help="A file to write instead of the screen.")]

RECORDS = Path("experiments/records")


@app.command()
def run(
    experiment: Name,
    form: FormName = "small",
    images: Images = None,
    fit: Fit = None,
    count: Count = None,
    size: Size = None,
    prior: PriorName = None,
    rows: Rows = None,
    tasks: Tasks = None,
    device: Device = None,
    settings: SettingsFile = None,
    workers: Workers = None,
    engine_name: Annotated[str, typer.Option("--engine", help="local, or ray for a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option("--address", help="Of the Ray cluster: auto, or HOST:PORT.")] = None,
    records: Records = RECORDS,
    prune: Annotated[bool, typer.Option("--prune", help="Drop records this experiment does not ask for.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List every cell and its cost; run nothing.")] = False,
) -> None:
    """Run what is missing of an experiment; interrupted runs go on where they were."""
    import torch

    from leader.bench.run import dry_run as list_cells
    from leader.bench.run import run_experiment
    from leader.engines import make_engine
    from leader.priors.loading import device_named

    chosen = _load(experiment, form, images, fit, count, size, prior, device, settings).restricted(rows, tasks)
    store = Store(records, chosen.name)
    if dry_run:
        list_cells(chosen, store, typer.echo)
        return
    place = device_named(chosen.form.device)
    count_workers = workers or (torch.cuda.device_count() if place.type == "cuda" else 2)
    fresh = chosen.form.memory
    with ExitStack() as stack:
        engine = stack.enter_context(closing(make_engine(count_workers, fresh=fresh, engine=engine_name, address=address)))
        alone = None if chosen.form.timed is None or fresh else stack.enter_context(closing(make_engine(1)))
        outcome = run_experiment(chosen, store, engine, alone=alone, prune=prune)
    typer.echo(
        f"{chosen.name}: {outcome.ran} cells run, {outcome.found} found, {outcome.failed} failed; records in {store.path}",
        err=True,
    )
    if outcome.reason is not None:
        typer.echo(f"The first that failed: {outcome.reason}", err=True)
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
def table(
    experiment: Name,
    form: FormName = "small",
    format: Annotated[str, typer.Option("--format", help="md, csv, latex or html.")] = "md",
    out: Out = None,
    images: Images = None,
    fit: Fit = None,
    count: Count = None,
    size: Size = None,
    prior: PriorName = None,
    device: Device = None,
    settings: SettingsFile = None,
    rows: Rows = None,
    tasks: Tasks = None,
    records: Records = RECORDS,
    partial: Partial = False,
) -> None:
    """Print the table of an experiment from its records."""
    from leader.bench.distances import render_distances
    from leader.bench.statistics import Numbers
    from leader.bench.tables import render_table

    chosen = _load(experiment, form, images, fit, count, size, prior, device, settings).restricted(rows, tasks)
    store = Store(records, chosen.name)
    found = _gathered(chosen, store, partial=partial)
    if chosen.table.get("kind") == "distances":
        _write(render_distances(chosen, found.places, store), out)
    else:
        _write(render_table(Numbers(chosen, found.places), format), out)


@app.command()
def figure(
    experiment: Name,
    form: FormName = "small",
    out: Annotated[Path, typer.Option(help="The file to write: .png, .jpg or .svg.")] = Path("figure.png"),
    images: Images = None,
    fit: Fit = None,
    count: Count = None,
    size: Size = None,
    prior: PriorName = None,
    device: Device = None,
    settings: SettingsFile = None,
    records: Records = RECORDS,
    partial: Partial = False,
) -> None:
    """Draw the figure of an experiment from its records."""
    from leader.bench.figures import draw_figure

    chosen = _load(experiment, form, images, fit, count, size, prior, device, settings)
    store = Store(records, chosen.name)
    found = _gathered(chosen, store, partial=partial)
    draw_figure(chosen, found.places, store, out)
    typer.echo(f"{out}", err=True)


@app.command()
def compare(
    experiment: Name,
    row: Annotated[str, typer.Argument(help="A row of the experiment, such as 'DDNM + LEADer'.")],
    against: Annotated[str | None, typer.Argument(help="The row it is compared with; by default its host.")] = None,
    form: FormName = "small",
    images: Images = None,
    fit: Fit = None,
    count: Count = None,
    size: Size = None,
    prior: PriorName = None,
    device: Device = None,
    settings: SettingsFile = None,
    records: Records = RECORDS,
    partial: Partial = False,
) -> None:
    """Compare two rows image by image: differences with 95 % intervals, and the images won."""
    from leader.bench.statistics import Numbers
    from leader.bench.tables import render_comparison

    chosen = _load(experiment, form, images, fit, count, size, prior, device, settings)
    host = against or chosen.row(row).against
    if host is None:
        raise UsageError(f"The row '{row}' has no host; name the row to compare it with.")
    chosen.row(host)
    found = _gathered(chosen, Store(records, chosen.name), partial=partial)
    typer.echo(render_comparison(Numbers(chosen, found.places), chosen.row(row).label, host), nl=False)


def _load(
    name: str,
    form: str,
    images: str | None,
    fit: str | None,
    count: int | None,
    size: int | None,
    prior: str | None,
    device: str | None,
    settings: Path | None,
) -> Experiment:
    if images is not None and images != "test" and fit is None and form == "small":
        fit = "half"  # photographs, not the shipped crops, which are at half size already
    given = {"images": images, "fit": fit, "count": count, "size": size, "prior": prior, "device": device}
    changes = {**given, "settings": read_settings(settings) or None}
    from leader.bench.experiment_file import find_experiment, load_experiment

    return load_experiment(find_experiment(name), form, **changes)


def _gathered(experiment: Experiment, store: Store, *, partial: bool) -> Gathered:
    """The records of an experiment; those made by earlier revisions are reported."""
    from leader.bench.run import gather

    found = gather(experiment, store, partial=partial)
    for name, count in found.earlier.items():
        typer.echo(f"{count} records were made by another revision of '{name}'; `leader bench run` makes them again.", err=True)
    return found


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    write_atomically(out, text.encode())
