"""The location of folders: on a local disk, or at an address that fsspec supports (s3://, gs://, memory://, ...)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from leader.folders.manifest import Manifest

MOST_BYTES = 1 << 30
"""The largest picture file, in bytes."""


@dataclass(frozen=True, slots=True, order=True)
class FoundFile:
    """A file of a folder.

    name   relative, with "/" between folders
    size   in bytes
    stamp  a hash or a date from the store that identifies its content, or None if the content itself has to be read
    """

    name: str
    size: int
    stamp: str | None = None


class Source(Protocol):
    """A folder of pictures."""

    address: str
    notes: list[str]

    def walk(self) -> Iterator[FoundFile]:
        """Its pictures, in no particular order; `notes` lists what was left out."""
        ...

    def sha256(self, name: str) -> str: ...

    def fetch(self, name: str, to: Path) -> str:
        """Copies a file and returns the SHA-256 of the copy."""
        ...


class Target(Protocol):
    """An output folder."""

    address: str

    def open(self) -> Manifest:
        """Prepares the folder for one run, and rejects a second one."""
        ...

    def staging(self) -> Path | None:
        """A local folder where workers leave results for `keep`; None if workers send them with `send`."""
        ...

    def size(self, name: str) -> int | None:
        """The size of a file in bytes; None if there is none."""
        ...

    def sha256(self, name: str) -> str: ...

    def keep(self, file: Path, name: str) -> None:
        """Moves a finished file of the staging folder to its place, whole or not at all."""
        ...

    def send(self, file: Path, name: str) -> None:
        """Copies a finished file to its place, whole or not at all."""
        ...

    def read(self, name: str) -> bytes: ...

    def sweep(self) -> None:
        """Removes everything temporary."""
        ...


def is_address(word: str) -> bool:
    """Whether a string is an address rather than a path."""
    scheme, separator, _ = word.partition("://")
    return bool(separator) and len(scheme) > 1 and scheme.replace("+", "").isalnum()


def local_path(word: str) -> Path | None:
    """The local path of a string; None for a remote address."""
    if not is_address(word):
        return Path(word)
    parts = urlsplit(word)
    return Path(unquote(parts.netloc + parts.path)) if parts.scheme == "file" else None


def open_source(word: str) -> Source:
    """A folder to read, by path or address."""
    path = local_path(word)
    if path is not None:
        from leader.folders.disk import DiskSource

        return DiskSource(path)
    from leader.folders.remote import RemoteSource

    return RemoteSource(word)


def open_target(word: str) -> Target:
    """A folder to write, by path or address."""
    path = local_path(word)
    if path is not None:
        from leader.folders.disk import DiskTarget

        return DiskTarget(path)
    from leader.folders.remote import RemoteTarget

    return RemoteTarget(word)
