"""Runs cases in a process of its own: memory is limited, an alarm ends what takes too long, every outcome is judged."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import leader
from leader.cli.errors import BUG, NO_ANSWER, TRACEBACK
from tools.fuzz.cases import Case, make_case

PACKAGE = f"{Path(leader.__file__).parent}/"
"""Where the package lies: a checkout may be called leader too."""
SECONDS = 20
MEMORY = 4 << 30
READY = "ready"
SERVED, REFUSED, FINDING = "served", "refused", "finding"


@dataclass(frozen=True)
class Outcome:
    """What became of a case; of a finding the kind, the place in the package and the last words."""

    number: int
    reader: str
    status: str
    kind: str = ""
    place: str = ""
    words: str = ""
    command: str = ""


class TooLong(BaseException):
    """The alarm. No Exception, so that nothing that handles errors can swallow it."""


class Alarm:
    """Rings after SECONDS. A process that was kept from working by others gets up to twice that again before it counts."""

    def __init__(self) -> None:
        self._rings, self._began = 0, 0.0
        signal.signal(signal.SIGALRM, self._ring)

    def start(self) -> None:
        self._rings, self._began = 0, time.process_time()
        signal.alarm(SECONDS)

    def stop(self) -> None:
        signal.alarm(0)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        self._rings += 1
        if self._rings == 3 or time.process_time() - self._began > SECONDS / 2:
            raise TooLong
        signal.alarm(SECONDS)


def prepare() -> None:
    """The command line with a prior that costs nothing in place of the embedded one, one thread, no network."""
    import torch
    from tests.cheap_prior import CheapPrior

    from leader.priors import loading

    os.environ |= {"HF_HUB_OFFLINE": "1", TRACEBACK: "1"}
    from diffusers import UNet2DModel  # noqa: F401  (imported now: it takes seconds, which belong to no case)
    from matplotlib import figure  # noqa: F401

    torch.set_num_threads(1)
    real = loading.load_prior

    def load(name: Any = "embedded", **options: Any) -> Any:
        return CheapPrior() if name == "embedded" else real(name, **options)

    setattr(loading, "load_prior", load)  # noqa: B010  (an assignment would have to repeat the signature)


def serve(connection: Connection, seed: int, seeds: Path, work: Path) -> None:
    """A worker: takes numbers of cases, gives outcomes, ends at None."""
    prepare()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    alarm = Alarm()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries in C print warnings there all the time
    connection.send(READY)
    while (number := connection.recv()) is not None:
        folder = work / str(number)
        folder.mkdir(parents=True)
        try:
            connection.send(run_case(make_case(seed, number, seeds, folder), folder, alarm))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run_case(case: Case, folder: Path, alarm: Alarm) -> Outcome:
    """Runs a case under the alarm and judges it."""
    from typer.testing import CliRunner

    from leader.cli import app

    before = _files(folder)
    os.environ["LEADER_CACHE"] = str(folder / "cache")
    alarm.start()
    try:
        result = CliRunner().invoke(app, case.arguments)
        alarm.stop()
    except TooLong as error:
        return _finding(case, f"over {SECONDS} s", error, folder)
    except BaseException as error:
        return _finding(case, type(error).__name__, error, folder)
    finally:
        alarm.stop()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return _finding(case, type(result.exception).__name__, result.exception, folder)
    said = result.output
    if result.exit_code == BUG:
        return _bug(case, said, folder)
    if "not enough memory" in said or "Traceback (most" in said:
        cause = result.exception.__cause__ or result.exception.__context__ if result.exception else None
        return _finding(case, "memory", _root(cause), folder, said)
    if result.exit_code == NO_ANSWER:
        return Outcome(case.number, case.reader, SERVED)  # a failed picture is not written
    if result.exit_code == 0:
        told = "--help" in case.arguments or "Nothing was found to repair" in said
        lost = _of_one_picture(case) and not told and _files(folder) == before
        return _finding(case, "nothing was written", None, folder, said) if lost else Outcome(case.number, case.reader, SERVED)
    if not said.strip():
        return _finding(case, f"exit {result.exit_code} without a word", None, folder)
    left = sorted(_files(folder) - before) if _of_one_picture(case) else []
    if left:
        return _finding(case, f"refused, yet it left {Path(left[0]).name}", None, folder, said)
    return Outcome(case.number, case.reader, REFUSED, words=_short(said, folder))


def _of_one_picture(case: Case) -> bool:
    """Whether it is written whole or not at all; of a folder what was done before stays."""
    return case.arguments[:1] in (["restore"], ["degrade"]) and not any(
        os.path.isdir(word) for word in case.arguments[1:2] if "\0" not in word
    )


def _bug(case: Case, said: str, folder: Path) -> Outcome:
    """What the command line itself called a bug; it has printed the traceback (see TRACEBACK)."""
    frames = re.findall(rf'File "{re.escape(PACKAGE)}([^"]+)", line (\d+), in (\S+)', said)
    inside = [frame for frame in frames if not frame[0].startswith("cli/errors")]
    place = "{}:{} in {}".format(*inside[-1]) if inside else "outside the package"
    told = re.search(r"Error: (\w+): (.*?)\(this is a bug", " ".join(said.split()))
    kind, words = (told[1], told[2]) if told else ("bug", said[-300:])
    return Outcome(case.number, case.reader, FINDING, kind, place, _short(words, folder), " ".join(case.arguments[:2]))


def _root(error: BaseException | None) -> BaseException | None:
    while error is not None and (error.__cause__ or error.__context__) is not None:
        error = error.__cause__ or error.__context__
    return error


def _files(folder: Path) -> set[str]:
    """Every entry below the folder, in plain bytes so that no name can trouble us."""
    return {os.path.join(top, name) for top, folders, files in os.walk(folder) for name in (*folders, *files)}


def _finding(case: Case, kind: str, error: BaseException | None, folder: Path, said: str = "") -> Outcome:
    words = _short(said or f"{error}", folder)
    return Outcome(case.number, case.reader, FINDING, kind, place_of(error), words, " ".join(case.arguments[:2]))


def place_of(error: BaseException | None) -> str:
    """The innermost line of the package in an error's traceback, as file:line in function."""
    if error is None:
        return ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
    if not frames:
        return "outside the package"
    last = frames[-1]
    return f"{last.filename.removeprefix(PACKAGE)}:{last.lineno} in {last.name}"


def _short(text: str, folder: Path) -> str:
    line = " ".join(text.replace(str(folder) + "/", "").split())
    return line[:160].encode("utf-8", "replace").decode()
