"""The mutation runner on a package of ten lines: what is noticed, what is not, what no longer fits, what is remembered."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools.mutants.__main__ import HERE, ROOT, main
from tools.mutants.made import make_mutants, mutants_of
from tools.mutants.mutant import Mutant, StaleError, read_list
from tools.mutants.outcomes import BROKEN, HUNG, NOTICED, UNNOTICED
from tools.mutants.patch import changed
from tools.mutants.runner import judge

DOUBLE = "test_double[3-6]"
SOURCE = """
FACTOR = 2


def double(x):
    return FACTOR * x


def half(x):
    y = x / 2
    return y


def third(x):
    y = x / 3
    return y
"""
TESTS = """
import pytest
from leader.sums import double, half


@pytest.mark.parametrize(("given", "wanted"), [(3, 6)])
def test_double(given, wanted):
    assert double(3) == 6


def test_half():
    half(1)
"""
ROOM = """
tests = ["tests/test_sums.py"]

[[mutant]]
file = "sums.py"
find = "FACTOR * x"
put = "3 * x"
breaks = "the factor"

[[mutant]]
file = "sums.py"
find = "FACTOR = 2"
put = "FACTOR = 3"
breaks = "the constant"

[[mutant]]
file = "sums.py"
find = "x / 3"
put = "x / 4"
breaks = "the third"

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


def _stored(project: Path) -> dict[str, dict[str, str]]:
    lines = (project / "results.jsonl").read_text().splitlines()
    return {entry["breaks"]: entry for entry in map(json.loads, lines)}


def _mutant(**changes: Any) -> Mutant:
    return replace(Mutant("sums", "sums.py", "FACTOR * x", "3 * x", "it", ("tests/test_sums.py",)), **changes)


def test_what_is_noticed_and_what_is_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project, "--map") == 0
    assert _run(project) == 1  # two of five
    printed = capsys.readouterr().out
    assert "tests/test_sums.py::test_double" in printed
    assert "unnoticed: sums.py: the divisor: `x / 2` -> `x / 4`" in printed
    assert "unnoticed: sums.py: the third: `x / 3` -> `x / 4` no test reaches it" in printed
    assert "stale: sums.py: nothing: it is not there: `x // 2` -> `x / 2` 'x // 2' occurs 0 times" in printed
    assert printed.rstrip().endswith("5        2  40.0 %")
    assert (project / "src" / "leader" / "sums.py").read_text() == SOURCE
    stored = _stored(project)
    assert {words: entry["status"] for words, entry in stored.items()} == {
        "the factor": NOTICED,
        "the constant": NOTICED,  # outside of functions: the package is loaded anew
        "the divisor": UNNOTICED,
        "the third": UNNOTICED,
    }
    assert [stored["the constant"]["by"], stored["the factor"]["by"]] == [f"tests/test_sums.py::{DOUBLE}"] * 2


def test_an_outcome_stands_until_its_function_or_its_test_changes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored, source, tests = (
        project / "results.jsonl",
        project / "src" / "leader" / "sums.py",
        project / "tests" / "test_sums.py",
    )
    _run(project, "--map")
    _run(project, "--only", "factor")
    before = stored.read_text()
    with stored.open("a") as file:
        file.write('{"id": "cut sho')
    dated = before.replace('"on": "2', '"on": "1')
    stored.write_text(dated)
    source.write_text(SOURCE.replace("x / 3", "x / 3.0").replace("def double(x):", 'def double(x):\n    """Twice."""'))
    tests.write_text(TESTS + "\n\ndef test_more():\n    pass\n")
    _run(project, "--only", "factor")
    assert stored.read_text() == dated  # nothing was run: neither the function nor the test says anything else
    tests.write_text(TESTS.replace("double(3) == 6", "double(4) == 8"))
    _run(project, "--only", "factor")
    assert stored.read_text() not in (dated, before)
    _run(project, "--only", "divisor")
    assert _stored(project)["the divisor"]["status"] == UNNOTICED
    tests.write_text(TESTS.replace("    half(1)", "    assert half(2) == 1"))
    _run(project, "--only", "divisor")
    assert _stored(project)["the divisor"]["status"] == NOTICED


def test_the_test_that_noticed_before_goes_first(project: Path) -> None:
    _run(project, "--map")
    _run(project, "--only", "factor")
    tests = project / "tests" / "test_sums.py"
    tests.write_text(TESTS.replace("@pytest", "def test_first():\n    assert double(1) == 2\n\n\n@pytest"))
    _run(project, "--only", "factor", "--again")
    assert _stored(project)["the factor"]["by"] == f"tests/test_sums.py::{DOUBLE}"


