"""A run over a folder: lists the pictures to restore, distributes them, keeps the results.

Only one process moves results into place and writes the manifest, first the result and then its line. If it is killed between
the two, the next run finds a file without a line, restores the picture again and sees that the bytes are the same.
"""

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from leader.engines import Engine, Lost
from leader.errors import LeaderError, UsageError
from leader.files import printable, sha256_of
from leader.folders.choices import FolderChoices
from leader.folders.disk import DiskSource, check_apart
from leader.folders.manifest import DONE, FAILED, REFUSED, Line, Manifest, read_level
from leader.folders.names import check_name, find_clashes, name_results, name_strip, order_files
from leader.folders.places import FoundFile, Source, Target, local_path, open_source, open_target
from leader.folders.report import write_report
from leader.folders.work import FolderTask, PictureAnswer, restore_some
from leader.progress import TimeLeft, format_clock

MOST_JOB_BYTES = 4 << 20
"""Total size of the files of a job with several pictures, which a worker holds in memory together."""
MOST_WRITE_FAILURES = 3
"""The run ends after this many consecutive results that could not be written: further ones would be computed in vain."""


@dataclass
class FolderOutcome:
    """The outcome of a run: how many pictures were restored, already done, refused by their verdict, and failed (name, why)."""

    restored: int = 0
    found: int = 0
    refused: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.restored + self.found + self.refused + len(self.failed)


class FolderMeter(TimeLeft):
    """Counts pictures. The time of a picture grows with its size, which is estimated from its file without decoding.

    sizes  bytes of every picture that will be reported by `settle`
    """

    def __init__(self, sizes: Iterable[int], clock: Callable[[], float] = time.monotonic) -> None:
        listed = list(sizes)
        self.total = len(listed)
        self.settled = self.failed = 0
        self._mean = sum(listed) / max(1, self.total) or 1.0
        # an empty file is assumed to take half as long as one of mean size
        super().__init__(self.total, sum(listed) / self._mean, 1.0, clock)

    def settle(self, size: int, failed: bool = False) -> None:
        """Counts a finished picture; failures mostly happen early and say nothing about the pace."""
        self.settled += 1
        self.failed += failed
        (self.drop if failed else self.finish)(size / self._mean)

    def __str__(self) -> str:
        text = f"{self.settled} of {self.total} pictures"
        if self.failed:
            text += f", {self.failed} failed"
        seconds = self.seconds_left
        return text if seconds is None or self.settled == self.total else f"{text}, about {format_clock(seconds)} left"


@dataclass(frozen=True)
class Watcher:
    """Callbacks for the progress of a run.

    note      one sentence about the folder
    listed    the pictures to restore, once
    finished  after every picture: its name, and what is wrong with it or None
    """

    note: Callable[[str], None] = lambda text: None
    listed: Callable[[FolderMeter], None] = lambda meter: None
    finished: Callable[[str, str | None], None] = lambda name, error: None


def run_folder(
    source: str,
    out: str,
    choices: FolderChoices,
    workers: Engine,
    *,
    maps: str | None = None,
    report: bool = False,
    force: bool = False,
    watcher: Watcher | None = None,
) -> FolderOutcome:
    """Restores every picture of `source` (path or address) whose result is not in `out` yet.

    maps    suffix of the uncertainty maps, None for none
    report  write the contact sheet, and keep thumbnails for it
    force   replace files that this program did not write
    """
    given, target = _open_both(source, out)
    watcher = watcher or Watcher()
    files = sorted(given.walk())
    for text in given.notes:
        watcher.note(text)
    if not files:  # before anything is created in the output folder
        raise LeaderError(f"No pictures were found in '{printable(given.address)}'.")
    with closing(target.open()) as manifest:
        try:
            run = _FolderRun(files, given, target, manifest, choices, maps, report, force, watcher)
            run.go(workers)
            if report:
                write_report(given, target, manifest, [item.name for item in files])
            return run.outcome
        finally:
            target.sweep()


def _open_both(source: str, out: str) -> tuple[Source, Target]:
    given, target = open_source(source), open_target(out)
    pictures, results = local_path(source), local_path(out)
    if isinstance(given, DiskSource) and pictures is not None and results is not None:
        check_apart(pictures, results)
        given.without = results
        given.address = str(pictures.resolve())
    elif given.address.rstrip("/") == target.address.rstrip("/"):
        raise UsageError("The results would replace the pictures; give another output folder.")
    return given, target


