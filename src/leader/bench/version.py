"""The version of the code behind a record: a hash of the statements that can change its numbers.

Comments, docstrings and formatting do not count; the imports of a module inside this package do, except
those of the registries (a new method must not make the records of the old ones stale).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

PACKAGE = "leader"
COMMON = (
    "leader.noise",
    "leader.problem",
    "leader.schedule",
    "leader.uncertainty.estimators",
    "leader.bench.cell",
)
ALONE = ("leader.sampler", "leader.plan", "leader.bench.cell")
"""Hashed without their imports: they import every registry."""


def code_version(classes: Iterable[type], modules: Iterable[str] = ()) -> str:
    """The version of what these classes (with their bases), the loop and `modules` do, 16 hexadecimal
    digits.
    """
    roots = {*modules, *COMMON, *ALONE}
    for cls in classes:
        roots |= {base.__module__ for base in cls.__mro__ if base.__module__.startswith(f"{PACKAGE}.")}
    return _version(frozenset(roots))


@lru_cache(maxsize=256)
def _version(roots: frozenset[str]) -> str:
    seen: set[str] = set()
    waiting = sorted(roots)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in ALONE:
            waiting.extend(_imports(name))
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(f"{name} {_module_hash(name)}\n".encode())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=512)
def _module_hash(name: str) -> str:
    path = _file(name)
    digest = hashlib.sha256("\n".join(_statements(ast.parse(path.read_bytes()))).encode())
    for data in sorted(path.parent.glob("*.npz")):  # tables a module reads belong to it
        digest.update(data.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=512)
def _imports(name: str) -> tuple[str, ...]:
    """The modules of this package that a module imports at its top level; registries are left out."""
    found: set[str] = set()
    for node in ast.parse(_file(name).read_bytes()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {member for member in members if _exists(member)}
            found |= modules or {node.module or ""}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith(PACKAGE)}
    return tuple(sorted(item for item in found if not _is_registry(item)))


def _is_registry(name: str) -> bool:
    return _file(name).name == "__init__.py" and not list(_file(name).parent.glob("*.npz"))


def _exists(name: str) -> bool:
    parent = name.rpartition(".")[0]
    return _file(parent).name == "__init__.py" and importlib.util.find_spec(name) is not None


@lru_cache(maxsize=512)
def _file(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the module {name} has no source file")
    return Path(spec.origin)


def _statements(node: ast.AST, depth: int = 0) -> Iterator[str]:
    """A syntax tree as text that no version of Python changes: empty fields, positions and contexts are
    left out.
    """
    yield f"{depth} {type(node).__name__}"
    for field, value in ast.iter_fields(node):
        if field in ("ctx", "kind", "type_comment", "type_ignores") or value is None or value == []:
            continue
        for item in value if isinstance(value, list) else [value]:
            if _is_docstring(item):
                continue
            if isinstance(item, ast.AST):
                yield f"{depth} .{field}"
                yield from _statements(item, depth + 1)
            else:
                yield f"{depth} .{field} {item!r}"


def _is_docstring(item: object) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
