"""One-line bugs made from the syntax tree of the package, drawn with a seed: comparisons and signs turned, constants off by
one, roots left out, options dropped, arguments and branches swapped, statements skipped.

A kind is drawn first and a place for it second, so that rare kinds (a root, an option) come as often as frequent ones.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tools.mutants.mutant import Mutant, StaleError

WEIGHTS = {
    "methods": 10,
    "plugins": 10,
    "trust": 9,
    "restoration": 10,
    "pictures": 9,
    "operators": 8,
    "priors": 7,
    "uncertainty": 6,
    "sampler.py": 5,
    "problem.py": 4,
    "plan.py": 3,
    "noise.py": 2,
    "schedule.py": 2,
    "result.py": 2,
    "cli": 6,
    "folders": 7,
    "web": 7,
    "diagnosis": 5,
    "bench": 4,
    "metrics": 3,
    "engines": 2,
    "train": 2,
}
"""How often a room is drawn; rooms that are not named are not."""
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: ">=",
    ast.LtE: "<",
    ast.Gt: "<=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Pow: "*",
    ast.Mod: "//",
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "amin": "amax", "amax": "amin", "minimum": "maximum"}
NAMES |= {"maximum": "minimum", "cos": "sin", "sin": "cos", "floor": "ceil", "ceil": "floor", "mean": "sum", "std": "var"}
ROOTS = {"sqrt", "square", "abs", "exp", "log"}
DROPPED = {"clamp", "clip", "flip", "round"}
BORING = {
    "repr",
    "compare",
    "init",
    "flush",
    "encoding",
    "strict",
    "help",
    "daemon",
    "parents",
    "prefix",
    "name",
    "dtype",
    "device",
}
"""Options whose loss changes nothing that anybody sees, or fails at once."""
MORE = dict.fromkeys(("methods", "plugins", "uncertainty"), ("oracle",))
"""Folders of tests that hold a room beside its own."""
ELSEWHERE = ("tests/tools/", "tests/benchmarks/", "tests/bench/test_version.py")
"""Tests of what is not the package, or that look at its text."""

Change = tuple[str, ast.expr | ast.stmt, str]
"""The kind of bug, the node it takes the place of, and the new text."""


def make_mutants(source: Path, count: int, seed: int) -> list[Mutant]:
    """So many different bugs, in the order drawn: the first ten of a hundred are the ten of the same seed.

    Each names the test files that speak of its module, and those of its room.
    """
    draw = random.Random(seed)
    rooms = {name: _candidates(source, name) for name in WEIGHTS if (source / name).exists()}
    rooms = {name: kinds for name, kinds in rooms.items() if kinds}
    made: dict[str, Mutant] = {}
    for _ in range(100 * count):
        if len(made) == count or not rooms:
            break
        room = draw.choices(list(rooms), [WEIGHTS[name] for name in rooms])[0]
        kind = draw.choice(sorted(rooms[room]))
        mutant = draw.choice(rooms[room][kind])
        if _valid(mutant, (source / mutant.file).read_text(encoding="utf-8")):
            made.setdefault(mutant.place, mutant)
    root = source.parents[1]
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in sorted((root / "tests").rglob("test_*.py"))}
    return [replace(mutant, tests=_speaking_of(mutant.file, texts, root)) for mutant in made.values()]


def _speaking_of(file: str, texts: dict[str, str], root: Path) -> tuple[str, ...]:
    path = "leader." + file.removesuffix(".py").replace("/", ".")
    above, _, module = path.rpartition(".")
    imported = re.compile(rf"\b{re.escape(path)}\b|from {re.escape(above)} import [^\n]*\b{module}\b")
    room = file.partition("/")[0]
    folders = [f"tests/{name}" for name in (room, *MORE.get(room, ())) if (root / "tests" / name).is_dir()]
    return (*(name for name, text in texts.items() if imported.search(text) and not name.startswith(ELSEWHERE)), *folders)


def _candidates(source: Path, room: str) -> dict[str, list[Mutant]]:
    place = source / room
    found: dict[str, list[Mutant]] = {}
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        file = path.relative_to(source).as_posix()
        for mutant in mutants_of(file, path.read_text(encoding="utf-8")):
            found.setdefault(mutant.breaks, []).append(mutant)
    return found


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Every bug that can be made in a file, some of which are no Python or change nothing."""
    lines = text.split("\n")
    room = file.partition("/")[0].removesuffix(".py")
    for kind, node, put in _changes(ast.parse(text)):
        if node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1]
        raw = line.encode()  # columns of the syntax tree count bytes
        changed = (raw[: node.col_offset] + put.encode() + raw[node.end_col_offset :]).decode()
        mutant = Mutant(room, file, line, changed, kind, (), line=node.lineno)
        if changed != line:
            yield mutant