def test_failing_tests_are_no_measure(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(project, "--map")
    (project / "src" / "leader" / "sums.py").write_text(SOURCE.replace("FACTOR * x", "FACTOR * x + 1"))
    assert _run(project, "--only", "factor") == 1
    assert (
        f"broken: sums.py: the factor: `FACTOR * x` -> `3 * x` tests/test_sums.py::{DOUBLE} fails without"
        in capsys.readouterr().out
    )
    for path in (project / "out" / "mutants" / "reach").iterdir():
        path.unlink()
    assert _run(project, "--map") == 2
    assert f"fails without any mutant: tests/test_sums.py::{DOUBLE}" in capsys.readouterr().out


def test_bugs_are_made_and_tried(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "leader" / "methods").mkdir()
    (project / "src" / "leader" / "sums.py").rename(project / "src" / "leader" / "methods" / "sums.py")
    tests = project / "tests" / "test_sums.py"
    tests.write_text(TESTS.replace("leader.sums", "leader.methods.sums"))
    _run(project, "--map")
    _run(project, "--random", "3", "--seed", "1")
    printed = capsys.readouterr().out
    assert printed.rstrip().splitlines()[-1].split()[:2] == ["all", "3"]
    assert len(_stored(project)) == 3 or printed.count("s  methods/sums.py") == 3


def test_kinds_of_bugs_made(tmp_path: Path) -> None:
    def made(line: str) -> set[str]:
        return {mutant.put for mutant in mutants_of("a.py", line)}

    assert made("x = a < b") == {"x = (a >= b)"}
    assert made("x = a - b") == {"x = (a + b)"}
    assert made("x = a and not b") == {"x = (a or (not b))", "x = a and (b)"}
    assert made("x = a * (b + c)") == {"x = (a / (b + c))", "x = a * ((b - c))"}
    assert made("x = a.sqrt()") == {"x = a"}
    assert made("x = f(a, b, seed=seed)") == {"x = f(b, a, seed=seed)", "x = f(a, b)"}
    assert made("x = a[0]") == {"x = a[-1]", "x = a[1]"}
    assert made("x = a if c else b") == {"x = (b if c else a)"}
    assert made("a.b = c") == {"pass"}
    assert made("x = 0.5") == {"x = 1.0", "x = 0.25"}
    assert made("x = torch.min(a, True)") == {"x = torch.max(a, True)", "x = torch.min(a, False)"}
    assert made("raise ValueError(a < b)") == made("'text'") == made("def f(x: int) -> int: ...") == set()
    source = tmp_path / "src" / "leader"
    shutil.copytree(ROOT / "src" / "leader" / "plugins", source / "plugins")
    ten = make_mutants(source, 10, 3)
    assert ten == make_mutants(source, 12, 3)[:10] != make_mutants(source, 10, 4)
    (tmp_path / "tests" / "plugins").mkdir(parents=True)
    (tmp_path / "tests" / "test_satp.py").write_text("from leader.plugins.satp import SATP")
    named = {mutant.file: mutant.tests for mutant in make_mutants(source, 60, 3)}
    assert named["plugins/satp.py"] == ("tests/test_satp.py", "tests/plugins") and named["plugins/ucpm.py"] == (
        "tests/plugins",
    )
    assert all(mutant.applied((source / mutant.file).read_text(encoding="utf-8")) for mutant in ten)


def test_what_can_be_exchanged_in_a_loaded_package() -> None:
    assert list(changed(SOURCE, SOURCE.replace("x / 2", "x / 4"), "sums.py") or {}) == [("half", 9)]
    assert changed(SOURCE, SOURCE.replace("FACTOR = 2", "FACTOR = 3"), "sums.py") is None
    assert changed("def f(x=1): ...", "def f(x=2): ...", "f.py") is None
    inner = "def f(x):\n    return [y + 1 for y in x]\n"
    assert ("f", 1) in (changed(inner, inner.replace("+", "-"), "f.py") or {})
    moved = changed(SOURCE, "\n\n" + SOURCE, "sums.py")
    assert moved == {}  # only lines differ


def test_only_and_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project, "--list", "--only", "divisor") == 0
    assert capsys.readouterr().out.splitlines() == ["sums\tsums.py\tthe divisor\ttests/test_sums.py"]
    assert _run(project, "--only", "nowhere") == 2


def test_where_a_mutant_fits() -> None:
    assert "return 3 * x" in _mutant().applied(SOURCE)
    with pytest.raises(StaleError, match="occurs 2 times"):
        _mutant(find="return y").applied(SOURCE)
    changed = _mutant(find="return y", put="return -y", below="def third").applied(SOURCE)
    assert changed.endswith("return -y\n") and changed.count("return y") == 1
    with pytest.raises(StaleError, match="is not there"):
        _mutant(below="def fourth").applied(SOURCE)
    with pytest.raises(StaleError, match="not valid Python"):
        _mutant(put="3 *").applied(SOURCE)


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
    _run(project, "--map")
    assert _run(project, "--timeout", "4") == 1
    assert "hung" in capsys.readouterr().out


def test_wrong_entries_are_refused(project: Path) -> None:
    room = project / "list" / "sums.toml"
    room.write_text(ROOM.replace('put = "3 * x"', 'puts = "3 * x"'))
    with pytest.raises(SystemExit, match="puts"):
        read_list(project / "list")
    room.write_text(ROOM.replace('put = "3 * x"', 'put = "FACTOR * x"'))
    with pytest.raises(SystemExit, match="must change something"):
        read_list(project / "list")
    room.write_text(ROOM + ROOM.partition("]\n")[2])
    with pytest.raises(SystemExit, match="listed twice"):
        read_list(project / "list")


def test_the_list_names_files_and_tests_there_are() -> None:
    for mutant in read_list(HERE / "list"):
        for path in (f"src/leader/{mutant.file}", *(test.partition("::")[0] for test in mutant.tests)):
            assert (ROOT / path).exists(), f"{mutant.room}: {mutant.breaks}: {path}"
