"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leader.errors import LeaderError


def check_writable(path: Path) -> None:
    """Refuses, before any work is done, a place where no file can be written."""
    if path.is_dir():
        raise LeaderError(f"{path} is a folder; give the name of a file to write.")
    if not path.parent.is_dir():
        raise LeaderError(f"The folder {path.parent} does not exist; create it first.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise LeaderError(f"{path} cannot be written; choose another place or change its permissions.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file in the folder of `path` that takes its place when the block ends well and vanishes
    otherwise.
    """
    check_writable(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise LeaderError(f"{path} cannot be written ({error.strerror}); choose another place.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # temporary files are private; the finished one is like any other
        os.replace(temporary, path)
    except OSError as error:
        raise LeaderError(f"{path} could not be written ({error.strerror or error}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
