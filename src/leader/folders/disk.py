"""Folders on a disk. One process moves results into place, folder by folder from the output folder down, without following
symbolic links: no name can escape the output folder.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leader.errors import LeaderError, UsageError
from leader.files import hash_blocks, printable, sha256_of
from leader.folders.manifest import LocalManifest, Manifest
from leader.folders.names import HOME, MANIFEST, is_source_name
from leader.folders.places import MOST_BYTES, FoundFile

_BY_HANDLE = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


class DiskSource:
    """A folder of pictures; `without` is a folder inside it to leave out (the output), `notes` lists what `walk` left out."""

    def __init__(self, folder: Path, without: Path | None = None) -> None:
        if not folder.is_dir():
            raise LeaderError(f"There is no folder of pictures '{printable(folder)}'; give an existing one.")
        self.folder = folder
        self.address = str(folder)
        self.without = without
        self.notes: list[str] = []

    def walk(self) -> Iterator[FoundFile]:
        """Its pictures, in no particular order."""
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            try:
                with os.scandir(self.folder / prefix) as items:
                    for item in items:
                        name = f"{prefix}{item.name}"
                        if item.is_dir(follow_symlinks=False):
                            if not item.name.startswith(".") and not self._is_left_out(name):
                                waiting.append(f"{name}/")
                        elif (found := self._look_at(item, name)) is not None:
                            yield found
            except FileNotFoundError:
                self.notes.append(f"{printable(prefix)} vanished while the folder was read.")
            except OSError as error:
                self.notes.append(f"{printable(prefix or self.folder)} cannot be read ({error.strerror}); it was left out.")

    def _look_at(self, item: os.DirEntry[str], name: str) -> FoundFile | None:
        """A picture of the folder; one that cannot be accessed does not affect the rest of its folder."""
        try:
            if item.is_symlink() and item.is_dir():
                self.notes.append(f"{printable(name)} is a symbolic link to a folder; it was not entered.")
            elif is_source_name(name) and item.is_file():
                return FoundFile(name, item.stat().st_size)
            elif is_source_name(name):
                kind = "a broken symbolic link" if item.is_symlink() else "a pipe or a device"
                self.notes.append(f"{printable(name)} is {kind}; it was left out.")
        except OSError as error:  # a link to itself
            self.notes.append(f"{printable(name)} cannot be read ({error.strerror}); it was left out.")
        return None

    def _is_left_out(self, name: str) -> bool:
        return self.without is not None and self.without.exists() and os.path.samefile(self.folder / name, self.without)

    def sha256(self, name: str) -> str:
        return sha256_of(self.folder / name)

    def fetch(self, name: str, to: Path) -> str:
        """Copies a file and returns the SHA-256 of the copy."""
        # not blocking: a pipe in place of a picture would wait for its writer forever
        handle = os.open(self.folder / name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as source, to.open("wb") as copy:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise LeaderError(f"{printable(name)} is a pipe or a device, not a picture.")
            return hash_blocks(source, copy, MOST_BYTES, printable(name))


class DiskTarget:
    """An output folder on a disk of this machine, or on one shared by all machines of a cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = str(folder)

    def open(self) -> Manifest:
        """Prepares the folder for one run, and rejects a second one."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / HOME).mkdir(exist_ok=True)
        except OSError as error:
            raise LeaderError(
                f"{printable(self.folder)} cannot be written ({error.strerror}); choose another folder."
            ) from error
        if (self.folder / HOME).is_symlink() or (self.folder / MANIFEST).is_symlink():
            raise LeaderError(f"{printable(self.folder)} has symbolic links where leader keeps its own files; remove them.")
        self.folder = self.folder.resolve()
        manifest = LocalManifest(self.folder / MANIFEST)
        try:
            self.sweep()  # left over from a killed run; no other run is active
            self.staging.mkdir()
        except OSError as error:
            manifest.close()
            raise LeaderError(f"{printable(self.staging)} cannot be emptied ({error.strerror}); remove it.") from error
        return manifest

    @property
    def staging(self) -> Path:
        """Where workers leave results for `keep`."""
        return self.folder / HOME / "tmp"

    def size(self, name: str) -> int | None:
        """The size of a file in bytes; None if there is none, -1 if it is no file."""
        try:
            found = os.lstat(self.folder / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else -1

    def sha256(self, name: str) -> str:
        return sha256_of(self.folder / name)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def keep(self, file: Path, name: str) -> None:
        """Moves a finished file of the staging folder to its place, whole or not at all."""
        if not file.resolve().is_relative_to(self.staging):
            raise LeaderError(f"{printable(file)} is not in the folder of unfinished results.")
        with self._parent(name) as (handle, last):
            if handle is None:
                os.replace(file, self.folder / name)
            else:
                os.replace(file, last, dst_dir_fd=handle)
                os.fsync(handle)

    @contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int | None, str]]:
        """(handle of the folder of a result, its file name); missing folders are created."""
        *folders, last = name.split("/")
        if not _BY_HANDLE:
            place = self.folder.joinpath(*folders)
            place.mkdir(parents=True, exist_ok=True)
            if not place.resolve().is_relative_to(self.folder):
                raise LeaderError(f"{printable(place)} points outside the output folder; remove that link.")
            yield None, last
            return
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for folder in folders:
                handle, parent = _enter_folder(handle, folder, name), handle
                os.close(parent)
            yield handle, last
        finally:
            os.close(handle)

    def sweep(self) -> None:
        """Removes everything temporary."""
        if self.staging.exists():
            shutil.rmtree(self.staging)


def _enter_folder(parent: int, folder: str, name: str) -> int:
    """The handle of a folder in `parent`, created if missing; a link or a file in its place is rejected."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(folder, flags, dir_fd=parent)
    except FileNotFoundError:
        os.mkdir(folder, dir_fd=parent)
        os.fsync(parent)
        return os.open(folder, flags, dir_fd=parent)
    except (NotADirectoryError, OSError) as error:
        found = os.stat(folder, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            raise
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no folder"
        raise LeaderError(
            f"'{printable(folder)}' on the way to '{printable(name)}' is {kind}; results stay inside the output folder, so "
            "remove it."
        ) from error


def check_apart(source: Path, out: Path) -> None:
    """Rejects an output folder that is or contains the source: results would replace pictures."""
    pictures, results = source.resolve(), out.resolve()
    if pictures == results:
        raise UsageError("The results would replace the pictures; give another output folder.")
    if pictures.is_relative_to(results):
        raise UsageError(
            f"The pictures are inside the output folder {printable(out)}, where results could replace them; give another."
        )
