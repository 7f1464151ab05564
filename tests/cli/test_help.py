"""leader --help, leader help TOPIC, completion, what they load; leader methods | tasks | plugins | priors | estimators."""

import ast
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from leader.cli import app
from leader.cli.help import read_topics
from leader.cli.options import HEADINGS
from leader.methods import METHODS
from leader.operators import LinearOperator
from leader.plugins import PLUGINS
from leader.priors.catalogue import ENTRIES
from leader.uncertainty import ESTIMATORS

runner = CliRunner()
WIDE = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
COMMANDS: Any = typer.main.get_command(app)


def test_photographs_come_first_and_every_command_has_a_group() -> None:
    shown = runner.invoke(app, ["--help"]).stdout
    groups = [block.split("\n") for block in shown.strip().split("\n\n")[2:-1]]
    names = [[line.split()[0] for line in lines[1:]] for lines in groups]
    assert names[0] == ["restore", "diagnose", "degrade", "demo", "web"]
    assert sorted(name for group in names[:-1] for name in group) == sorted(COMMANDS.commands)
    assert "--version" in names[-1] and max(map(len, names)) <= 6


def test_the_options_of_restore_are_grouped() -> None:
    shown = runner.invoke(app, ["restore", "--help"], env=WIDE).stdout
    panels = {title.strip(): body for title, body in re.findall(r"╭─ ([^─]+) ─+╮\n(.*?)╰", shown, re.S)}
    assert re.findall(r"--[\w-]+", panels.pop("Options")) == ["--help"], "an option without a group"
    assert [*HEADINGS, "Files and verdict", "For folders"] == list(panels)[1:]
    assert "--kernel-doubt" in panels["What happened to the picture"] and "--maps" in panels["For folders"]


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        *(("restore", "Usage: leader restore"), ("bench table", "Usage: leader bench table"), ("inpaint", "inpaint:")),
        *(("diffpir", "paper:"), ("leader", "short for"), ("hutchinson", "--estimator hutchinson")),
        *(("ffhq-256", "name: ffhq-256"), ("noise", "0.05 is 5 %"), ("", "Topics: blur")),
    ],
)
def test_help_on_whatever_has_a_name(topic: str, said: str) -> None:
    found = runner.invoke(app, ["help", *topic.split()])
    assert found.exit_code == 0 and said in found.stdout


def test_help_on_nothing_known_suggests() -> None:
    found = runner.invoke(app, ["help", "verdct"])
    assert found.exit_code == 2 and "did you mean 'verdict'" in found.stderr


def test_commands_in_the_topics_can_be_given() -> None:
    commands = [
        line.split()[1:] for text in read_topics().values() for line in text.split("\n") if line.startswith("    leader ")
    ]
    assert len(commands) > 15
    for words in commands:
        found = COMMANDS
        while isinstance(getattr(found, "commands", None), dict) and words and not words[0].startswith("-"):
            found, words = found.commands[words[0]], words[1:]
        known = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= {*known, "--install-completion"}, shlex.join(words)


