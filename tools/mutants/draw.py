"""Draws bugs with a seed: rooms by the root of their size, a kind of bug, then a place; one in six changes two places."""

import ast
import difflib
import hashlib
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.bugs import Edit, find_edits, walk_code

SHARE_OF_PAIRS = 1 / 6


@dataclass(frozen=True)
class Bug:
    """One edit, or two in different functions, of the package in the folder `source`."""

    edits: tuple[Edit, ...]

    @property
    def kind(self) -> str:
        """What was done, for people."""
        return " and ".join(edit.kind for edit in self.edits)

    @property
    def room(self) -> str:
        """The room of the first edit."""
        return room_of(self.edits[0].file)

    @property
    def functions(self) -> list[tuple[str, str]]:
        """Files and functions that are changed."""
        return [(edit.file, edit.owner) for edit in self.edits]

    def texts(self, source: Path) -> dict[str, str] | None:
        """The changed files; None where a change is no Python or means the same as before."""
        texts: dict[str, str] = {}
        for edit in sorted(self.edits, key=lambda edit: -edit.start):  # from the end: offsets of the others stay
            before = texts.get(edit.file) or (source / edit.file).read_text(encoding="utf-8")
            texts[edit.file] = edit.apply(before)
            try:
                if ast.dump(ast.parse(texts[edit.file])) == ast.dump(ast.parse(before)):
                    return None
            except SyntaxError:
                return None
        return texts

    def diff(self, source: Path) -> str:
        """The change as `diff -U0` shows it, without what only the breaking of lines makes different."""
        lines: list[str] = []
        for file, text in (self.texts(source) or {}).items():
            before = (source / file).read_text(encoding="utf-8")
            lines += difflib.unified_diff(before.splitlines(), text.splitlines(), file, file, n=0, lineterm="")
        return "\n".join(lines)

    def identity(self, source: Path) -> str:
        """Another for another change, or when a changed file is another."""
        return hashlib.sha256(repr(sorted((self.texts(source) or {}).items())).encode()).hexdigest()[:16]


def room_of(file: str) -> str:
    """The folder right below the package; "core" for files that are in none."""
    return file.partition("/")[0] if "/" in file else "core"


def draw_bugs(source: Path, count: int, seed: int, room: str | None = None) -> list[Bug]:
    """So many different bugs in the order drawn: the first ten of a hundred are the ten of the same seed."""
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*.py"))
    texts = {file: (source / file).read_text(encoding="utf-8") for file in files}
    edits = [edit for file, text in texts.items() for edit in find_edits(file, text)]
    rooms: dict[str, dict[str, list[Edit]]] = defaultdict(lambda: defaultdict(list))
    for edit in edits:
        rooms[room_of(edit.file)][edit.kind].append(edit)
    names = [name for name in sorted(rooms) if room in (None, name)]
    if not names:
        raise SystemExit(f"No bug can be planted in {room}; rooms are {', '.join(sorted(rooms))}.")
    weights = [math.sqrt(sum(map(len, rooms[name].values()))) for name in names]
    partners = _find_partners(edits, texts)
    draw = random.Random(seed)
    drawn: dict[str, Bug] = {}
    for _ in range(50 * count):
        if len(drawn) == count:
            break
        kinds = rooms[draw.choices(names, weights)[0]]
        edit = draw.choice(kinds[draw.choice(sorted(kinds))])
        choices = [others for others in partners(edit) if others] if draw.random() < SHARE_OF_PAIRS else []
        bug = Bug((edit, draw.choice(draw.choice(choices))) if choices else (edit,))
        if bug.texts(source) is not None:
            drawn.setdefault(bug.identity(source), bug)
    return list(drawn.values())


def _find_partners(edits: list[Edit], texts: dict[str, str]) -> Callable[[Edit], tuple[list[Edit], list[Edit]]]:
    """Says what an edit may come with: the same change in other functions (what an inverse would share), and changes of
    functions that call its own, where only one function has that name.
    """
    alike: dict[tuple[str, ...], list[Edit]] = defaultdict(list)
    inside: dict[tuple[str, str], list[Edit]] = defaultdict(list)
    raw = {file: text.encode() for file, text in texts.items()}
    for edit in edits:
        alike[edit.kind, edit.put, str(raw[edit.file][edit.start : edit.end])].append(edit)
        inside[edit.file, edit.owner].append(edit)
    defined: Counter[str] = Counter()
    callers: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for file, text in texts.items():
        for node, owner, _ in walk_code(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                defined[node.name] += 1
            elif isinstance(node, ast.Call):
                callers[getattr(node.func, "attr", getattr(node.func, "id", ""))].add((file, owner))

    def partners(edit: Edit) -> tuple[list[Edit], list[Edit]]:
        place, name = (edit.file, edit.owner), edit.owner.rpartition(".")[2]
        same = alike[edit.kind, edit.put, str(raw[edit.file][edit.start : edit.end])]
        calling = sorted(callers[name] - {place}) if defined[name] == 1 else []
        others = [other for other in same if (other.file, other.owner) != place]
        return others, [other for caller in calling for other in inside[caller]]

    return partners
