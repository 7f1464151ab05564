"""`leader bench`: run experiments, print their tables, draw their figures."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leader.bench.records import Store, write_atomically
from leader.cli.options import with_options
from leader.cli.settings import read_settings
from leader.errors import UsageError
from leader.restoration.request import word

if TYPE_CHECKING:
    from leader.bench.experiment import Experiment
    from leader.bench.run import Gathered

app = typer.Typer(
    name="bench",
    help="Compares methods with the same operators, noise and metrics.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="An experiment: its name in experiments/, or the path of its file.")]
Rows = Annotated[str | None, typer.Option(help="Only rows whose name contains this text.")]
Tasks = Annotated[str | None, typer.Option(help="Only tasks whose name contains this text.")]
Partial = Annotated[bool, typer.Option("--partial", help="Use the existing records even if some are missing.")]


@dataclass(frozen=True)
class FormChoice:
    """The form of an experiment, replacements for its entries, and the folder of its records."""

    form: str = word("small", "The form: small runs anywhere, full needs public checkpoints.")
    images: str | None = word(None, "A folder of pictures instead of the form's.", metavar="FOLDER")
    fit: str | None = word(None, "crop, half (half size, then crop), square, or host (square, bilinear).")
    count: int | None = word(None, "How many images.", int)
    size: int | None = word(None, "Side of the crops in pixels.", int)
    prior: str | None = word(None, "A prior instead of the form's.")
    device: str | None = word(None, "cpu, cuda, cuda:0 or mps instead of the form's.")
    settings: Path | None = word(None, "Settings of plug-ins for all rows (TOML or JSON).", Path)
    records: Path = word(Path("experiments/records"), "The folder of records.", Path, metavar="FOLDER")

    def load(self, name: str) -> tuple[Experiment, Store]:
        """The experiment of that name or file, and its records."""
        from leader.bench.experiment_file import find_experiment, load_experiment

        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("form", "records")}
        if self.images not in (None, "test") and self.fit is None and self.form == "small":
            given["fit"] = "half"  # photographs, not the shipped crops, which are at half size already
        given["settings"] = read_settings(self.settings) or None
        found = load_experiment(find_experiment(name), self.form, **given)
        return found, Store(self.records, found.name)


@app.command()
@with_options
def run(
    experiment: Name,
    choice: FormChoice,
    rows: Rows = None,
    tasks: Tasks = None,
    workers: Annotated[int | None, typer.Option(help="Processes; 2 by default, one per GPU on GPUs.", min=1, max=256)] = None,
    engine_name: Annotated[str, typer.Option("--engine", help="local, or ray for a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option("--address", help="Address of the Ray cluster: auto, or HOST:PORT.")] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove the records that this experiment does not use, even if others do.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List every cell and its cost; run nothing.")] = False,
) -> None:
    """Run the missing part of an experiment; interrupted runs continue where they stopped."""
    import torch

    from leader.bench.run import dry_run as list_cells
    from leader.bench.run import run_experiment
    from leader.engines import make_engine
    from leader.priors.loading import device_named

    whole, store = choice.load(experiment)
    chosen = whole.restricted(rows, tasks)
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
        typer.echo(f"The first failure: {outcome.reason}", err=True)
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
@with_options
def table(
    experiment: Name,
    choice: FormChoice,
    format: Annotated[str, typer.Option("--format", help="md, csv, latex or html.")] = "md",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of the screen.")] = None,
    rows: Rows = None,
    tasks: Tasks = None,
    partial: Partial = False,
) -> None:
    """Print the table of an experiment from its records."""
    from leader.bench.distances import render_distances
    from leader.bench.statistics import Numbers
    from leader.bench.tables import render_table

    whole, store = choice.load(experiment)
    chosen = whole.restricted(rows, tasks)
    found = _gather_records(chosen, store, partial=partial)
    if chosen.table.kind == "distances":
        text = render_distances(chosen, found.places, store)
    else:
        text = render_table(Numbers(chosen, found.places), format)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text.encode())


@app.command()
@with_options
def figure(
    experiment: Name,
    choice: FormChoice,
    out: Annotated[Path, typer.Option(help="The file to write: .png, .jpg or .svg.")] = Path("figure.png"),
    partial: Partial = False,
) -> None:
    """Draw the figure of an experiment from its records."""
    from leader.bench.figures import draw_figure

    chosen, store = choice.load(experiment)
    draw_figure(chosen, _gather_records(chosen, store, partial=partial).places, store, out)
    typer.echo(f"{out}", err=True)


@app.command()
@with_options
def compare(
    experiment: Name,
    row: Annotated[str, typer.Argument(help="A row of the experiment, such as 'DDNM + LEADer'.")],
    choice: FormChoice,
    against: Annotated[str | None, typer.Argument(help="The row to compare with; by default its host.")] = None,
    partial: Partial = False,
) -> None:
    """Compare two rows image by image: differences with 95 % intervals, and how often each row wins."""
    from leader.bench.statistics import Numbers
    from leader.bench.tables import render_comparison

    chosen, store = choice.load(experiment)
    host = against or chosen.row(row).against
    if host is None:
        raise UsageError(f"The row '{row}' has no host; name the row to compare it with.")
    chosen.row(host)
    found = _gather_records(chosen, store, partial=partial)
    typer.echo(render_comparison(Numbers(chosen, found.places), chosen.row(row).label, host), nl=False)


def _gather_records(experiment: Experiment, store: Store, *, partial: bool) -> Gathered:
    """The records of an experiment; those made by earlier revisions are reported."""
    from leader.bench.run import gather

    found = gather(experiment, store, partial=partial)
    for name, count in found.earlier.items():
        typer.echo(f"{count} records were made by another revision of '{name}'; `leader bench run` makes them again.", err=True)
    return found
