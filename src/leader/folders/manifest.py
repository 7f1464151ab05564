"""The manifest of an output folder: an append-only file with a line of JSON for every processed picture.

A line is written whole and synced before the next picture counts as done. A line that a crash cut short is removed; a line that
can no longer be read affects only its own picture, which is restored again. The last line about a picture counts. Each set of
settings has one line of its own, named by its digest.
"""

import errno
import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leader.errors import LeaderError
from leader.files import claim, drop_torn_end, flush_folder, printable

FORMAT = "folder 1"
DONE, REFUSED, FAILED = "done", "refused", "failed"
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PictureEntry:
    """The part of a picture's last line that is kept in memory.

    status    "done", "refused" (its verdict was failed, so it was not kept) or "failed" (no result; tried again)
    content   SHA-256 of the source; stamp: the hash or date given by its store, or None
    settings  digest of the choices
    files     kind -> (name, SHA-256, bytes)
    level     the word of its verdict, or None
    place     where the line is, for `Manifest.line`
    """

    status: str
    content: str | None
    stamp: str | None
    settings: str
    files: dict[str, tuple[str, str, int]]
    level: str | None
    place: tuple[int, int]


class Manifest(ABC):
    """The lines of an output folder.

    entries  source name -> its last line
    settings digests that have a line
    fresh    whether the manifest is new
    damaged  numbers of the lines that cannot be read
    """

    def __init__(self, fresh: bool) -> None:
        self.fresh = fresh
        self.entries: dict[str, PictureEntry] = {}
        self.settings: set[str] = set()
        self.damaged: list[int] = []

    @abstractmethod
    def append(self, line: Line) -> None:
        """Appends a line; it is safe when this returns (for an object store: a few seconds later)."""

    @abstractmethod
    def line(self, name: str) -> Line:
        """The last line about a source."""

    @abstractmethod
    def close(self) -> None:
        """Ends the run; every line is safe when this returns."""

    def _index(self, line: Line | None, place: tuple[int, int]) -> bool:
        """Adds a line to the entries; False if it has no usable content."""
        if line is None:
            return False
        if line.get("kind") == "settings":
            digest = line.get("digest")
            if not isinstance(digest, str):
                return False
            self.settings.add(digest)
            return True
        entry = _entry(line, place)
        if entry is None or not isinstance(line.get("name"), str):
            return False
        self.entries[line["name"]] = entry
        return True


class LocalManifest(Manifest):
    """A manifest file that only this process writes."""

    def __init__(self, path: Path) -> None:
        super().__init__(fresh=not path.exists() or path.stat().st_size == 0)
        self.path = path
        try:
            self._lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise LeaderError(f"{printable(path)} cannot be written ({error.strerror}); choose another folder.") from error
        try:
            claim(self._lock, path)
            drop_torn_end(path)
            if self.fresh:
                flush_folder(path.parent)  # results without a manifest count as foreign files
            self._end = 0
            with path.open("rb") as file:
                for number, text in enumerate(file, 1):
                    self._read(text, number)
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        except BaseException:
            os.close(self._lock)
            raise

    def _read(self, text: bytes, number: int) -> None:
        if not self._index(parse_line(text), (self._end, len(text))):
            self.damaged.append(number)
        self._end += len(text)

    def append(self, line: Line) -> None:
        text = encode_line(line)
        try:
            written = os.write(self._handle, text)
            if written != len(text):
                raise OSError(errno.ENOSPC, "No space left on device")
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._lock, self._end)  # never a torn line in the middle
            raise LeaderError(
                f"{printable(self.path)} can no longer be written ({error.strerror}); fix that and run the same "
                "command again: it continues where this one stopped."
            ) from error
        self._index(line, (self._end, len(text)))
        self._end += len(text)

    def line(self, name: str) -> Line:
        start, length = self.entries[name].place
        os.lseek(self._lock, start, os.SEEK_SET)
        found = parse_line(os.read(self._lock, length))
        if found is None:
            raise LeaderError(f"{printable(self.path)} was changed while it was in use; run the same command again.")
        return found

    def close(self) -> None:
        os.close(self._handle)
        os.close(self._lock)


def encode_line(line: Line) -> bytes:
    """A line with its end; equal lines give equal bytes."""
    return (json.dumps({"leader": FORMAT, **line}, sort_keys=True, separators=(",", ":"), default=str) + "\n").encode()


def parse_line(text: bytes) -> Line | None:
    """Parses the bytes of a line; None if they are not a valid line."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and line.get("leader") == FORMAT else None


def _entry(line: Line, place: tuple[int, int]) -> PictureEntry | None:
    status, content, stamp = line.get("status"), line.get("content"), line.get("stamp")
    files, settings = line.get("files", {}), line.get("settings")
    if status not in (DONE, REFUSED, FAILED) or not isinstance(files, dict) or not isinstance(settings, str):
        return None
    if not all(value is None or isinstance(value, str) for value in (content, stamp)):
        return None
    if status != FAILED and content is None:
        return None
    try:
        kept = {kind: (str(item["name"]), str(item["sha256"]), int(item["bytes"])) for kind, item in files.items()}
    except (KeyError, TypeError, ValueError, OverflowError):  # JSON may contain Infinity
        return None
    if status == DONE and "picture" not in kept:
        return None
    return PictureEntry(status, content, stamp, settings, kept, read_level(line), place)


def read_level(line: Line) -> str | None:
    """The level of the verdict in a line; None if there is none."""
    run = line.get("run")
    verdict = run.get("verdict") if isinstance(run, dict) else None
    return str(verdict.get("level")) if isinstance(verdict, dict) else None
