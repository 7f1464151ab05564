from __future__ import annotations

import ast

from leader.bench.version import _imports, _statements, code_version
from leader.methods import METHODS


def text(source: str) -> list[str]:
    return list(_statements(ast.parse(source)))


def test_comments_docstrings_and_layout_do_not_count() -> None:
    plain = "def f(x):\n    return x + 1\n"
    dressed = 'def f(x):\n    """Adds one."""\n    # why not\n    return (x +\n        1)\n'
    assert text(plain) == text(dressed)


def test_every_change_of_a_statement_counts() -> None:
    sources = [
        "a = 1",
        "a = 2",
        "a = 1.0",
        "b = 1",
        "a += 1",
        "a = '1'",
        "if a: b = 1",
        "if not a: b = 1",
        "a = -1",
    ]
    assert len({tuple(text(source)) for source in sources}) == len(sources)


def test_a_method_depends_on_its_bases_and_not_on_other_methods() -> None:
    assert "leader.methods.ddpg" in _imports("leader.methods.pirp")
    assert code_version([METHODS["ddnm"]]) != code_version([METHODS["ddpg"]])
    assert code_version([METHODS["ddnm"]]) == code_version([METHODS["ddnm"]])
    assert not any("__init__" in name or name == "leader.methods" for name in _imports("leader.methods.ddnm"))
