"""Assembles the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from leader.cli import degrade, demo, diagnose, lists, priors, pruning, restore, training, trust, web
from leader.cli.bench import app as bench
from leader.cli.errors import OneSentenceGroup

app = typer.Typer(
    name="leader",
    cls=OneSentenceGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Restores degraded pictures with a diffusion prior and says, pixel by pixel, how far to trust the answer.",
    epilog="Try it: **leader demo**. Then: **leader restore small.png large.png --task sr**",
)
app.command("restore", epilog=restore.EXAMPLES, context_settings=restore.CONTEXT)(restore.restore)
app.command("diagnose", epilog=diagnose.EXAMPLES)(diagnose.diagnose)
app.command("degrade", epilog=degrade.EXAMPLES)(degrade.degrade)
app.command("demo")(demo.demo)
app.command("web", epilog=web.EXAMPLES)(web.web)
app.command("methods")(lists.methods)
app.command("tasks")(lists.tasks)
app.command("plugins")(lists.plugins)
app.command("estimators")(lists.estimators)
app.add_typer(priors.app, name="priors")
app.add_typer(bench, name="bench")
app.command("train", epilog=training.TRAIN_EXAMPLE)(training.train)
app.command("publish", epilog=training.PUBLISH_EXAMPLE)(training.publish)
app.command("fit-variance", epilog=training.FIT_EXAMPLE)(training.fit_variance)
app.command("fit-trust", epilog=trust.FIT_EXAMPLE)(trust.fit_trust)
app.command("calibrate", epilog=trust.CALIBRATE_EXAMPLE)(trust.calibrate)
app.command("calibrate-satp", epilog=pruning.EXAMPLE)(pruning.calibrate_satp)


def _version(wanted: bool) -> None:
    if wanted:
        import leader

        typer.echo(leader.__version__)
        raise typer.Exit


@app.callback()
def _leader(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that come before a command."""


def main() -> None:
    """The entry point of `leader`."""
    app()
