"""The checks of the documentation notice what they are for, and what docs/paper-tables.md names exists."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tools.check_docs import (
    ROOT,
    check_code,
    check_files,
    check_languages,
    check_leader,
    check_links,
    check_nav,
    check_widths,
    check_words,
    wrapped,
)
from tools.check_numbers import check_page
from tools.gallery import read_records, write_page
from typer.main import get_command

from leader.cli import app
from leader.methods import METHODS
from leader.operators.tasks import TASKS, list_options
from leader.plugins import PLUGINS

COMMAND: Any = get_command(app)
LONG = "word " * 40


@pytest.mark.parametrize(
    "line",
    [
        "leader restore in.png out.png --task sr  # a comment --with-words",
        "leader restore in.png out.png -t sr -p none -p satp --force",
        'leader bench compare table1 "DDNM + LEADer"',
        "leader bench run table1 --dry-run | head",
        "leader priors ffhq-256",
        "leader methods",
        "make test",
    ],
)
def test_commands_that_exist(line: str) -> None:
    assert list(check_code(f"```sh\n{line}\n```", {"test"}, COMMAND)) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("leader restore in.png out.png --tusk sr", "no option --tusk"),
        ("leader restor in.png out.png", "no command restor"),
        ("leader bench tabel table1", "no command tabel"),
        ("leader restore in.png --task sr", "takes 2 to 2 names; found 1"),
        ("leader methods ddnm ddrm", "found 2"),
        ("make tests", "no target tests"),
    ],
)
def test_commands_that_do_not(line: str, says: str) -> None:
    for text in (f"words\n\n```sh\n{line}\n```", f"words\n\n    {line}\n"):
        ((number, problem),) = check_code(text, {"test"}, COMMAND)
        assert says in problem and text.split("\n")[number - 1].strip() == line


def test_commands_in_the_middle_of_a_text() -> None:
    assert list(check_code("Use `leader restore --prior STATE` for it.", set(), COMMAND)) == []
    assert check_leader(["restore", "--x"], COMMAND, names_matter=False) == "`leader restore` has no option --x"
    ((number, problem),) = check_code("| small | `leader restore a.png b.png --fatcor 4` |", set(), COMMAND)
    assert number == 1 and "--fatcor" in problem


def test_python_must_compile() -> None:
    assert list(check_code("```python\nx = 1\n```", set(), COMMAND)) == []
    ((_, problem),) = check_code("```python\nx = = 1\n```", set(), COMMAND)
    assert "does not compile" in problem


def test_links(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("")
    text = "[a](there.md) [b](there.md#part) [c](https://example.org/x) [d](#part)\n[e](gone.md)"
    assert list(check_links(tmp_path / "page.md", text)) == [(2, "the link gone.md leads nowhere")]


def test_files_and_modules_that_are_named(tmp_path: Path) -> None:
    for name in ("src/leader/rooms/a.py", "benchmarks/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    there = "`rooms/a.py`, `benchmarks/b.py run`, `leader.rooms.a.make`, `photos/val`, benchmarks/in words."
    assert list(check_files(tmp_path, f"{there}\n\n    python benchmarks/b.py x/y")) == []
    gone = [
        "`python\nbenchmarks/c.py`",
        "`rooms/b.py`",
        "`benchmarks/c.jsonl`",
        "`leader.rooms.b.made`",
        "```sh\npython benchmarks/c.py\n```",
    ]
    for text in gone:
        ((_, problem),) = check_files(tmp_path, f"words\n\n{text}")
        assert problem.startswith("there is no ")


def test_long_pages_and_pages_that_nothing_leads_to(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "part" / "page.md"
    assert list(check_words(page, "word " * 1200)) == [] and len(list(check_words(page, "| word | " * 601))) == 1
    assert len(list(check_words(tmp_path / "README.md", "word " * 901))) == 1
    (tmp_path / "mkdocs.yml").write_text("nav:\n  - Page: part/page.md\n  - Other: apart/other.md\n")
    assert list(check_nav(page, tmp_path)) == [] and list(check_nav(tmp_path / "README.md", tmp_path)) == []
    assert len(list(check_nav(tmp_path / "docs" / "other.md", tmp_path))) == 1


def test_the_gallery_shows_what_was_recorded() -> None:
    records = read_records(ROOT / "docs/gallery/records.jsonl")
    assert (ROOT / "docs/gallery.md").read_text(encoding="utf-8") == write_page(records) + "\n"
    assert len(records) == 48 and all((ROOT / "docs/gallery" / f"{a}-{b}.webp").exists() for a, b in records)


def test_blocks_of_shell_are_run_or_said_not_to_be() -> None:
    page = "```sh\nleader demo\npip install .\n```\n\n```bash\nls\n```\n\n```console\npip install .\n```"
    assert [number for number, _ in check_languages(page)] == [3, 6]


def test_widths() -> None:
    page = f"# {LONG}\n\n{LONG}\n\n| {LONG} |\n\n```\n{LONG}\n```\n\n{'x' * 130}\n\n    {LONG}"
    assert [number for number, _ in check_widths(page)] == [1, 3]


def test_wrapping_keeps_words_and_structure() -> None:
    page = f"# Title\n\n{LONG}\nend\n\n- item {LONG}\n  more\n- short\n\n  3. {LONG}\n\n    code {LONG}\n\n| {LONG} |\n"
    new = wrapped(page)
    assert new.split() == page.split() and wrapped(new) == new
    assert list(check_widths(new)) == []
    lines = new.split("\n")
    assert f"    code {LONG}" in lines and f"| {LONG} |" in lines and "- short" in lines
    item = lines.index(next(line for line in lines if line.startswith("- item")))
    assert lines[item + 1].startswith("  word")
    numbered = lines.index(next(line for line in lines if line.startswith("  3. ")))
    assert lines[numbered + 1].startswith("     word")


PAGE = """12.34 before any mark
<!-- numbers: results/a.md -->
PSNR +0.44 % [0.2, 0.68], not 0.43, and 3.8e+08; `0.99` and [a](b-9.9.md) are no claims, nor is "0.58 dB".

