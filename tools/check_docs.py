"""Checks the pages people read: README.md, CONTRIBUTING.md, CHANGELOG.md and docs/, but for the tables of docs/results/.

    python tools/check_docs.py           tells what is wrong, and fails
    python tools/check_docs.py --wrap    first breaks long lines of text anew

- lines have at most 120 characters, outside code, tables and links that cannot be broken
- a page has at most 1,200 words, README.md 900, and the site leads to it
- every `leader` command in a code block exists, with the options it uses; so does every `make` target; the same for
  those in the middle of a text or table, which may leave out names
- Python in code blocks compiles; what tests/tools/test_examples.py runs (`sh`) is told from what it cannot run (`console`)
- links to files of the repository lead somewhere
- files and modules that are named exist: from the root of the repository, or from src/leader (`operators/blur.py`)
"""

import argparse
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
WORDS = 1200
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INLINE = re.compile(r"`(leader [^`]+)`")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+")
FILE = re.compile(r"(?<![\w/.:<~-])((?:[\w-]+/)+[\w.-]*\w)")
MODULE = re.compile(r"`leader((?:\.[a-z_]\w*)+)")
WORDS_END = {"|", "&&", ";", ">", "||"}


@dataclass(frozen=True)
class Block:
    """Consecutive lines of one kind: "code" (with its language), "table", "text" (a paragraph or item) or "other"."""

    kind: str
    line: int
    lines: tuple[str, ...]
    language: str = ""


def blocks(text: str) -> Iterator[Block]:
    """A Markdown page in blocks; joined again they are the page."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        start, line = i, lines[i]
        stripped = line.strip()
        if stripped.startswith("```"):
            i += 1
            while i < len(lines) and not lines[i].strip().startswith("```"):
                i += 1
            i += 1
            yield Block("code", start + 1, tuple(lines[start:i]), stripped[3:].strip())
        elif stripped.startswith("|"):
            while i < len(lines) and lines[i].strip().startswith("|"):
                i += 1
            yield Block("table", start + 1, tuple(lines[start:i]))
        elif not stripped or stripped.startswith(("#", "<", "![", "---", ">")):
            i += 1
            yield Block("other", start + 1, (line,))
        elif line.startswith("    ") and (start == 0 or not lines[start - 1].strip()) and not ITEM.match(line):
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            while not lines[i - 1].strip():
                i -= 1
            yield Block("code", start + 1, tuple(lines[start:i]), "indented")
        else:
            i += 1
            while i < len(lines) and _goes_on(lines[i]):
                i += 1
            yield Block("text", start + 1, tuple(lines[start:i]))


def _goes_on(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith(("```", "|", "#", "<", "![", ">")) and not ITEM.match(line)


def wrapped(text: str) -> str:
    """The page with paragraphs and items that hold a long line broken anew; all else as it is."""
    out: list[str] = []
    for block in blocks(text):
        if block.kind == "text" and any(len(line) > WIDTH for line in block.lines):
            out.extend(_filled(block.lines))
        else:
            out.extend(block.lines)
    return "\n".join(out)


def _filled(lines: tuple[str, ...]) -> list[str]:
    item = ITEM.match(lines[0])
    first = lines[0][: item.end() if item else len(lines[0]) - len(lines[0].lstrip())]
    words = " ".join([lines[0][len(first) :].strip(), *(line.strip() for line in lines[1:])])
    return textwrap.wrap(
        words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False, break_on_hyphens=False
    )


def check_widths(text: str) -> Iterator[tuple[int, str]]:
    """Lines of text that are too long and could be broken."""
    for block in blocks(text):
        if block.kind in ("code", "table"):
            continue
        for offset, line in enumerate(block.lines):
            if len(line) > WIDTH and max(map(len, line.split())) <= WIDTH // 2:
                yield block.line + offset, f"{len(line)} characters; at most {WIDTH}"


def check_nav(page: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Pages that the site would not lead to."""
    docs, site = root / "docs", root / "mkdocs.yml"
    if docs in page.parents and site.exists() and f" {page.relative_to(docs)}\n" not in site.read_text(encoding="utf-8"):
        yield 1, "no entry of `nav` in mkdocs.yml leads to this page: add one"


def check_words(page: Path, text: str) -> Iterator[tuple[int, str]]:
    """Pages that are longer than a reader stays: everything counts, tables and code too."""
    most = {"README.md": 900, "CHANGELOG.md": 5000}.get(page.name, WORDS)
    count = len(text.split())
    if count > most:
        yield 1, f"{count} words; at most {most}: split the page, or cut it"


def check_links(page: Path, text: str) -> Iterator[tuple[int, str]]:
    """Links to files that are not there."""
    for number, line in enumerate(text.split("\n"), 1):
        for target in LINK.findall(line):
            if "://" in target or target.startswith(("#", "mailto:")):
                continue
            if not (page.parent / target.split("#")[0]).exists():
                yield number, f"the link {target} leads nowhere"