def _valid(mutant: Mutant, text: str) -> bool:
    try:
        return ast.dump(ast.parse(mutant.applied(text))) != ast.dump(ast.parse(text))
    except StaleError:
        return False


def _changes(tree: ast.Module) -> Iterator[Change]:
    """Walks what is executed: no annotations, decorators, error messages, nor bare constants (docstrings)."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert):
            continue
        if isinstance(node, ast.expr | ast.stmt):
            yield from _of(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            waiting += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.AST)]


def _of(node: ast.expr | ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _closed(node.left), _closed(node.comparators[0])
        yield "a comparison turned", node, f"({left} {COMPARISONS[type(node.ops[0])]} {right})"
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _text(node.left) and not _text(node.right):
        yield "a sign turned", node, f"({_closed(node.left)} {ARITHMETIC[type(node.op)]} {_closed(node.right)})"
    elif isinstance(node, ast.BoolOp):
        other = " or " if isinstance(node.op, ast.And) else " and "
        yield "and for or", node, f"({other.join(map(_closed, node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "a not or minus dropped", node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant | ast.UnaryOp):
        ends = {"0": "-1", "-1": "0", "1": "0", "2": "1"}
        if (end := ends.get(ast.unparse(node.slice))) is not None:
            yield "another entry", node, f"{ast.unparse(node.value)}[{end}]"
    elif isinstance(node, ast.IfExp):
        yield (
            "branches swapped",
            node,
            f"({ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {ast.unparse(node.body)})",
        )
    elif isinstance(node, ast.If) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield "a condition turned", node.test, f"(not ({ast.unparse(node.test)}))"
    else:
        yield from _statements(node)


def _constants(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "a flag turned", node, str(not node.value)
    elif isinstance(node.value, int):
        yield "a count off by one", node, str(node.value + 1)
        if node.value > 0:
            yield "a count off by one", node, str(node.value - 1)
    elif isinstance(node.value, float):
        yield "a number doubled or halved", node, repr(2 * node.value)
        yield "a number doubled or halved", node, repr(node.value / 2)


def _calls(node: ast.Call) -> Iterator[Change]:
    function = ast.unparse(node.func)
    last = function.rpartition(".")[2]
    if last in NAMES:
        renamed = function[: len(function) - len(last)] + NAMES[last]
        yield "another function", node.func, renamed
    if last in ROOTS and len(node.args) == 1 and not node.keywords:
        yield "a root or the like left out", node, f"({ast.unparse(node.args[0])})"
    if last in ROOTS | DROPPED and isinstance(node.func, ast.Attribute) and not (last in ROOTS and node.args):
        yield "a root or the like left out", node, ast.unparse(node.func.value)
    if len(node.args) >= 2 and type(node.args[0]) is type(node.args[1]) and isinstance(node.args[0], ast.Name | ast.Attribute):
        swapped = ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
        yield "arguments swapped", node, ast.unparse(swapped)
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in BORING:
            kept = [other for other in node.keywords if other is not keyword]
            yield "an option dropped", node, ast.unparse(ast.Call(node.func, node.args, kept))


def _statements(node: ast.expr | ast.stmt) -> Iterator[Change]:
    attribute = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if isinstance(node, ast.AugAssign) or attribute or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "a statement skipped", node, "pass"
    elif isinstance(node, ast.Continue):
        yield "break for continue", node, "break"
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        first, second = map(ast.unparse, node.value.elts)
        yield "a pair turned round", node, f"return {second}, {first}"


def _closed(node: ast.expr) -> str:
    """As text that may stand beside any sign."""
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript) else f"({text})"


def _text(node: ast.expr) -> bool:
    """Whether it is text, whose + and % are no arithmetic."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
