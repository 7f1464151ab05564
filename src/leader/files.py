"""Files: checked before they are opened, written whole or not at all."""

import errno
import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

from leader.errors import LeaderError

LONGEST_NAME = 255
"""The longest file name, in bytes, that common file systems support."""


def printable(path: str | Path) -> str:
    """A file name as text that every terminal can show: invalid UTF-8 bytes and control characters are escaped."""
    text = str(path).encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text)


def check_readable(path: Path, what: str = "file") -> os.stat_result:
    """Rejects anything but a regular file before it is opened: a folder, a missing file, a pipe or device that never ends."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise LeaderError(
            _unreachable(path, error, f"There is no file {printable(path)}; check the name of the {what}.")
        ) from error
    if stat.S_ISDIR(found.st_mode):
        raise LeaderError(f"{printable(path)} is a folder; give the name of a {what}.")
    if not stat.S_ISREG(found.st_mode):
        raise LeaderError(f"{printable(path)} is a pipe or a device, not a {what}; give the name of a regular file.")
    if not os.access(path, os.R_OK):
        raise LeaderError(f"{printable(path)} cannot be read; change its permissions.")
    return found


def check_writable(path: Path) -> None:
    """Rejects, before any work is done, a path where no file can be written."""
    shown = printable(path)
    length = len(path.name.encode("utf-8", "surrogatepass"))
    if length > LONGEST_NAME:
        raise LeaderError(f"The file name '{shown[:40]}...' has {length} bytes; at most {LONGEST_NAME} are allowed.")
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise LeaderError(f"The file name '{shown}' is not valid UTF-8; choose another name.") from error
    try:
        parent = os.stat(path.parent)
    except (OSError, ValueError) as error:
        missing = f"The folder {printable(path.parent)} does not exist; create it first."
        raise LeaderError(_unreachable(path.parent, error, missing)) from error
    if not stat.S_ISDIR(parent.st_mode):
        raise LeaderError(f"{printable(path.parent)} is not a folder; choose another place for '{printable(path.name)}'.")
    try:
        kind: int | None = os.stat(path).st_mode
    except FileNotFoundError:
        kind = None
    except (OSError, ValueError) as error:
        raise LeaderError(_unreachable(path, error, f"{shown} cannot be written; choose another place.")) from error
    if kind is not None and stat.S_ISDIR(kind):
        raise LeaderError(f"{shown} is a folder; give the name of a file to write.")
    if kind is not None and not stat.S_ISREG(kind):
        raise LeaderError(f"{shown} is a pipe or a device; give the name of a file to write.")
    if not _takes_files(path.parent) or (kind is not None and not os.access(path, os.W_OK)):
        raise LeaderError(f"{shown} cannot be written; choose another place or change its permissions.")


def _takes_files(folder: Path) -> bool:
    """Whether a file can be created in a folder: permissions do not cover /proc, quotas or a file system's own rules."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _unreachable(path: Path, error: Exception, missing: str) -> str:
    """The error for a path that cannot be resolved."""
    number = error.errno if isinstance(error, OSError) else None
    shown = printable(path)
    if number == errno.ENAMETOOLONG:
        return f"The file name '{shown[:40]}...' is too long; use a shorter one."
    if number == errno.ELOOP:
        return f"{shown} is a symbolic link to itself; give the file it should point to."
    if number == errno.EACCES:
        return f"{shown} cannot be accessed; change the permissions of its folder."
    return missing


_TEMPORARY = re.compile(r"\.leader-(?P<machine>[0-9a-f]{12})-(?P<pid>\d+)-(?P<start>\d+)-")
"""The name pattern of temporary files: boot of the machine, process, and start time of the process."""


def remove_abandoned(folder: Path) -> None:
    """Removes temporary files of `replacing` left behind by killed processes of this machine.

    Only files that provably have no owner are removed: the name identifies this boot of this machine and a process that no
    longer exists. Files of other machines, which may share the disk, stay.
    """
    machine = _name_machine()
    if machine is None:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.match(entry.name)
            if found is None or found["machine"] != machine or _started_at(int(found["pid"])) == int(found["start"]):
                continue
            with suppress(OSError):  # another run of ours may be removing it too
                os.unlink(entry.path)


@lru_cache(maxsize=256)
def _sweep_once(folder: Path) -> None:
    """Once in the life of this process: a folder may have millions of files."""
    remove_abandoned(folder)


def _own_prefix() -> str:
    machine = _name_machine()
    return ".leader-" if machine is None else f".leader-{machine}-{os.getpid()}-{_started_at(os.getpid())}-"


@lru_cache(maxsize=1)
def _name_machine() -> str | None:
    """An identifier of this boot of this machine and its process namespace; None if the system has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        return hashlib.sha256(boot + os.readlink("/proc/self/ns/pid").encode()).hexdigest()[:12]
    except OSError:
        return None


def _started_at(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if there is no such process. Process numbers are reused."""
    try:
        about = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(about.rpartition(")")[2].split()[19])


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A temporary file in the folder of `path` that replaces it if the block succeeds and is removed otherwise.

    durable  the content is on disk before the file is replaced, so even a power failure leaves either the old or the new file
    """
    check_writable(path)
    shown = printable(path)
    try:
        _sweep_once(path.parent.resolve())
        # a short name: one derived from a long `path` would be too long
        handle, name = tempfile.mkstemp(prefix=_own_prefix(), suffix=path.suffix[:16], dir=path.parent)
    except OSError as error:
        raise LeaderError(f"{shown} cannot be written ({error.strerror}); choose another place.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(usual_mode())  # temporary files are private; the finished file gets the usual permissions
        if durable:
            flush_to_disk(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise LeaderError(f"{shown} could not be written ({error.strerror or error}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hash_blocks(file)


def sha256_once(path: Path) -> str:
    """`sha256_of`, cached until the date of the file changes."""
    state = path.stat()
    return _hash_version(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _hash_version(path: Path, size: int, changed: int) -> str:
    return sha256_of(path)


def hash_blocks(file: IO[bytes], copy: IO[bytes] | None = None, most: int | None = None, what: str = "The file") -> str:
    """The SHA-256 of the rest of an open file, in hexadecimal; `copy` gets the same bytes, `most` limits their number."""
    digest, count = hashlib.sha256(), 0
    while block := file.read(1 << 20):
        count += len(block)
        if most is not None and count > most:
            raise LeaderError(f"{what} has more than {most} bytes; no picture is that large.")
        digest.update(block)
        if copy is not None:
            copy.write(block)
    return digest.hexdigest()


def flush_to_disk(path: Path) -> None:
    """Returns when the content of a file is on disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Returns when the names in a folder are on disk, if the system can guarantee that."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def claim(handle: int, path: Path) -> None:
    """Makes this process the only writer of an open file until it closes it or dies; fails if another process is writing."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LeaderError(f"Another run is writing '{path}'; wait for it or end it first.") from None


def append_line(path: Path, line: bytes) -> None:
    """Appends a line to a file: it is on disk when this returns, and no part of it is left if OSError is raised."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        end = os.fstat(handle).st_size
        try:
            if os.write(handle, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)  # never a torn line in the middle
            raise
    finally:
        os.close(handle)


def drop_torn_end(path: Path) -> None:
    """Removes everything after the last line end of a file: the rest of a line that a crash cut short."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        whole = size = file.seek(0, os.SEEK_END)
        while whole > 0:
            start = max(0, whole - (1 << 16))
            file.seek(start)
            found = file.read(whole - start).rfind(b"\n")
            if found >= 0:
                whole = start + found + 1
                break
            whole = start
        if whole != size:
            file.truncate(whole)


def usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
