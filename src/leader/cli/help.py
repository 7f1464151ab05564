"""`leader --help` and `leader help TOPIC`: the commands by group, and short answers to common questions."""

from importlib.resources import files
from typing import Annotated, Any

import typer

from leader.cli.console import to_stdout
from leader.errors import unknown_name

Topic = Annotated[list[str] | None, typer.Argument(help="A command, a topic, or the name of a task, method or plug-in.")]


def print_overview(ctx: Any, group: Any) -> None:
    """The commands of `leader`, those for photographs first, then the rest by group and the options."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Usage: leader COMMAND ...\n\n{group.help}", markup=False)
    panels: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        panels.setdefault(command.rich_help_panel, []).append((name, _first_sentence(command.help)))
    panels["Options"] = [
        (", ".join(sorted(option.opts, key=len, reverse=True)), _first_sentence(option.help))
        for option in group.get_params(ctx)
    ]
    width = max(len(name) for rows in panels.values() for name, _ in rows)
    for title, rows in panels.items():
        console.print(f"\n{title}", style="bold", markup=False)
        for name, line in rows:
            console.print(f"  {name:{width}}  {line}", markup=False)
    console.print(f"\n{group.epilog}", markup=False)


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def help_on(ctx: typer.Context, topic: Topic = None) -> None:
    """Explains a command, a topic, a task, a method or a plug-in: `leader help map`."""
    group: Any = ctx.find_root().command
    words, topics = list(topic or ()), read_topics()
    if not words:
        print_overview(ctx.find_root(), group)
        to_stdout(f"\nTopics: {', '.join(topics)}")
        return
    name = " ".join(words)
    if name in topics:
        to_stdout(topics[name])
    elif words[0] in group.commands:
        group.main([*words, "--help"], prog_name="leader")
    else:
        _print_details(name, [*topics, *group.commands])


def read_topics() -> dict[str, str]:
    """The sections of help.md by their titles."""
    sections = files("leader.cli").joinpath("help.md").read_text(encoding="utf-8").split("## ")[1:]
    return {title: text.strip() for title, _, text in (section.partition("\n") for section in sections)}


def _print_details(name: str, others: list[str]) -> None:
    """The description of a task, method, plug-in, estimator or prior."""
    from leader.cli import lists, priors
    from leader.methods import METHODS
    from leader.plugins import BUNDLES, PLUGINS
    from leader.priors.catalogue import ENTRIES
    from leader.restoration.tasks import TASKS

    kinds: list[tuple[Any, Any]] = [
        (TASKS, lists.tasks),
        (METHODS, lists.methods),
        ({**PLUGINS, **BUNDLES}, lists.plugins),
        (lists.list_estimators(), lists.estimators),
        ((priors.EMBEDDED, *ENTRIES), priors.show),
    ]
    for known, show in kinds:
        if name in known:
            show(name)
            return
    raise unknown_name("topic", name, sorted({*others, *(word for known, _ in kinds for word in known)}))
