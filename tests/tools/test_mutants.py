"""Random bugs in a package of a few lines: which are made, which are noticed, and what is remembered."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from tools.mutants.__main__ import main
from tools.mutants.draw import draw_bugs
from tools.mutants.reach import Reach
from tools.mutants.trial import FORKS

SUMS = """
FACTOR = 2


def double(x, plus=7):
    return FACTOR * x


def half(x):
    return x / 2


def third(x):
    return x / 3
"""
TESTS = """
from leader.sums.parts import double, half


def test_double():
    assert double(3) == 6


def test_half():
    half(1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("sums", "more"):
        (tmp_path / "src" / "leader" / name).mkdir(parents=True)
        (tmp_path / "src" / "leader" / name / "__init__.py").touch()
    (tmp_path / "src" / "leader" / "__init__.py").touch()
    (tmp_path / "src" / "leader" / "sums" / "parts.py").write_text(SUMS)
    (tmp_path / "src" / "leader" / "more" / "use.py").write_text("def use(x):\n    return half(x) + 5 / 2\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sums.py").write_text(TESTS)
    return tmp_path


def test_bugs_are_drawn_by_seed_and_room_and_some_are_two(project: Path) -> None:
    source = project / "src" / "leader"
    ten = draw_bugs(source, 10, 3)
    assert ten == draw_bugs(source, 12, 3)[:10] != draw_bugs(source, 10, 4)
    assert {bug.room for bug in ten} == {"sums", "more"}
    assert {bug.room for bug in draw_bugs(source, 5, 1, "more")} == {"more"}
    pairs = [bug for seed in range(9) for bug in draw_bugs(source, 9, seed) if len(bug.edits) == 2]
    assert any(len({edit.file for edit in bug.edits}) == 2 for bug in pairs)
    for bug in pairs:
        texts = bug.texts(source)
        assert texts is not None and all(ast.parse(text) for text in texts.values())
        assert bug.diff(source).count("\n@@") >= 1


def test_what_is_noticed_is_told_and_remembered(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FORKS.set_forkserver_preload(["pytest", "hypothesis"])  # these tests need no torch
    words = ["--root", str(project), "--room", "sums", "--count", "6", "--jobs", "1"]
    bugs = draw_bugs(project / "src" / "leader", 6, 1, "sums")
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert (project / "src" / "leader" / "sums" / "parts.py").read_text() == SUMS
    record = project / "out" / "mutants" / "sums-1.jsonl"
    kept = {entry["bug"]: entry for entry in map(json.loads, record.read_text().splitlines())}
    noticed = {bug.functions[0][1]: kept[bug.identity(project / "src" / "leader")]["status"] == "noticed" for bug in bugs}
    assert noticed["double"] and not noticed["third"]
    assert "unnoticed: " in printed and printed.rstrip().splitlines()[-1].split()[:2] == ["all", "6"]
    with record.open("a") as file:
        file.write('{"bug": "cut sho')
    main(words)
    assert "noticed   " not in capsys.readouterr().out, "nothing is tried twice"


def test_near_and_fast_tests_come_first_and_failing_ones_never(tmp_path: Path) -> None:
    def found(seconds: float, *names: str, functions: tuple[str, ...] = ("a/b.py::f",), spawns: bool = False) -> dict[str, Any]:
        return {"tests": dict.fromkeys((*names, "bad"), seconds), "failing": ["bad"], "functions": functions, "spawns": spawns}

    reach = Reach(tmp_path)
    reach.found = {
        "tests/slow.py": found(70, "slow"),
        "tests/test_c.py": found(0.1, "c"),
        "tests/test_d.py": found(0.1, "d", functions=("other.py::h",)),
        "tests/a/test_e.py": found(1, "e", functions=(), spawns=True),
        "tests/a/test_b.py": found(2, "b", "b2"),
    }
    assert list(reach.choose([("a/b.py", "f")])) == ["b", "b2", "e", "c"]
    assert list(reach.choose([("a/b.py", "new")])) == ["b", "b2", "e", "c"], "another function of the file is reached"
    assert list(reach.choose([("a/b.py", "f"), ("other.py", "h")])) == ["b", "b2", "d", "e", "c"]
    assert reach.choose([("nobody.py", "g")]) == {} and reach.failing == ["bad"] * 5