def check_files(root: Path, text: str) -> Iterator[tuple[int, str]]:
    """Files of the repository and modules of the package that are named, in code, and not there."""
    package = root / "src" / "leader"
    ours = {path.name for path in root.iterdir() if path.is_dir()} - {"out"}
    for block in blocks(text):
        whole = block.kind == "text"  # code in a paragraph may go on in the next line
        for offset, line in enumerate([" ".join(block.lines)] if whole else block.lines):
            code = line if block.kind == "code" else " ".join(re.findall(r"`([^`]+)`", line))
            for name in FILE.findall(code):
                known = name.endswith(".py") or name.partition("/")[0] in ours
                if known and not (root / name).exists() and not (package / name).exists():
                    yield block.line + offset, f"there is no file {name}"
            for name in MODULE.findall(line):
                first = name.split(".")[1:]
                while first and not _is_module(package.joinpath(*first)):
                    first.pop()  # what is left out is a name inside a module
                if len(name.split(".")) - 1 - len(first) > 1:
                    yield block.line + offset, f"there is no leader{name}"


def _is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def check_code(text: str, targets: set[str], command: Any) -> Iterator[tuple[int, str]]:
    """Commands and options that do not exist, and Python that does not compile."""
    for block in blocks(text):
        if block.kind != "code":
            for offset, line in enumerate(block.lines):
                for words in map(str.split, INLINE.findall(line)):
                    problem = check_leader(words[1:], command, names_matter=False)
                    if problem:
                        yield block.line + offset, problem
            continue
        inner = block.lines if block.language == "indented" else block.lines[1:-1]
        if block.language.partition(" ")[0] == "python":
            try:
                compile("\n".join(inner), "example", "exec")
            except SyntaxError as error:
                yield block.line + (error.lineno or 1), f"this Python does not compile: {error.msg}"
        for offset, line in enumerate(inner):
            number = block.line + offset + (block.language != "indented")
            for words in _commands(line):
                problem = check_make(words, targets) if words[0] == "make" else check_leader(words[1:], command)
                if problem:
                    yield number, problem


def check_languages(text: str) -> Iterator[tuple[int, str]]:
    """Blocks of shell that say neither that tests run them (`sh`) nor that they cannot (`console`)."""
    for block in blocks(text):
        if block.language in ("bash", "shell"):
            yield block.line, "`sh` (`leader` commands, which the tests run) or `console` (what they cannot) instead of bash"
        elif block.language == "sh":
            for offset, line in enumerate(block.lines[1:-1], 1):
                if line.strip() and not line.startswith(("leader ", "#")):
                    yield (
                        block.line + offset,
                        "a `sh` block is run by the tests: `leader` commands only; else `console`",
                    )


def _commands(line: str) -> Iterator[list[str]]:
    """The `leader` and `make` commands of a line of shell."""
    stripped = line.strip().removeprefix("$ ")
    if not stripped.startswith(("leader ", "make ")):
        return
    words = shlex.split(stripped, comments=True)
    end = next((i for i, word in enumerate(words) if word in WORDS_END), len(words))
    yield words[:end]


def check_make(words: list[str], targets: set[str]) -> str | None:
    """What is wrong with a make command."""
    unknown = [word for word in words[1:] if "=" not in word and not word.startswith("-") and word not in targets]
    return f"make has no target {', '.join(unknown)}" if unknown else None


def check_leader(words: list[str], command: Any, names_matter: bool = True) -> str | None:
    """What is wrong with a command line: an unknown command or option, or a wrong number of names."""
    path = "leader"
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return None if path == "leader priors" else f"`{path}` has no command {words[0]}"
        command, path, words = command.commands[words[0]], f"{path} {words[0]}", words[1:]
    known = {name: item for item in command.params for name in (*item.opts, *item.secondary_opts)}
    names = 0
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-") or word == "-":
            names += 1
            continue
        option = word.split("=")[0]
        if option in ("--help", "-h"):
            return None
        if option not in known:
            return f"`{path}` has no option {option}"
        if not known[option].is_flag and "=" not in word:
            position += 1
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    least, most = sum(item.required for item in arguments), len(arguments)
    if names_matter and not hasattr(command, "commands") and not least <= names <= most:
        return f"`{path}` takes {least} to {most} names; found {names}"
    return None


def make_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def pages(root: Path) -> list[Path]:
    found = [path for path in sorted((root / "docs").rglob("*.md")) if path.parent.name != "results"]
    return [*(root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *found]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--wrap", action="store_true", help="first break long lines of text anew")
    parser.add_argument("--root", type=Path, default=ROOT)
    given = parser.parse_args(arguments)
    from typer.main import get_command

    from leader.cli import app

    command: Any = get_command(app)
    targets = make_targets((given.root / "Makefile").read_text(encoding="utf-8"))
    count = 0
    for page in pages(given.root):
        text = page.read_text(encoding="utf-8")
        if given.wrap and wrapped(text) != text:
            text = wrapped(text)
            page.write_text(text, encoding="utf-8")
        problems = [
            *check_widths(text),
            *check_words(page, text),
            *check_languages(text),
            *check_nav(page, given.root),
            *check_links(page, text),
            *check_files(given.root, text),
            *check_code(text, targets, command),
        ]
        for number, problem in sorted(problems):
            print(f"{page.relative_to(given.root)}:{number}: {problem}", file=sys.stderr)
        count += len(problems)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
