"""The work of a worker: fetches and restores pictures, and leaves finished files. It never raises because of a picture."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leader import defaults
from leader.errors import LeaderError, UsageError, no_memory
from leader.files import flush_to_disk, printable, sha256_of
from leader.folders.choices import FolderChoices
from leader.folders.manifest import DONE, FAILED, REFUSED
from leader.folders.names import name_results, name_strip, order_files
from leader.folders.places import Source, open_source, open_target

if TYPE_CHECKING:
    from leader.priors.base import Prior
    from leader.restoration.restore import Preparation
    from leader.restoration.restored import Restoration


@dataclass(frozen=True)
class FolderTask:
    """The part that all pictures of a run share; sent once to every worker.

    source, out  addresses; staging: the local folder for finished files, or None if they are sent to `out`
    maps         suffix of the uncertainty maps, or None for none
    strips       whether thumbnails are kept
    """

    choices: FolderChoices
    source: str
    out: str
    staging: str | None
    maps: str | None = None
    strips: bool = False


@dataclass(frozen=True)
class PictureAnswer:
    """The outcome of a picture.

    status   "done", "refused" or "failed"
    error    the error message if it failed
    content  SHA-256 of the bytes read
    files    kind -> sha256, bytes, and its name in `folder`
    folder   the folder of the files if they were not sent; the receiver removes it
    wrong    "words" if the request itself is wrong, "prior" if the prior cannot be used, "output" if results cannot be written:
             the next picture would fail too
    """

    status: str
    error: str | None = None
    content: str | None = None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    folder: str | None = None
    run: dict[str, Any] | None = None
    wrong: str | None = None
    seconds: float = 0.0


class _OutputError(LeaderError):
    """The output folder, not the picture, is at fault."""

    wrong = "output"


class _PriorError(LeaderError):
    """The prior cannot be used."""

    wrong = "prior"


def restore_some(task: FolderTask, names: Sequence[str]) -> list[PictureAnswer]:
    """Restores pictures of the source: one, or several, where those of equal size share a pass of the network."""
    from leader.restoration.together import run_all

    begin = time.perf_counter()
    items = [_Item(task, name) for name in names]
    for item in items:
        item.attempt(item.fetch)
    waiting = [item for item in items if item.ready is not None]
    for item, made in zip(waiting, run_all([item.ready for item in waiting if item.ready is not None], task.choices.check)):
        item.attempt(partial(item.finish, made))
    seconds = round((time.perf_counter() - begin) / len(items), 3)
    return [item.answer(seconds) for item in items]


class _Item:
    """A picture in progress: its folder, its data, its outcome."""

    def __init__(self, task: FolderTask, name: str) -> None:
        self.task, self.name = task, name
        self.folder: Path | None = None
        self.content: str | None = None
        self.ready: Preparation | None = None
        self._answer: PictureAnswer | None = None

    def attempt(self, part: Callable[[], None]) -> None:
        """Does a part of the work; an exception becomes this picture's outcome."""
        try:
            part()
        except Exception as error:
            wrong = "words" if isinstance(error, UsageError) else getattr(error, "wrong", None)
            self._answer = PictureAnswer(FAILED, _explain_error(error, self.folder), wrong=wrong)

    def answer(self, seconds: float) -> PictureAnswer:
        """The outcome; without a result, all files of the picture are removed."""
        answer = self._answer
        assert answer is not None
        if self.folder is not None and (answer.status != DONE or self.task.staging is None):
            shutil.rmtree(self.folder, ignore_errors=True)
        return replace(answer, seconds=seconds)

    def fetch(self) -> None:
        """Copies the picture and makes every choice of its restoration."""
        from leader.pictures import check_format

        self.folder = _make_folder(self.task)
        copy = self.folder / "in" / self.name.rsplit("/", 1)[-1]
        self.content = _fetch(open_source(self.task.source), self.name, copy)
        picture = Path(name_results(self.name, self.task.maps)["picture"])
        check_format(picture)
        ready = _find_model(self.task.choices).prepare(copy)
        check_format(picture, ready.given.alpha is not None, ready.size)
        copy.unlink()
        self.ready = ready

    def finish(self, made: Restoration | Exception) -> None:
        """Writes the result of the first run, or of a second attempt."""
        from leader.restoration.second_try import run_with_second_try

        if isinstance(made, Exception):
            raise made
        assert self.ready is not None
        first, keep_failed = self.ready, self.task.choices.keep_failed
        restored = run_with_second_try(first, lambda one: made if one is first else one.run())
        run = _describe_run(restored)
        if restored.verdict is not None and restored.verdict.level == "failed" and not keep_failed:
            self._answer = PictureAnswer(REFUSED, content=self.content, run=run)
        else:
            folder = None if self.task.staging is None else str(self.folder)
            self._answer = PictureAnswer(DONE, content=self.content, files=self._keep(restored), folder=folder, run=run)

    def _keep(self, restored: Restoration) -> dict[str, dict[str, Any]]:
        """Leaves or sends the files of a result, complete and on disk: kind -> sha256, bytes, file."""
        from leader.folders.report import write_strip

        assert self.folder is not None
        task, files = self.task, dict[str, dict[str, Any]]()
        names = name_results(self.name, task.maps) | ({"strip": name_strip(self.name)} if task.strips else {})
        made = {kind: self.folder / f"{kind}{Path(final).suffix.lower()}" for kind, final in names.items()}
        try:
            restored.save(made["picture"], task.choices.location)
            if "map" in made:
                restored.save_map(made["map"])
            if "strip" in made:
                write_strip(made["strip"], restored.given.rgb(), restored.picture.rgb(), restored.uncertainty)
            for kind in order_files(names):
                file = made[kind]
                flush_to_disk(file)
                files[kind] = {"sha256": sha256_of(file), "bytes": file.stat().st_size, "file": file.name}
                if task.staging is None:
                    open_target(task.out).keep(file, names[kind])
        except OSError as error:
            raise _OutputError(f"The result cannot be written ({error.strerror or error}).") from error
        except LeaderError as error:
            # a write that failed inside leader.files carries the system's error
            raise (_OutputError(str(error)) if isinstance(error.__cause__, OSError) else error) from error
        return files