| the paper says | we measure |
| --- | --- |
| 9.87 | -5.51 and 7.77 |

9.87 is ours again
<!-- numbers: -->
6.66
"""


def test_numbers_that_no_source_prints_are_found(tmp_path: Path) -> None:
    def find_lines() -> list[tuple[int, str]]:
        return [(line, what.split()[0]) for line, what in check_page(PAGE, tmp_path)]

    assert find_lines() == [(2, "there")], "the source is gone"
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.md").write_text("| +0.438 % | **0.24** | 0.6799 | -5.51 | 3.8e+08 |")
    assert find_lines() == [(3, "0.43"), (7, "7.77"), (9, "9.87")]


def test_what_is_named_as_published_exists() -> None:
    """Every `setting = value` of the section is a setting of a method, plug-in or task that its row names."""
    found = 0
    text = (ROOT / "docs/paper-tables.md").read_text(encoding="utf-8").split("## As published\n", 1)[1].split("\n## ", 1)[0]
    for row in (line for line in text.splitlines() if line.startswith("| ")):
        option = row.split("|")[2]
        names = set(re.findall(r"`([a-z+-]+)`", option))
        settings = set(re.findall(r"`([a-z_]+) =", option)) | (names & {"return_noisy", "published_units"})
        owners = names & {*METHODS, *PLUGINS, *TASKS}
        for setting in settings:
            found += 1
            known = [
                setting in list_options(name)
                if name in TASKS
                else setting in {item.name for item in fields(METHODS.get(name) or PLUGINS[name])}  # type: ignore[arg-type]
                for name in owners
            ]
            assert any(known), f"{setting} in {option}"
    assert found >= 9
