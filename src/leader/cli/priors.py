"""leader priors: lists and downloads priors, and inspects checkpoints."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from leader.cli.console import table, to_stderr, to_stdout
from leader.cli.errors import FAILED
from leader.errors import LeaderError, unknown_name

EMBEDDED = "embedded"
INSPECT_EXAMPLE = "Example: leader inspect my-model.safetensors"
NO_HASH = (
    "No SHA-256 is known for this file, so a download cannot be checked against the published one: a damaged file is "
    "rejected when it is opened, and nothing in a file is ever executed, but whether its weights are the published ones is for "
    "you to compare; leader priors get prints the hash of the downloaded file."
)


Checkpoint = Annotated[str, typer.Argument(help="A checkpoint, a diffusers folder, or module:Class for a prior of your own.")]


class NameOrCommand(TyperGroup):
    """`leader priors NAME` shows NAME, as for methods and tasks."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args and args[0] in self.commands
        return super().resolve_command(ctx, args if known else ["show", *args])


app = typer.Typer(
    cls=NameOrCommand,
    help="Lists, shows (leader priors NAME), fetches and inspects priors.",
    invoke_without_command=True,
)


@app.callback()
def priors(ctx: typer.Context) -> None:
    """Lists the priors; see the commands below for one of them.

    Examples: leader priors; leader priors ffhq-256; leader priors get ffhq-256; leader priors inspect model.pt
    """
    if ctx.invoked_subcommand is not None:
        return
    from leader.priors.catalogue import list_entries

    rows = [(EMBEDDED, "natural photographs, any size", "4 MB", "MIT", "comes with the package", "yes")]
    for row in list_entries():
        size = f"{int(str(row['bytes'])) / 1e6:,.0f} MB"
        here = "yes" if row["on_disk"] else "no"
        rows.append((str(row["name"]), str(row["title"]), size, str(row["licence"]), str(row["source"]), here))
    table(("prior", "what it knows", "size", "licence", "source", "on disk"), rows)


@app.command()
def show(name: Annotated[str, typer.Argument(help="A prior's name.")]) -> None:
    """Prints the details of one prior."""
    from leader.priors.catalogue import ENTRIES, list_entries

    if name == EMBEDDED:
        to_stdout("embedded: natural photographs, any size, grey and colour; comes with the package, with a variance head")
        return
    if name not in ENTRIES:
        raise unknown_name("prior", name, [EMBEDDED, *ENTRIES])
    for key, value in next(row for row in list_entries() if row["name"] == name).items():
        to_stdout(f"{key}: {value}")
    if ENTRIES[name].sha256 is None:
        to_stdout(NO_HASH)


@app.command()
def get(name: Annotated[str, typer.Argument(help="A registered prior's name.")]) -> None:
    """Downloads a registered prior into the cache folder."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

    from leader.priors.download import download

    if name == EMBEDDED:
        to_stderr("The embedded prior comes with the package; there is nothing to download.")
        return
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(name, total=None)
        found = download(name, lambda so_far, total: bar.update(task, completed=so_far, total=total))
    to_stdout(str(found))


@app.command("inspect")
def inspect_file(file: Annotated[Path, typer.Argument(help="A checkpoint file (.pt, .pth, .ckpt, .safetensors).")]) -> None:
    """Prints the content of a checkpoint file as JSON, without running anything in it."""
    to_stdout(json.dumps(_look_into(file), indent=2, default=str))


def inspect_checkpoint(
    checkpoint: Checkpoint,
) -> None:
    """Describes a checkpoint, what is fitted to it, and the next step. Nothing in it is executed."""
    from leader.priors.loading import load_prior
    from leader.train.adapt import list_companions

    if os.path.isfile(checkpoint):
        found = _look_into(Path(checkpoint))
        to_stdout(f"{found['family']} network, {found['parameters']:,} parameters, {found['bytes'] / 1e6:,.1f} MB")
        if found["missing"]:
            to_stdout(f"Its tensors do not tell {', '.join(found['missing'])}: write them into {Path(checkpoint).stem}.json.")
            raise typer.Exit(FAILED)
    prior = load_prior(checkpoint, whole=True)
    size = "of any size" if prior.size is None else f"of {prior.size[1]} x {prior.size[0]} pixels, larger ones in tiles"
    channels = "any number of" if prior.channels is None else prior.channels
    to_stdout(f"pictures: {channels} channels, {size}; {len(prior.schedule)} times; variance: {prior.source or 'none'}")
    fits = list_companions(prior)
    to_stdout(f"fitted to it: {', '.join(name for name, there in fits.items() if there) or 'nothing yet'}")
    if all(fits.values()):
        to_stdout(f"Next: leader restore IN OUT --prior {checkpoint}")
    else:
        to_stdout(f"Next: leader adapt {checkpoint} --data PHOTOS")


def _look_into(file: Path) -> dict[str, Any]:
    from leader.priors.inspection import inspect

    try:
        return inspect(file)
    except OSError as error:  # an invalid file name, or a file without read permission
        raise LeaderError(f"{str(file)[:60]} cannot be read ({error.strerror}); check its name.") from error
