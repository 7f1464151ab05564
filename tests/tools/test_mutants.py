"""The mutation runner on a package of ten lines: what is noticed, what is not, what no longer fits, what is remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.mutants.__main__ import LIST, ROOT, main
from tools.mutants.mutant import Mutant, StaleError, digest, files_of, read_list
from tools.mutants.runner import BROKEN, HUNG, NOTICED, UNNOTICED, judge

SOURCE = """
def double(x):
    return 2 * x


def half(x):
    y = x / 2
    return y


def third(x):
    y = x / 3
    return y
"""
TESTS = """
from leader.sums import double, half


def test_double():
    assert double(3) == 6


def test_half():
    half(1)
"""
ROOM = """
tests = ["tests/test_sums.py"]

[[mutant]]
file = "sums.py"
find = "2 * x"
put = "3 * x"
breaks = "the factor"

[[mutant]]
file = "sums.py"
find = "x / 2"
put = "x / 4"
breaks = "the divisor"

[[mutant]]
file = "sums.py"
find = "x // 2"
put = "x / 2"
breaks = "nothing: it is not there"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src" / "leader").mkdir(parents=True)
    (tmp_path / "src" / "leader" / "__init__.py").touch()
    (tmp_path / "src" / "leader" / "sums.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sums.py").write_text(TESTS)
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "sums.toml").write_text(ROOM)
    return tmp_path


def _run(project: Path, *more: str) -> int:
    places = ["--root", project, "--lists", project / "list", "--results", project / "results.jsonl", "--jobs", "1"]
    return main([*map(str, places), *more])


def _mutant(**changes: str) -> Mutant:
    given = {"room": "sums", "file": "sums.py", "find": "2 * x", "put": "3 * x", "breaks": "it", **changes}
    return Mutant(**given, tests=("tests/test_sums.py",))


def test_what_is_noticed_and_what_is_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project) == 1  # one of three
    printed = capsys.readouterr().out
    assert "noticed" in printed and "tests/test_sums.py::test_double" in printed
    assert "unnoticed: sums.py: the divisor: `x / 2` -> `x / 4`" in printed
    assert "stale: sums.py: nothing: it is not there: `x // 2` -> `x / 2` 'x // 2' occurs 0 times" in printed
    assert printed.rstrip().endswith("3        1  33.3 %")
    assert (project / "src" / "leader" / "sums.py").read_text() == SOURCE


def test_outcomes_are_remembered_until_file_or_tests_change(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = project / "results.jsonl"
    _run(project, "--trust")
    assert len(stored.read_text().splitlines()) == 2
    with stored.open("a") as file:
        file.write('{"key": "cut sho')
    _run(project, "--trust")
    assert len(stored.read_text().splitlines()) == 3
    capsys.readouterr()
    tests = project / "tests" / "test_sums.py"
    tests.write_text(TESTS.replace("    half(1)", "    assert half(2) == 1"))
    _run(project, "--trust", "--only", "divisor")
    assert "noticed" in capsys.readouterr().out.split()[0]
    _run(project, "--trust", "--only", "divisor", "--again")
    assert len(stored.read_text().splitlines()) == 5


def test_the_test_that_noticed_before_goes_first(project: Path) -> None:
    _run(project, "--trust", "--only", "factor")
    tests = project / "tests" / "test_sums.py"
    tests.write_text(TESTS.replace("def test_double", "def test_first():\n    assert double(1) == 2\n\n\ndef test_double"))
    _run(project, "--trust", "--only", "factor")
    noticed = [json.loads(line)["by"] for line in (project / "results.jsonl").read_text().splitlines()]
    assert noticed == ["tests/test_sums.py::test_double"] * 2


def test_failing_tests_are_no_measure(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "leader" / "sums.py").write_text(SOURCE.replace("2 * x", "5 * x"))
    assert _run(project) == 2
    assert "fail without any mutant (tests/test_sums.py::test_double)" in capsys.readouterr().out


def test_only_and_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project, "--list", "--only", "divisor") == 0
    assert capsys.readouterr().out.splitlines() == ["sums\tsums.py\tthe divisor\ttests/test_sums.py"]
    assert _run(project, "--only", "nowhere") == 2
    assert _run(project, "--only", "the factor") == 0


def test_where_a_mutant_fits() -> None:
    assert "return 3 * x" in _mutant().applied(SOURCE)
    with pytest.raises(StaleError, match="occurs 2 times"):
        _mutant(find="return y").applied(SOURCE)
    changed = _mutant(find="return y", put="return -y", below="def third").applied(SOURCE)
    assert changed.endswith("return -y\n") and changed.count("return y") == 1
    with pytest.raises(StaleError, match="is not there"):
        _mutant(below="def fourth").applied(SOURCE)
    with pytest.raises(StaleError, match="not valid Python"):
        _mutant(put="2 *").applied(SOURCE)


def test_key_follows_the_mutated_file_and_the_tests(project: Path) -> None:
    key = digest(_mutant(), "a", project)
    assert key == digest(_mutant(), "a", project) != digest(_mutant(), "b", project)
    (project / "tests" / "helper.py").write_text("")
    assert files_of(["tests/test_sums.py::test_half"], project) == [
        project / "tests" / "helper.py",
        project / "tests" / "test_sums.py",
    ]
    (project / "tests" / "helper.py").write_text("1")
    assert digest(_mutant(), "a", project) != key


def test_how_pytest_is_read() -> None:
    assert judge(0, "")[0] == UNNOTICED
    assert judge(1, "x\nFAILED tests/a.py::b - no\n") == (NOTICED, "tests/a.py::b")
    assert judge(2, "ERROR tests/a.py\n") == (NOTICED, "tests/a.py")
    assert judge(-11, "")[0] == NOTICED
    assert judge(None, "")[0] == HUNG
    assert judge(4, "no such file\n") == (BROKEN, "no such file")


def test_a_hanging_mutant_is_ended(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = "[[mutant]]".join(ROOM.split("[[mutant]]")[:2])
    (project / "list" / "sums.toml").write_text(first.replace('"3 * x"', '"[0 for _ in iter(int, 1)]"'))
    assert _run(project, "--trust", "--timeout", "8") == 1
    assert "hung" in capsys.readouterr().out


def test_wrong_entries_are_refused(project: Path) -> None:
    room = project / "list" / "sums.toml"
    room.write_text(ROOM.replace('put = "3 * x"', 'puts = "3 * x"'))
    with pytest.raises(SystemExit, match="puts"):
        read_list(project / "list")
    room.write_text(ROOM.replace('put = "3 * x"', 'put = "2 * x"'))
    with pytest.raises(SystemExit, match="must change something"):
        read_list(project / "list")
    room.write_text(ROOM + ROOM.partition("]\n")[2])
    with pytest.raises(SystemExit, match="listed twice"):
        read_list(project / "list")


def test_the_list_names_files_and_tests_there_are() -> None:
    for mutant in read_list(LIST):
        for path in (f"src/leader/{mutant.file}", *(test.partition("::")[0] for test in mutant.tests)):
            assert (ROOT / path).exists(), f"{mutant.room}: {mutant.breaks}: {path}"
