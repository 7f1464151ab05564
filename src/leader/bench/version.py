"""The version of the code behind a number: a hash of the definitions that can change it, and of nothing else.

Definitions (functions, classes, constants) are followed from a few roots through the names they use, across the
modules of the package, and hashed one by one. So moving, renaming or splitting a module changes nothing, and
neither does a function that the number never meets. Left out: comments, docstrings, annotations, the wording
of errors, texts for humans, and the modules of NOT_FOLLOWED.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PACKAGE = "leader"
HOME = Path(__file__).parents[1]

NOT_FOLLOWED = {
    "leader.errors": "texts of errors",
    "leader.files": "writes files whole and prints their names",
    "leader.by_name": "builds what is named; the settings themselves are part of a record's identity",
    "leader.presets": "what was found there is part of a record's identity",
    "leader.methods": "the registry: the method of a record is a root of its own",
    "leader.plugins": "the registry: the plug-ins of a record are roots of their own",
    "leader.operators.tasks:TASKS": "the registry: the builder of a record's task is a root of its own",
    "leader.operators.tasks:VARIANTS": "other names of tasks; task and options are part of a record's identity",
    "leader.metrics.metric:METRICS": "the registry: every metric has a version of its own",
    "leader.bench.priors": "opens what is named; the prior's classes are roots, its files part of a record's identity",
    "leader.bench.cell": "what to run: all of it is part of a record's identity",
    "leader.bench.identity": "computes identities and versions",
    "leader.bench.records": "stores records",
    "leader.bench.version": "this file",
}
"""Modules, or definitions ("module:name"), that cannot change a number or are accounted for elsewhere; one that is given
as a root counts all the same.
"""

_FOR_HUMANS = frozenset({"paper", "summary", "needs", "calls_per_step", "title", "description", "example", "__all__"})
"""Assignments that only people read."""

_SHOWN = re.compile(r"__repr__|__str__|_repr_\w+_")
"""Methods that show an object."""

_DATA = re.compile(r"[\w.-]+\.(npz|npy|safetensors)")
"""A file name in a string: what it holds belongs to the definition."""

_IGNORED_FIELDS = ("ctx", "kind", "type_comment", "type_ignores", "annotation", "returns", "type_params")


def code_version(roots: Iterable[str]) -> str:
    """The version of what these definitions ("module:name") do, 16 hexadecimal digits."""
    return _version(frozenset(roots))


def root_of(thing: type | object) -> str:
    """A class or function of this package as a root."""
    return f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '').partition('.')[0]}"


@lru_cache(maxsize=1024)
def _version(roots: frozenset[str]) -> str:
    return _package().version(roots)


@lru_cache(maxsize=1)
def _package() -> Code:
    return Code(HOME, PACKAGE, frozenset(NOT_FOLLOWED))


@dataclass(frozen=True)
class _Module:
    """A module's source. definitions: the statements that give each name, "" for those that give none."""

    folder: Path
    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, tuple[str, str]]
    """Local name -> (module, name in it, or "" for the module itself)."""


