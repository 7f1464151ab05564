"""The front: quality (PSNR, LPIPS) against calls, work and wall-clock, for every host, grid of times and start.

    python benchmarks/front count                          what the rounds cost
    python benchmarks/front run screen --images FOLDER     every host on three grids, then trials of its settings
    python benchmarks/front run today --images FOLDER      what people get so far
    python benchmarks/front run lengths --images FOLDER    the best hosts through lengths and starts
    python benchmarks/front run survivors --images FOLDER  the best of all, with equal tuning, on more photographs
    python benchmarks/front run standard --images FOLDER   quality standard on the front's own photographs and noise
    python benchmarks/front run confirm --images FOLDER    its leading rivals at equal work, on as many photographs
    python benchmarks/front rivals                         does one of them beat it?
    python benchmarks/front report                         tables in Markdown
    python benchmarks/front plot                           pictures

Photographs are halved (Lanczos) and cropped to the central 128 px; embedded prior, one thread. Work is counted in
full-resolution passes, a backward pass as two. Choose on development photographs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import torch
import typer
from figures import draw
from lengths import HOSTS_TAKEN, STAGES, chosen, lengths, starts
from measure import Record, Records, stored, varied
from points import GRIDS, HOSTS, TASKS, Start, times_of
from recipes import Recipe, expected_cost, table_of_work
from rivals import confirmed, present, rivals_table, standard
from rounds import LOOK_PHOTOS, SCREEN_PHOTOS, TRIALS, recipe, screen, today
from survivors import survivors
from tables import lengths_table, screen_table, unique

from leader.bench.images import list_images
from leader.errors import LeaderError, unknown_name

app = typer.Typer(add_completion=False, no_args_is_help=True)
RECORDS = Path(__file__).parent.parent / "records"
ROUNDS = ("screen", "today", "lengths", "survivors", "standard", "confirm")
Folder = Annotated[Path, typer.Option("--records", help="Folder of the records.")]


def _rows(folder: Path, *names: str) -> list[Record]:
    return unique(row for name in names for row in stored(folder / f"front-{name}.jsonl"))


@app.command()
def run(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(ROUNDS)}.")],
    images: Annotated[str, typer.Option(help="A folder of development photographs.")],
    tasks: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(TASKS),
    hosts: Annotated[str, typer.Option(help="Comma-separated, for the screen.")] = ",".join(HOSTS),
    trials: Annotated[int, typer.Option(min=0, help="Trials besides the presets, for the screen.")] = TRIALS,
    grids: Annotated[str, typer.Option(help="Comma-separated, for the screen.")] = ",".join(GRIDS),
    ranks: Annotated[int, typer.Option(min=1, max=HOSTS_TAKEN, help="Hosts a task, for the lengths.")] = HOSTS_TAKEN,
    stages: Annotated[str, typer.Option(help="Comma-separated, of the lengths.")] = ",".join(STAGES),
    keep: Annotated[int, typer.Option(min=1, help="Best scores of a length that go on, for the lengths.")] = 3,
    photographs: Annotated[int, typer.Option(min=1, help="Photographs of today, standard and confirm.")] = 8,
    folder: Folder = RECORDS,
) -> None:
    """Run a round; what is already recorded is not run again."""
    if name not in ROUNDS:
        raise unknown_name("round", name, ROUNDS)
    torch.set_num_threads(1)
    photos, wanted = varied(list_images(images)), tasks.split(",")
    earlier = [] if name in ("screen", "today", "standard") else _rows(folder, "screen", "lengths", "survivors")
    records = Records(folder / f"front-{name}.jsonl", earlier)
    if name == "screen":
        walk = screen(photos, records, wanted, hosts.split(","), grids.split(","), trials)
    elif name == "today":
        walk = today(photos, records, wanted, photographs)
    elif name == "lengths":
        walk = lengths(photos, _rows(folder, "screen"), records, wanted, stages.split(","), ranks, keep)
    elif name == "standard":
        walk = standard(photos, records, wanted, photographs)
    elif name == "confirm":
        walk = confirmed(photos, records, earlier, present(_rows(folder, "standard")), wanted, photographs)
    else:
        walk = survivors(photos, earlier, records, wanted)
    begun, before = time.perf_counter(), len(records.rows)
    for row in walk:
        done = len(records.rows) - before
        if done:
            line = f"{done:5d} {time.perf_counter() - begun:7.0f} s {row['task']:9} {row['method']:9} {row['grid']:9}"
            typer.echo(f"{line} {row['start']:8} {row.get('psnr', 0):6.2f} {row.get('lpips', 0):.3f} {row.get('error', '')}")


@app.command()
def count(folder: Folder = RECORDS) -> None:
    """Print what grids and rounds cost before they are run, in full-resolution passes and minutes of one core."""
    torch.set_num_threads(1)
    begun = time.process_time()
    passes = sum(table_of_work().values())
    second = (time.process_time() - begun) / passes
    typer.echo(f"one full-resolution pass: {second:.3f} s\n\n| grid | calls | start | passes |\n| --- | --- | --- | --- |")
    for calls in (10, 25, 50):
        for grid in GRIDS:
            for start in (Start(), Start("late", 300), Start("late", 100)):
                cost = expected_cost(Recipe("ddnm", {}, grid, start, calls), times_of(grid, calls, start))
                typer.echo(f"| {grid} | {calls} | {start} | {cost:.1f} |")

    def told(name: str, recipes: Iterable[tuple[str, Recipe]], photos: int) -> None:
        total = photos * sum(expected_cost(item, item.point(task, 0).times) for task, item in recipes)
        typer.echo(f"{name}: {total:.0f} passes, {total * second / 60:.0f} minutes")

    first = [(task, recipe(task, host, grid, {})) for task in TASKS for host in HOSTS for grid in GRIDS]
    typer.echo("")
    told("screen, first look", [item for item in first if item[1].grid == "quadratic"], LOOK_PHOTOS)
    told("screen, presets on all grids, at most", first, SCREEN_PHOTOS)
    told(
        "screen, more trials on a grid, at most",
        [item for item in first if item[1].grid == "quadratic"] * TRIALS,
        SCREEN_PHOTOS,
    )
    rows = _rows(folder, "screen")
    if rows:
        begun_with = [(task, item) for task in TASKS for mean in chosen(rows, task) for item in starts(mean)]
        told("lengths, first look at the starts", begun_with, LOOK_PHOTOS)


@app.command()
def report(folder: Folder = RECORDS, photos: Annotated[int, typer.Option(help="Photographs of the lengths.")] = 8) -> None:
    """Print the tables in Markdown."""
    screened, now = _rows(folder, "screen"), _rows(folder, "today")
    typer.echo(f"## Screen, {SCREEN_PHOTOS} photographs\n\n{screen_table(screened, range(SCREEN_PHOTOS))}")
    found = _rows(folder, "screen", "lengths", "survivors")
    for several in sorted({SCREEN_PHOTOS, photos}):
        typer.echo(f"\n## Lengths and starts, {several} photographs\n\n{lengths_table(found, now, range(several))}")


@app.command()
def rivals(folder: Folder = RECORDS) -> None:
    """Print the leading rivals of quality standard at equal work."""
    typer.echo(rivals_table(_rows(folder, "screen", "lengths", "survivors", "confirm"), present(_rows(folder, "standard"))))


@app.command()
def plot(
    folder: Folder = RECORDS,
    out: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("docs/results"),
    photos: int = SCREEN_PHOTOS,
) -> None:
    """Draw PSNR and LPIPS against work and against calls, one panel a task."""
    found, ours = _rows(folder, "screen", "lengths", "survivors"), present(_rows(folder, "standard"))
    for path in draw(found, _rows(folder, "today"), ours, range(photos), out):
        typer.echo(str(path))


if __name__ == "__main__":
    try:
        app()
    except LeaderError as error:
        sys.exit(str(error))