def _make_folder(task: FolderTask) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="leader-", dir=task.staging))
        (folder / "in").mkdir()
    except FileNotFoundError as error:
        raise _OutputError(
            f"This machine cannot see the folder {printable(task.staging or task.out)}; share it with all machines, or give an "
            "address such as s3://BUCKET/NAME."
        ) from error
    except OSError as error:
        raise _OutputError(f"Results cannot be written ({error.strerror}).") from error
    return folder


def _fetch(source: Source, name: str, copy: Path) -> str:
    try:
        return source.fetch(name, copy)
    except FileNotFoundError as error:
        raise LeaderError("It vanished after the folder was listed.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise _OutputError(f"It could not be copied ({error.strerror}).") from error
        raise LeaderError(f"It cannot be read ({error.strerror or error}).") from error


def _describe_run(restored: Restoration) -> dict[str, Any]:
    """The summary of a run without its path and without tables, which the settings already hold."""
    summary = restored.summary()
    summary["options"] = {key: value for key, value in summary["options"].items() if not isinstance(value, Mapping)}
    del summary["trace"], summary["versions"]
    return summary


class _Model:
    """A prior, loaded once for all pictures of this process."""

    def __init__(self, choices: FolderChoices) -> None:
        from leader.priors import loading
        from leader.restoration.repeat import weights_hash
        from leader.restoration.restore import name_precision

        self.request, self.source = choices.request, choices.prior
        dtype, device = self.request.dtype, self.request.device
        options: dict[str, Any] = {} if device is None else {"device": device}
        self.prior: Prior = loading.load_prior(self.source, dtype=dtype or defaults.DTYPE, **options)
        self.sha256 = weights_hash(self.source)
        self.dtype = name_precision(dtype, self.prior)

    def prepare(self, copy: Path) -> Preparation:
        """The Preparation of a picture, the same as `prepare` makes with the prior by name."""
        ready = self.request.prepare(copy, prior=self.prior, dtype=None)
        origin = replace(ready.origin, prior=self.source, prior_sha256=self.sha256, dtype=self.dtype)
        return replace(ready, origin=origin)


_models: dict[str, _Model] = {}


def _find_model(choices: FolderChoices) -> _Model:
    if choices.digest not in _models:
        _models.clear()
        try:
            _models[choices.digest] = _Model(choices)
        except UsageError:
            raise
        except LeaderError as error:
            raise _PriorError(str(error)) from error
    return _models[choices.digest]


def _explain_error(error: Exception, folder: Path | None) -> str:
    """The error message, with the name of the source instead of its copy."""
    if isinstance(error, MemoryError):
        return str(no_memory())
    if isinstance(error, (LeaderError, OSError)):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]} (this is a bug in leader, please report it)."
    if folder is not None:
        text = text.replace(f"{printable(folder)}{os.sep}in{os.sep}", "")
    return text
