"""Finds numbers on the pages that no record or command prints any more.

    python tools/check_numbers.py

A page says where the numbers of what follows come from, until its end or the next such line:

    <!-- numbers: results/table1.md results/pruning.md -->

Those are files, or patterns of files, under docs/ that `make results` writes from the committed records and by commands that
need none. Every number with decimals below the line must be there, in as many digits or more; `<!-- numbers: -->` ends it.
Numbers in code, links and quotes are no claims; what the paper published stands in a column whose head begins with "the paper".
"""

import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARK = re.compile(r"<!-- numbers:\s*(.*?)\s*-->")
NUMBER = re.compile(r"(?<![\w.])[-+−]?(\d+\.\d+(?:e[-+]?\d+)?)(?![\w.]*\w)")
NO_CLAIM = re.compile(r"`[^`]*`|\]\([^)]*\)|\"[^\"]*\"")
THEIRS = "the paper"


@lru_cache(maxsize=64)
def read_numbers(source: Path) -> tuple[Decimal, ...]:
    """Every number of a file, without its sign."""
    return tuple({Decimal(found) for found in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", source.read_text(encoding="utf-8"))})


def is_printed(number: str, sources: tuple[Path, ...]) -> bool:
    """Whether a source has the number, or one that rounds to it."""
    wanted = Decimal(number)
    half = Decimal(5).scaleb(wanted.as_tuple().exponent - 1)  # type: ignore[operator]  # finite, so an integer
    return any(abs(value - wanted) <= half for source in sources for value in read_numbers(source))


def check_page(text: str, docs: Path) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) for a page's text."""
    sources: tuple[Path, ...] = ()
    theirs: set[int] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if mark := MARK.search(line):
            found = {name: sorted(docs.glob(name)) for name in mark[1].split()}
            yield from ((number, f"there is no docs/{name}") for name, paths in found.items() if not paths)
            sources = tuple(path for paths in found.values() for path in paths)
            continue
        cells = line.split("|") if line.startswith("|") else [line]
        if line.startswith("| ") and THEIRS in line and not theirs:
            theirs = {at for at, cell in enumerate(cells) if cell.strip().startswith(THEIRS)}
        elif not line.startswith("|"):
            theirs = set()
        for at, cell in enumerate(cells):
            for claim in NUMBER.findall(NO_CLAIM.sub("", cell)) if sources and at not in theirs else ():
                if not is_printed(claim, sources):
                    yield number, f"{claim} is printed by none of {', '.join(path.name for path in sources)}"


def main() -> int:
    """Prints what is wrong and returns how much it is, at most 1."""
    wrong = [
        f"{page.relative_to(DOCS.parent)}:{number}: {what}"
        for page in sorted(DOCS.rglob("*.md"))
        for number, what in check_page(page.read_text(encoding="utf-8"), DOCS)
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
