"""Folders at an address: object stores and everything else that fsspec supports.

An object store writes an object whole or not at all, but cannot append to one and has no lock. So workers upload results
directly, and the manifest is a series of small objects, each with the lines of a few seconds. After a kill, the pictures of the
last, unwritten object are restored again. Two simultaneous runs into one address are not detected.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leader.errors import LeaderError
from leader.files import hash_blocks, printable
from leader.folders.manifest import Line, Manifest, encode_line, parse_line
from leader.folders.names import HOME, is_source_name
from leader.folders.places import MOST_BYTES, FoundFile

SEGMENT_LINES = 64
SEGMENT_SECONDS = 5.0
"""A segment of the manifest is sent when it has this many lines, or when its first line is this old."""
_STAMPS = ("ETag", "etag", "md5Hash", "crc32c", "mtime", "LastModified", "last_modified", "updated", "created")


class _Remote:
    """A folder at an address."""

    def __init__(self, address: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise LeaderError(
                f"The address {printable(address)} needs fsspec; install it with: pip install 'leader-ir[cluster]'."
            ) from error
        self.address = address
        with _explain_errors(address):
            self.store, root = url_to_fs(address)
        self.root = str(root).rstrip("/")

    def _join_address(self, name: str) -> str:
        return f"{self.root}/{name}"

    def sha256(self, name: str) -> str:
        with _explain_errors(self.address), self.store.open(self._join_address(name), "rb") as file:
            return hash_blocks(file)


class RemoteSource(_Remote):
    """A folder of pictures; nothing of it is left out."""

    notes: tuple[str, ...] = ()

    def walk(self) -> Iterator[FoundFile]:
        with _explain_errors(self.address):
            self.store.invalidate_cache()
            try:
                listed = self.store.find(self.root, detail=True)
            except FileNotFoundError as error:  # of a bucket; an empty folder shows up as one without pictures
                raise _no_such_place(self.address) from error
        start = f"{self.root}/"
        for path, about in listed.items():
            name = str(path).removeprefix(start)
            if is_source_name(name):
                size = int(about.get("size") or 0)
                yield FoundFile(name, size, _stamp(about, size))

    def fetch(self, name: str, to: Path) -> str:
        with _explain_errors(self.address), self.store.open(self._join_address(name), "rb") as source, to.open("wb") as copy:
            return hash_blocks(source, copy, MOST_BYTES, printable(name))


class RemoteTarget(_Remote):
    """An output folder, to which workers send their results."""

    staging = None

    def open(self) -> Manifest:
        with _explain_errors(self.address):
            self.store.invalidate_cache()
            try:
                found = self.store.find(self.root, detail=True)
            except FileNotFoundError:
                found = {}
            self._sizes = {
                str(path).removeprefix(f"{self.root}/"): int(about.get("size") or 0) for path, about in found.items()
            }
            segments = sorted(name for name in self._sizes if name.startswith(f"{HOME}/manifest/"))
            return _SegmentManifest(self, [(name, self.read(name)) for name in segments])

    def size(self, name: str) -> int | None:
        """As listed when the run started: a query for each of a million objects would take hours."""
        return self._sizes.get(name)

    def read(self, name: str) -> bytes:
        with _explain_errors(self.address):
            data: bytes = self.store.cat_file(self._join_address(name))
        return data

    def keep(self, file: Path, name: str) -> None:
        self.write(file.read_bytes(), name)

    def write(self, data: bytes, name: str) -> None:
        """An object, whole or not at all."""
        with _explain_errors(self.address):
            place = self._join_address(name)
            try:
                self.store.makedirs(place.rsplit("/", 1)[0], exist_ok=True)
                self.store.pipe_file(place, data)
            except FileNotFoundError as error:
                raise _no_such_place(self.address) from error

    def sweep(self) -> None:
        """Objects appear only when complete: there are no temporary files."""


class _SegmentManifest(Manifest):
    """The lines of an output folder in numbered objects."""

    def __init__(self, target: RemoteTarget, segments: list[tuple[str, bytes]]) -> None:
        super().__init__(fresh=not segments)
        self._target = target
        self._kept: list[Line] = []
        self._waiting: list[bytes] = []
        self._since = 0.0
        numbers = (name.rsplit("/", 1)[-1].split(".")[0] for name, _ in segments)
        self._next = 1 + max((int(text) for text in numbers if text.isdecimal()), default=0)  # after the last, even with gaps
        number = 0
        for _, data in segments:
            for text in data.splitlines():
                number += 1
                if not self._keep(parse_line(text)):
                    self.damaged.append(number)

    def _keep(self, line: Line | None) -> bool:
        self._kept.append(line or {})
        return self._index(line, (len(self._kept) - 1, 0))

    def append(self, line: Line) -> None:
        self._keep(line)
        self._since = self._since if self._waiting else time.monotonic()
        self._waiting.append(encode_line(line))
        if len(self._waiting) >= SEGMENT_LINES or time.monotonic() - self._since >= SEGMENT_SECONDS:
            self._send()

    def line(self, name: str) -> Line:
        return self._kept[self.entries[name].place[0]]

    def close(self) -> None:
        self._send()

    def _send(self) -> None:
        if self._waiting:
            self._target.write(b"".join(self._waiting), f"{HOME}/manifest/{self._next:08d}.jsonl")
            self._waiting = []
            self._next += 1


def _stamp(about: dict[str, Any], size: int) -> str | None:
    """The hash or date that a store gives for an object's content; None if it gives neither."""
    found = next((about[key] for key in _STAMPS if about.get(key) is not None), None)
    return None if found is None else f"{size} {found}"


def _no_such_place(address: str) -> LeaderError:
    return LeaderError(f"There is no {printable(address)}; check the address, or create its bucket first.")


@contextmanager
def _explain_errors(address: str) -> Iterator[None]:
    """Converts any error of a store to one sentence; missing files and local disks keep their own errors."""
    try:
        yield
    except (LeaderError, FileNotFoundError, MemoryError):
        raise
    except Exception as error:  # every store has its own error types
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise
        why = printable(" ".join(str(error).split())[:200]) or type(error).__name__
        raise LeaderError(f"{printable(address)} cannot be used ({why}); check it, and your right to it.") from error
