"""The location of folders: on a local disk, or at an address that fsspec supports (s3://, gs://, memory://, ...)."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from leader.folders.disk import DiskSource, DiskTarget
    from leader.folders.remote import RemoteSource, RemoteTarget

Source: TypeAlias = "DiskSource | RemoteSource"
Target: TypeAlias = "DiskTarget | RemoteTarget"

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
