"""Draws which room of src/leader imports which, from the source alone, and refuses circles.

    python tools/import_graph.py            prints the drawing
    python tools/import_graph.py --write    puts it between the marks in docs/design.md
    python tools/import_graph.py --check    fails where docs/design.md shows another one

A room is a folder or a file at the top of src/leader. `->` are imports that run when a module is loaded; `..>` are imports
inside functions, which wait until they are needed, with their number. Imports for type checkers alone are left out. Every
room imports only from rooms on higher lines: a circle has no such order and ends in an error.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "leader"
BEGIN, END = "<!-- import graph: make graph -->", "<!-- end of import graph -->"


@dataclass
class Graph:
    """Imports between rooms: when loading, and (counted) inside functions."""

    rooms: set[str] = field(default_factory=set)
    loading: dict[str, set[str]] = field(default_factory=dict)
    later: dict[str, Counter[str]] = field(default_factory=dict)


def read_graph(source: Path) -> Graph:
    """The graph of the package in `source` (src/leader)."""
    graph = Graph()
    modules = {_module(path, source): path for path in sorted(source.rglob("*.py"))}
    for name, path in modules.items():
        room = _room(name)
        graph.rooms.add(room)
        here = graph.loading.setdefault(room, set())
        later = graph.later.setdefault(room, Counter())
        for target, lazy in _imports(ast.parse(path.read_text(encoding="utf-8")), name, path.name == "__init__.py", modules):
            other = _room(target)
            if other == room:
                continue
            if lazy:
                later[other] += 1
            else:
                here.add(other)
    for room in graph.rooms:  # what is loaded anyway need not be shown a second time
        for other in graph.loading[room]:
            del graph.later[room][other]
    return graph


def _module(path: Path, source: Path) -> str:
    parts = [PACKAGE, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(module: str) -> str:
    """leader.priors.base -> priors; leader itself, whose names are imported when they are used, is a room too."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def _imports(tree: ast.Module, name: str, is_package: bool, modules: dict[str, Path]) -> Iterator[tuple[str, bool]]:
    """(module, whether inside a function) of every import of the package's own modules."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, lazy = stack.pop()
        if isinstance(node, ast.If) and _for_type_checkers(node.test):
            stack.extend((child, lazy) for child in node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, lazy) for alias in node.names if alias.name.split(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, name, is_package)
            if base.split(".")[0] == PACKAGE:
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield (inner if inner in modules else base), lazy
        inside = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        stack.extend((child, inside) for child in ast.iter_child_nodes(node))


def _base(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parents = name.split(".") if is_package else name.split(".")[:-1]
    kept = parents[: len(parents) - (node.level - 1)]
    return ".".join([*kept, node.module] if node.module else kept)


def _for_type_checkers(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def in_order(loading: dict[str, set[str]]) -> list[str]:
    """The rooms, each after all that it imports, and as early as that allows; a circle is a ValueError that names it."""
    ordered: list[str] = []
    sorter = TopologicalSorter(loading)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ValueError(f"imports run in a circle: {' -> '.join(reversed(error.args[1]))}") from error
    while free := sorted(sorter.get_ready()):
        ordered.extend(free)
        sorter.done(*free)
    return ordered


def draw(graph: Graph) -> str:
    """The drawing: one line a room, lower rooms first."""
    order = in_order(graph.loading)
    width = max(len(room) for room in order)
    place = {room: i for i, room in enumerate(order)}
    lines = []
    for room in order:
        parts = []
        if graph.loading[room]:
            parts.append("-> " + " ".join(sorted(graph.loading[room], key=place.__getitem__)))
        if graph.later[room]:
            others = sorted(graph.later[room], key=lambda other: place.get(other, -1))
            parts.append("..> " + " ".join(f"{other}({graph.later[room][other]})" for other in others))
        lines.extend(_wrapped(room.ljust(width), parts))
    return "\n".join(lines)


def _wrapped(head: str, parts: list[str], width: int = 112) -> list[str]:
    """`head` and the arrows behind it, broken between names."""
    lines, line = [], head
    indent = " " * len(head)
    for part in parts:
        arrow, *names = part.split(" ")
        for i, name in enumerate(names):
            piece = f"  {arrow} {name}" if i == 0 else f" {name}"
            if len(line) + len(piece) > width:
                lines.append(line)
                line = f"{indent}{' ' * (len(arrow) + 2)}"
            line += piece
    return [*lines, line.rstrip()]


def placed(page: str, drawing: str) -> str:
    """The page with the drawing between its marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page needs the lines '{BEGIN}' and '{END}' once each")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n```text\n{drawing}\n```\n\n{END}{rest.split(END)[1]}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="put the drawing into the page")
    parser.add_argument("--check", action="store_true", help="fail where the page shows another drawing")
    parser.add_argument("--source", type=Path, default=ROOT / "src" / PACKAGE)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "design.md")
    given = parser.parse_args(arguments)
    try:
        drawing = draw(read_graph(given.source))
        if not (given.write or given.check):
            print(drawing)
            return 0
        page = given.page.read_text(encoding="utf-8")
        new = placed(page, drawing)
    except ValueError as error:
        print(f"{given.source}: {error}", file=sys.stderr)
        return 1
    if given.write:
        given.page.write_text(new, encoding="utf-8")
    elif new != page:
        print(f"{given.page} shows an older import graph; run: make graph", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
