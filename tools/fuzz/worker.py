"""Runs cases in a process of its own: memory is limited, an alarm ends what takes too long, every outcome is judged."""

import faulthandler
import os
import re
import resource
import shutil
import signal
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import leader
from leader.cli.errors import BUG, NO_ANSWER, TRACEBACK
from tools.fuzz.cases import Case, make_case

PACKAGE = f"{Path(leader.__file__).parent}/"
"""Where the package lies: a checkout may be called leader too."""
SECONDS = 20
GRACE = 60
"""Seconds beyond three alarms until a process that has not ended a case is ended."""
MEMORY = 4 << 30
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


class TooLong(BaseException):
    """The alarm. No Exception, so that nothing that handles errors can swallow it."""


@contextmanager
def alarm() -> Iterator[None]:
    """Ends the block after SECONDS of work, or three times as long for a process that waits or is kept from working."""

    def ring(*_: object) -> None:
        raise TooLong

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, SECONDS), signal.ITIMER_REAL: (signal.SIGALRM, 3 * SECONDS)}
    for timer, (number, seconds) in timers.items():
        signal.signal(number, ring)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)


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


@cache
def begin_worker() -> None:
    """A process of its own: little memory, and no warnings, which libraries in C print all the time."""
    prepare()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def serve(job: tuple[int, int, Path, Path]) -> Outcome:
    """Makes and runs a case, given by seed, number, and the folders of seeds and of work, in a worker of an engine."""
    seed, number, seeds, work = job
    begin_worker()
    folder = Path(tempfile.mkdtemp(prefix=f"{number}-", dir=work))
    faulthandler.dump_traceback_later(3 * SECONDS + GRACE, exit=True)  # what is deaf to the alarm loses its process
    try:
        return run_case(make_case(seed, number, seeds, folder), folder)
    finally:
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(folder, ignore_errors=True)


def run_case(case: Case, folder: Path) -> Outcome:
    """Runs a case under the alarm and judges it."""
    from typer.testing import CliRunner

    from leader.cli import app

    def judge(status: str, kind: str = "", error: BaseException | None = None, words: str = "", place: str = "") -> Outcome:
        told = " ".join((words or str(error or "")).replace(f"{folder}/", "").split())[:160].encode("utf-8", "replace").decode()
        return Outcome(case.number, case.reader, status, kind, place or place_of(error), told)

    before = _files(folder)
    os.environ["LEADER_CACHE"] = str(folder / "cache")
    try:
        with alarm():
            result = CliRunner().invoke(app, case.arguments)
    except BaseException as error:
        return judge(FINDING, f"over {SECONDS} s" if isinstance(error, TooLong) else type(error).__name__, error)
    said, code = result.output, result.exit_code
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return judge(FINDING, type(result.exception).__name__, result.exception)
    if code == BUG:  # the command line itself has printed the traceback (see TRACEBACK)
        frames = re.findall(rf'File "{re.escape(PACKAGE)}([^"]+)", line (\d+), in (\S+)', said)
        inside = [frame for frame in frames if not frame[0].startswith("cli/errors")]
        told = re.search(r"Error: (\w+): (.*?)\(this is a bug", " ".join(said.split()))
        kind, words = (told[1], told[2]) if told else ("bug", said[-300:])
        return judge(FINDING, kind, None, words, "{}:{} in {}".format(*inside[-1]) if inside else "outside the package")
    if "not enough memory" in said or "Traceback (most" in said:
        return judge(FINDING, "memory", _root(result.exception), said)
    if code == NO_ANSWER:
        return judge(SERVED)  # a failed picture is not written
    of_one_picture = case.arguments[:1] in (["restore"], ["degrade"]) and not any(
        os.path.isdir(word) for word in case.arguments[1:2] if "\0" not in word
    )  # written whole or not at all; of a folder what was done before stays
    made = sorted(_files(folder) - before) if of_one_picture else []
    if code == 0:
        told_only = "--help" in case.arguments or "Nothing was found to repair" in said
        lost = of_one_picture and not told_only and _files(folder) == before
        return judge(FINDING, "nothing was written", None, said) if lost else judge(SERVED)
    if not said.strip():
        return judge(FINDING, f"exit {code} without a word")
    return judge(FINDING, f"refused, yet it left {Path(made[0]).name}", None, said) if made else judge(REFUSED, words=said)


def _root(error: BaseException | None) -> BaseException | None:
    while error is not None and (error.__cause__ or error.__context__) is not None:
        error = error.__cause__ or error.__context__
    return error


def _files(folder: Path) -> set[str]:
    return {os.path.join(top, name) for top, folders, files in os.walk(folder) for name in (*folders, *files)}


def place_of(error: BaseException | None) -> str:
    """The innermost line of the package in an error's traceback, as file:line in function."""
    if error is None:
        return ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
    last = frames[-1] if frames else None
    return "outside the package" if last is None else f"{last.filename.removeprefix(PACKAGE)}:{last.lineno} in {last.name}"
