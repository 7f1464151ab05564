"""Assembles the commands."""

import gc
from typing import Annotated

import typer

from leader.cli import degrade, demo, diagnose, help, lists, priors, restore, training, trust, web
from leader.cli.bench import app as bench
from leader.cli.errors import OneSentenceGroup

app = typer.Typer(
    name="leader",
    cls=OneSentenceGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Restores degraded pictures with a diffusion prior and estimates, pixel by pixel, how far to trust the result.",
    epilog="Try it: leader demo. Then: leader diagnose photo.jpg. More: leader help COMMAND, leader help TOPIC.",
)

PHOTOGRAPHS = "Photographs"
NAMES = "What there is to choose from"
OWN = "A checkpoint of your own"
TRAINING = "Training, and the steps of adapt one by one"
RESEARCH = "Research"

app.command("restore", epilog=restore.EXAMPLES, context_settings=restore.CONTEXT, rich_help_panel=PHOTOGRAPHS)(restore.restore)
app.command("diagnose", epilog=diagnose.EXAMPLES, rich_help_panel=PHOTOGRAPHS)(diagnose.diagnose)
app.command("degrade", epilog=degrade.EXAMPLES, rich_help_panel=PHOTOGRAPHS)(degrade.degrade)
app.command("demo", rich_help_panel=PHOTOGRAPHS)(demo.demo)
app.command("web", epilog=web.EXAMPLES, rich_help_panel=PHOTOGRAPHS)(web.web)
app.command("help", rich_help_panel=NAMES)(help.help_on)
app.command("tasks", rich_help_panel=NAMES)(lists.tasks)
app.command("methods", rich_help_panel=NAMES)(lists.methods)
app.command("plugins", rich_help_panel=NAMES)(lists.plugins)
app.command("estimators", rich_help_panel=NAMES)(lists.estimators)
app.add_typer(priors.app, name="priors", rich_help_panel=NAMES)
app.command("inspect", epilog=priors.INSPECT_EXAMPLE, rich_help_panel=OWN)(priors.inspect_checkpoint)
app.command("adapt", epilog=trust.ADAPT_EXAMPLE, rich_help_panel=OWN)(trust.adapt)
app.command("train", epilog=training.TRAIN_EXAMPLE, rich_help_panel=TRAINING)(training.train)
app.command("publish", epilog=training.PUBLISH_EXAMPLE, rich_help_panel=TRAINING)(training.publish)
app.command("fit-variance", epilog=training.FIT_EXAMPLE, rich_help_panel=TRAINING)(training.fit_variance)
app.command("fit-trust", epilog=trust.FIT_EXAMPLE, rich_help_panel=TRAINING)(trust.fit_trust)
app.command("calibrate", epilog=trust.CALIBRATE_EXAMPLE, rich_help_panel=TRAINING)(trust.calibrate)
app.command("calibrate-satp", epilog=trust.SATP_EXAMPLE, rich_help_panel=TRAINING)(trust.calibrate_satp)
app.add_typer(bench, name="bench", rich_help_panel=RESEARCH)


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
    gc.set_threshold(10_000, 20, 20)  # importing torch makes a million objects that stay: each look through them costs time
    app()