@dataclass(frozen=True, slots=True)
class _Work:
    """A picture to restore. unsure: there is a file without a line where its result belongs."""

    found: FoundFile
    unsure: bool


def share_out(work: list[_Work], count: int) -> list[list[_Work]]:
    """Groups pictures into jobs of at most `count`, limited in total file size: a large picture is a job of its own."""
    jobs: list[list[_Work]] = []
    size = 0
    for item in work:
        if not jobs or len(jobs[-1]) == count or size + item.found.size > MOST_JOB_BYTES:
            jobs.append([])
            size = 0
        jobs[-1].append(item)
        size += item.found.size
    return jobs


@dataclass
class _FolderRun:
    """One run over the files of a folder: what `run_folder` was given, and the outcome so far."""

    files: list[FoundFile]
    source: Source
    target: Target
    manifest: Manifest
    choices: FolderChoices
    maps: str | None
    strips: bool
    force: bool
    watcher: Watcher
    outcome: FolderOutcome = field(default_factory=FolderOutcome)
    unwritable: int = 0

    def go(self, workers: Engine) -> None:
        for number in self.manifest.damaged:
            self.watcher.note(f"Line {number} of the manifest cannot be read; a picture that only it covers is restored again.")
        work = self._list_work()
        if self.choices.digest not in self.manifest.settings:
            self.manifest.append({"kind": "settings", "digest": self.choices.digest, "choices": self.choices.describe()})
        meter = FolderMeter(item.found.size for item in work)
        self.watcher.listed(meter)
        staging = None if self.target.staging is None else str(self.target.staging)
        task = FolderTask(self.choices, self.source.address, self.target.address, staging, self.maps, self.strips)
        jobs = share_out(work, self.choices.together)
        while jobs:
            lost: list[list[_Work]] = []
            names = (tuple(item.found.name for item in items) for items in jobs)
            for index, answers in workers.each(partial(restore_some, task), names):
                items = jobs[index]
                if isinstance(answers, Lost) and len(items) > 1:
                    lost += [[item] for item in items]  # one of them was too much for its worker: try each alone
                    continue
                if isinstance(answers, Lost):
                    answers = [PictureAnswer(FAILED, f"It could not be restored: {answers.reason}.")]
                for item, answer in zip(items, answers, strict=True):
                    error = self._settle(item, answer, workers.threads)
                    meter.settle(item.found.size, error is not None)
                    self.watcher.finished(item.found.name, error)
            jobs = lost

    def _list_work(self) -> list[_Work]:
        """The pictures to restore; the others are counted, and errors are reported."""
        wrong = find_clashes((item.name for item in self.files), self.maps)
        work = []
        for item in self.files:
            try:
                check_name(item.name)
                if item.name in wrong:
                    raise LeaderError(wrong[item.name])
                decided = self._decide(item)
            except (LeaderError, OSError) as error:
                known = isinstance(error, LeaderError)
                words = str(error) if known else f"It cannot be accessed ({getattr(error, 'strerror', None) or error})."
                self._fail(item, words)
                self.watcher.finished(item.name, words)
            else:
                if decided is not None:
                    work.append(decided)
        return work

    def _decide(self, item: FoundFile) -> _Work | None:
        """None if a picture is done: same content, same settings, and its results are there."""
        entry = self.manifest.entries.get(item.name)
        names = name_results(item.name, self.maps)
        if entry is not None and entry.status != FAILED and entry.settings == self.choices.digest:
            there = entry.status == REFUSED or all(
                kind in entry.files and entry.files[kind][::2] == (name, self.target.size(name)) for kind, name in names.items()
            )
            known = item.stamp is not None and item.stamp == entry.stamp
            if there and (known or self.source.sha256(item.name) == entry.content):
                if entry.status == REFUSED:
                    self.outcome.refused += 1  # the same command would end the same way: without a result
                else:
                    self.outcome.found += 1
                    self._count(entry.level)
                return None
        unsure = False
        for kind, name in names.items():
            size = self.target.size(name)
            if size is None or self.force:
                continue
            kept = None if entry is None else entry.files.get(kind)
            if size < 0 or self.manifest.fresh or (kept is not None and self._is_foreign(kept)):
                raise LeaderError(
                    f"{printable(name)} in the output folder was not written, or was changed since, by this program; move it "
                    "away, or run with force, which replaces it."
                )
            unsure = unsure or kept is None
        return _Work(item, unsure)

    def _is_foreign(self, kept: tuple[str, str, int]) -> bool:
        name, digest, size = kept
        found = self.target.size(name)
        return found is not None and (found != size or self.target.sha256(name) != digest)

    def _settle(self, item: _Work, answer: PictureAnswer, threads: int) -> str | None:
        """Keeps the result of a worker; returns the error message if there is no result."""
        found, error = item.found, answer.error
        names = {**name_results(found.name, self.maps), "strip": name_strip(found.name)}
        if answer.wrong in ("words", "prior") and not self.outcome.restored and not self.outcome.found:
            raise (UsageError if answer.wrong == "words" else LeaderError)(answer.error or "")
        failed_to_write = answer.wrong == "output"
        if answer.status == DONE:
            try:
                self._keep(item, answer, names)
            except (LeaderError, OSError) as problem:
                error = str(problem) if isinstance(problem, LeaderError) else _explain_write_error(problem)
                failed_to_write = isinstance(problem, OSError)
            finally:
                if answer.folder is not None:
                    shutil.rmtree(answer.folder, ignore_errors=True)
        if error is not None:
            self._fail(found, error)
            self.unwritable = self.unwritable + 1 if failed_to_write else 0
            if self.unwritable >= MOST_WRITE_FAILURES:
                raise LeaderError(
                    f"{self.unwritable} results in a row could not be written, the last one because: {error} Fix that "
                    "and run the same command again: it continues where this one stopped."
                )
            return error
        self.unwritable = 0
        earlier = self._list_earlier(found.name) if answer.status == REFUSED else {}
        if "picture" in earlier:
            self.watcher.note(
                f"{printable(found.name)}: its verdict is failed; the result in the output folder is of an earlier run, with "
                "other settings or another picture."
            )
        line: Line = {
            "kind": "picture",
            "name": found.name,
            "status": answer.status,
            "content": answer.content,
            "stamp": found.stamp,
            "settings": self.choices.digest,
            "threads": threads,
            "seconds": answer.seconds,
            "files": earlier
            | {
                kind: {"name": names[kind], "sha256": about["sha256"], "bytes": about["bytes"]}
                for kind, about in answer.files.items()
            },
            "run": answer.run,
        }
        self.manifest.append(line)
        if answer.status == REFUSED:
            self.outcome.refused += 1
        else:
            self.outcome.restored += 1
            self._count(read_level(line))
        return None

    def _keep(self, item: _Work, answer: PictureAnswer, names: dict[str, str]) -> None:
        """Moves the files of a result into place, the picture last: once it is there, the result is complete."""
        if answer.folder is None:
            return
        for kind in order_files(answer.files):
            file, name = Path(answer.folder) / answer.files[kind]["file"], names[kind]
            size = self.target.size(name) if item.unsure and kind != "strip" else None
            if size is not None and self.target.sha256(name) != sha256_of(file):
                raise LeaderError(
                    f"{printable(name)} in the output folder was not written by this program; move it away, or run with force, "
                    "which replaces it."
                )
            self.target.keep(file, name)

    def _fail(self, item: FoundFile, error: str) -> None:
        self.outcome.failed.append((item.name, error))
        before = self.manifest.entries.get(item.name)
        said = before is not None and (before.status, before.settings) == (FAILED, self.choices.digest)
        if said and self.manifest.line(item.name).get("error") == error:
            return
        line: Line = {
            "kind": "picture",
            "name": item.name,
            "status": FAILED,
            "settings": self.choices.digest,
            "files": self._list_earlier(item.name),
            "error": error,
        }
        self.manifest.append(line)

    def _list_earlier(self, name: str) -> Line:
        """The files of an earlier run that are there for a picture: still ours, to be replaced one day."""
        before = self.manifest.entries.get(name)
        return {} if before is None else {k: {"name": n, "sha256": s, "bytes": b} for k, (n, s, b) in before.files.items()}

    def _count(self, level: str | None) -> None:
        """Counts the verdict of a picture whose result is there."""
        if level is not None:
            self.outcome.levels[level] = self.outcome.levels.get(level, 0) + 1


def _explain_write_error(error: OSError) -> str:
    return f"The result could not be written ({error.strerror or error})."
