"""How commands end when something goes wrong around them: full disks, closed pipes, interruption, bugs."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leader.cli import app
from tests.cheap_prior import CheapPrior

runner = CliRunner()
WORDS = ["restore", "in.png", "out.png", "--task", "denoise", "--steps", "2", "--sigma", "0.1", "--keep-failed"]
START = "from leader.cli import main; main()"


def leader(*words: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """`leader` as a process of its own, with the redirections `shell`."""
    command = ["sh", "-c", f'exec "$0" -c "{START}" "$@" {shell}', sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        *((KeyboardInterrupt(), 130, "Interrupted"), (MemoryError(), 1, "not enough memory")),
        (OSError(errno.ENOSPC, "No space left on device", "/some/file"), 1, "/some/file"),
        *((OSError(errno.EDQUOT, "Quota"), 1, "to stdout failed (Quota)"), (OSError(errno.EFBIG, "", "f"), 1, "to f failed")),
        *((OSError(errno.EIO, "Broken disk", "f"), 1, "Broken disk"), (OSError(errno.ENODEV, "None"), 70, "this is a bug")),
        *((KeyError("x"), 70, "KeyError"), (RecursionError("deep"), 70, "this is a bug in leader")),
        *((AssertionError(), 70, "LEADER_TRACEBACK=1"), (RuntimeError("first\nsecond"), 70, "first second")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a_failure_inside_a_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, says: str
) -> None:
    monkeypatch.setattr(CheapPrior, "_predict", failing(error))
    monkeypatch.setenv("LEADER_TRACEBACK", "")
    result = runner.invoke(app, WORDS)
    assert result.exit_code == code and not Path("out.png").exists()
    told = [line for line in result.stderr.splitlines() if not line.startswith("Noise level")]
    assert len(told) == 1 and says in told[0], result.stderr


def test_the_traceback_of_a_bug_is_shown_when_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheapPrior, "_predict", failing(KeyError("x")))
    result = runner.invoke(app, WORDS)
    assert result.exit_code == 70 and "Traceback" in result.stderr and "in fail" in result.stderr


def test_a_failing_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.replace", failing(PermissionError(errno.EACCES, "Permission denied")))
    before = sorted(path.name for path in folder.iterdir())
    result = runner.invoke(app, WORDS)
    assert result.exit_code == 1 and "could not be written" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["estimators"], ["estimators", "head"], ["--help"], ["--version"], ["restore", "--help"]])
def test_stdout_on_a_full_disk(words: list[str]) -> None:
    ended = leader(*words, shell=">/dev/full")
    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1 and "No space left" in ended.stderr, ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_stderr_on_a_full_disk_does_not_lose_the_result(folder: Path) -> None:
    ended = leader("degrade", "in.png", "o.png", "--task", "denoise", "--sigma", "0.5", shell="2>/dev/full")
    assert ended.returncode == 0 and ended.stdout.strip() == "o.png"


@pytest.mark.parametrize("shell", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams(shell: str) -> None:
    ended = leader("estimators", shell=shell)
    assert ended.returncode == 0 and ended.stderr == ""


@pytest.mark.parametrize("words", [["estimators"], ["--help"]])
def test_a_reader_that_has_gone(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", START, *words]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_letters_that_stdout_does_not_have(folder: Path) -> None:
    ended = leader("degrade", "in.png", "größe.png", "--task", "sr", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "gr\\xf6\\xdfe.png" and Path("größe.png").exists()