def test_the_shell_completes_the_names_of_tasks() -> None:
    words = "leader restore a.png b.png --task deblur"
    env = {"_LEADER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "5"}
    found = runner.invoke(app, [], env=env, prog_name="leader")
    assert "deblur-gaussian" in found.stdout.split() and "sr" not in found.stdout.split()


def load(code: str) -> set[str]:
    """The modules that are loaded after `code` in a new process."""
    code += "\nimport sys\nprint('MODULES', *sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(said.rpartition("MODULES ")[2].split())


def test_help_loads_neither_numbers_nor_pictures() -> None:
    call = "from typer.testing import CliRunner\nfrom leader.cli import app\n"
    loaded = load(call + "assert 'restore' in CliRunner().invoke(app, ['--help']).stdout")
    assert not loaded & {"torch", "numpy", "PIL", "matplotlib", "gradio", "safetensors"}
    assert len([name for name in loaded if name.startswith("leader")]) < 50


def test_import_leader_costs_little_beyond_torch() -> None:
    assert not load("import leader") & {"torch", "numpy"}
    before, after = load("import torch, numpy, PIL.Image, safetensors"), load("import leader\nleader.restore, leader.Sampler")
    extra = {name for name in after - before if not name.startswith("leader")}
    assert not {name.partition(".")[0] for name in extra} & {
        "matplotlib",
        "scipy",
        "diffusers",
        "gradio",
        "ray",
        "rich",
        "typer",
    }
    assert len(extra) < 0.1 * len(before), sorted(extra)[:20]


@pytest.mark.parametrize("kind", ["methods", "tasks", "plugins", "priors", "estimators"])
def test_lists_and_details(kind: str) -> None:
    listed = runner.invoke(app, [kind])
    assert listed.exit_code == 0
    names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
    assert len(names) >= 3 and (kind != "estimators" or set(names) == {*ESTIMATORS, "auto", "none"})
    if kind == "priors":
        here = {line.split("\t")[0] for line in listed.stdout.splitlines() if line.endswith("\tyes")}
        assert here == {"embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)} < set(names)
    head = {"plugins": "plug-in"}.get(kind, kind[:-1])
    drawn = runner.invoke(app, [kind], env={"FORCE_COLOR": "1", "COLUMNS": "400", "TERM": "xterm"}).stdout.splitlines()
    assert len(drawn) == len(names) + 1
    assert all(0 <= line.find(name) < 8 for name, line in zip([head, *names], drawn)), "the first column"
    for name in names:
        shown = runner.invoke(app, [kind, name])
        assert shown.exit_code == 0 and name in shown.stdout
    wrong = runner.invoke(app, [kind, names[0] + "x"])
    assert wrong.exit_code == 2 and f"did you mean '{names[0]}'" in wrong.stderr


@pytest.mark.parametrize(("kind", "known"), [("methods", METHODS), ("plugins", PLUGINS)])
def test_what_is_listed_as_a_default_is_what_is_used(kind: str, known: Any) -> None:
    for name in sorted(known):
        shown = runner.invoke(app, [kind, name]).stdout.splitlines()
        listed = dict(line.strip().split(" = ", 1) for line in shown if line.startswith("  "))
        given = {option: ast.literal_eval(value) for option, value in listed.items() if value != "(required)"}
        made = known[name](**given)
        assert made == known[name]() and set(listed) <= set(vars(made)), name
        assert bool(listed) is ("settings: none" not in shown) and f"paper: {known[name].paper}" in shown
        if kind == "methods":
            assert f"needs: {known[name].needs}" in shown


class Faded(LinearOperator):
    """Fades the picture.

    By as much as `share` says.
    """

    def __init__(self, image_shape: tuple[int, int, int], share: float, levels: int = 7) -> None:
        raise NotImplementedError


def test_an_operator_of_ones_own_is_described() -> None:
    shown = runner.invoke(app, ["tasks", f"{__name__}:Faded"]).stdout
    assert f"{__name__}:Faded: Fades the picture." in shown and "By as much as `share` says." in shown
    assert "  share = (required)\n  levels = 7\n" in shown and f"--task {__name__}:Faded" in shown


def test_a_prior_is_described_as_it_is_listed() -> None:
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in runner.invoke(app, ["priors"]).stdout.splitlines()}
    for name in ENTRIES:
        shown = runner.invoke(app, ["priors", name]).stdout
        about = dict(line.split(": ", 1) for line in shown.splitlines() if ": " in line)
        title, size, *rest = rows[name]
        assert (title, *rest) == (
            about["title"],
            about["licence"],
            about["source"],
            "yes" if about["on_disk"] == "True" else "no",
        )
        assert round(int(about["bytes"]) / 1e6) == int(size.removesuffix(" MB").replace(",", ""))
        assert ("No SHA-256 is known" in shown) is (about["sha256"] == "unknown")