class Code:
    """The source of a package. stopped: modules and definitions ("module:name") that are not followed."""

    def __init__(self, home: Path, package: str, stopped: frozenset[str] = frozenset()) -> None:
        self.home, self.package, self.stopped = home, package, stopped
        self._references: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self._hashes: dict[tuple[str, str], set[str]] = {}

    def version(self, roots: Iterable[str]) -> str:
        """A hash of all that the roots ("module:name") lead to."""
        digest = hashlib.sha256()
        for item in sorted({found for where in self.reached(roots) for found in self._hashes_of(where)}):
            digest.update(item.encode())
        return digest.hexdigest()[:16]

    def reached(self, roots: Iterable[str]) -> set[tuple[str, str]]:
        """(module, name) of the roots and of every definition they lead to."""
        waiting: list[tuple[str, str]] = []
        for root in sorted(set(roots)):
            found = self._home_of(*root.split(":"))
            if found is None:
                raise ModuleNotFoundError(f"there is no definition {root}")
            waiting.append(found)
        seen: set[tuple[str, str]] = set()
        while waiting:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            waiting += [item for item in self._references_of(here) if item not in seen and not self._is_stopped(*item)]
        return seen

    def _is_stopped(self, module: str, name: str) -> bool:
        return module in self.stopped or f"{module}:{name}" in self.stopped

    def _statements(self, where: tuple[str, str]) -> list[ast.stmt]:
        """Those that define a name, and those of its module that define none: they may do anything."""
        definitions = self._module(where[0]).definitions
        return [*definitions.get(where[1], []), *definitions.get("", [])]

    def _references_of(self, where: tuple[str, str]) -> set[tuple[str, str]]:
        if where not in self._references:
            found = (item for statement in self._statements(where) for item in self._named(where[0], statement))
            self._references[where] = set(found)
        return self._references[where]

    def _hashes_of(self, where: tuple[str, str]) -> set[str]:
        if where not in self._hashes:
            folder = self._module(where[0]).folder
            found: set[str] = set()
            for statement in self._statements(where):
                found.add(_hash("\n".join(_text(statement)).encode()))
                files = (file for name in _file_names(statement) for file in folder.rglob(name))
                found.update(_hash(file.read_bytes()) for file in files)
            self._hashes[where] = found
        return self._hashes[where]

    def _home_of(self, module: str, name: str) -> tuple[str, str] | None:
        """Where a name is defined, imports followed; None if it is not of this package."""
        for _ in range(8):  # imports of imports
            if not self._file(module):
                return None
            source = self._module(module)
            if name in source.definitions:
                return module, name
            if name not in source.imports:
                return None
            module, inner = source.imports[name]
            if not inner:
                return None
            name = inner
        return None

    def _named(self, module: str, statement: ast.stmt) -> Iterator[tuple[str, str]]:
        imports = self._module(module).imports
        for node in _walk(statement):
            found = None
            if isinstance(node, ast.Name):
                found = self._home_of(module, node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                target, inner = imports.get(node.value.id, ("", ""))
                if target and not inner:
                    found = self._home_of(target, node.attr)
            if found is not None:
                yield found

    def _module(self, name: str) -> _Module:
        path = self._file(name)
        if path is None:
            raise ModuleNotFoundError(f"the module {name} has no source file")
        return _parsed(path, self.home, self.package)

    def _file(self, name: str) -> Path | None:
        return _source_file(name, self.home, self.package)


@lru_cache(maxsize=2048)
def _source_file(name: str, home: Path, package: str) -> Path | None:
    if name != package and not name.startswith(f"{package}."):
        return None
    path = home.joinpath(*name.split(".")[1:])
    for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if file.is_file():
            return file
    return None


@lru_cache(maxsize=2048)
def _parsed(path: Path, home: Path, package: str) -> _Module:
    tree = ast.parse(path.read_bytes())
    definitions: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or _is_docstring(statement) or _is_type_checking(statement):
            continue
        for name in _names(statement):
            if name not in _FOR_HUMANS:
                definitions.setdefault(name, []).append(statement)
    imports: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = _source_file(inner, home, package) is not None
                imports[alias.asname or alias.name] = (inner, "") if is_module else (node.module or "", alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                imports[alias.asname or alias.name] = (alias.name, "")
    return _Module(path.parent, definitions, imports)


def _names(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module gives; [""] where it gives none."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return names or [""]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that count, annotations included: what a parameter may be is followed, if not hashed."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Raise) or _left_out(node, child)):
            yield from _walk(child)


def _text(node: ast.AST, depth: int = 0) -> Iterator[str]:
    """A syntax tree as text that no version of Python changes: empty fields, positions and contexts are left out."""
    yield f"{depth} {type(node).__name__}"
    if isinstance(node, ast.Raise):
        return  # that it raises counts, not what it says
    for field, value in ast.iter_fields(node):
        if field in _IGNORED_FIELDS or value is None or value == []:
            continue
        for item in value if isinstance(value, list) else [value]:
            if _left_out(node, item):
                continue
            if isinstance(item, ast.AST):
                yield f"{depth} .{field}"
                yield from _text(item, depth + 1)
            else:
                yield f"{depth} .{field} {item!r}"


def _file_names(statement: ast.stmt) -> set[str]:
    texts = [node.value for node in _walk(statement) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text for text in texts if _DATA.fullmatch(text)}


def _is_docstring(item: object) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)


def _left_out(parent: ast.AST, item: object) -> bool:
    """Docstrings, imports, and what only people read in a class: texts, and methods that show it."""
    if _is_docstring(item) or isinstance(item, (ast.Import, ast.ImportFrom)):
        return True
    if not isinstance(parent, ast.ClassDef):
        return False
    if isinstance(item, ast.FunctionDef):
        return _SHOWN.fullmatch(item.name) is not None
    targets: list[ast.expr] = []
    if isinstance(item, ast.Assign):
        targets = item.targets
    elif isinstance(item, ast.AnnAssign):
        targets = [item.target]
    return bool(targets) and all(isinstance(target, ast.Name) and target.id in _FOR_HUMANS for target in targets)


def _is_type_checking(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
