"""What became of each mutant, dated, in a committed file: a reader sees it, and the next run tries first what noticed it.

A stored "noticed" stands as long as the mutated function and the test that noticed it say the same (as syntax trees,
without docstrings): unrelated edits do not touch it. Any other outcome stands until the function or any test changes.
"""

from __future__ import annotations

import ast
import hashlib
import json
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tools.mutants.mutant import Mutant

NOTICED, UNNOTICED, STALE, HUNG, BROKEN = "noticed", "unnoticed", "stale", "hung", "broken"


@dataclass(frozen=True)
class Outcome:
    """A mutant's status, the test that noticed it (or why there is none), the key under which that stands, and the day."""

    id: str
    file: str
    breaks: str
    status: str
    by: str
    key: str
    on: str
    seconds: float = 0.0


class Outcomes:
    """A file of JSON lines, in the order of files and words; while a run lasts, lines are added at its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: dict[str, Outcome] = {}
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):
                path.write_text(text + "\n", encoding="utf-8")  # an interruption cut the last line short
            for line in text.splitlines():
                outcome = _parsed(line)
                if outcome is not None:
                    self._known[outcome.id] = outcome

    def get(self, mutant: Mutant) -> Outcome | None:
        return self._known.get(id_of(mutant))

    def add(self, outcome: Outcome) -> None:
        with self._lock:
            self._known[outcome.id] = outcome
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(outcome))

    def tidy(self, listed: list[Mutant]) -> None:
        """Writes the file anew: one line a mutant, those that are no longer listed left out."""
        ids = {id_of(mutant) for mutant in listed}
        kept = sorted(
            (item for item in self._known.values() if item.id in ids), key=lambda item: (item.file, item.breaks, item.id)
        )
        with self._lock:
            beside = self.path.with_suffix(".new")
            beside.write_text("".join(map(_line, kept)), encoding="utf-8")
            beside.replace(self.path)


def id_of(mutant: Mutant) -> str:
    return hashlib.sha256(mutant.place.encode()).hexdigest()[:10]


def key_of(before: str, after: str, status: str, by: str, root: Path) -> str:
    """Under which an outcome stands: what the mutant makes of the statements it changes, and the test that noticed, or all."""
    old = set(_statements(ast.parse(before)))
    new = [text for text in _statements(ast.parse(after)) if text not in old]
    tests = _test(root, by) if status == NOTICED else _all_tests(root)
    return hashlib.sha256("\0".join([*new, tests]).encode()).hexdigest()[:10]


def _statements(tree: ast.Module | ast.ClassDef) -> list[str]:
    """Functions, methods and other statements of a module, one by one."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found += _statements(node)
        else:
            found.append(ast.dump(_without_docstrings(node)))
    return found


def _without_docstrings(node: ast.AST) -> ast.AST:
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = part.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                part.body = part.body[1:] or [ast.Pass()]
    return node


def _test(root: Path, by: str) -> str:
    """The text of the test that noticed, as a syntax tree; its name alone where there is no such function."""
    file, _, name = by.partition("::")
    path = root / file
    wanted = name.partition("[")[0].rpartition("::")[2]
    if wanted and path.is_file():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == wanted:
                return by + ast.dump(_without_docstrings(node))
    return f"{by} is not there"


def _all_tests(root: Path) -> str:
    found = hashlib.sha256()
    for path in sorted((root / "tests").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _parsed(line: str) -> Outcome | None:
    """A stored outcome; None for a line that an interruption cut short."""
    try:
        return Outcome(**json.loads(line))
    except (ValueError, TypeError):
        return None


def _line(outcome: Outcome) -> str:
    entry = asdict(replace(outcome, seconds=0.0))
    del entry["seconds"]
    return json.dumps(entry, ensure_ascii=False) + "\n"
