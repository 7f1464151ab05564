"""The store of records: JSON lines, one a cell, that survives being killed at any moment.

A record is appended as one whole line and synced. A line cut short by a crash is recognised by its missing
end and dropped. When a run is complete the file is written anew in the order of the experiment, so that its
bytes do not depend on the way there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leader.errors import LeaderError
from leader.files import replacing

Record = dict[str, Any]
"""A cell's record. Always there: "key" (hash of everything that determines it), "cell" (the same without
the code version).
"""

PICTURES = "pictures"


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """A hash of a JSON value, 24 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:24]


class Store:
    """The records of one experiment, in `folder`/`name`.jsonl; those of its neighbours serve as well.

    Pictures that records refer to lie in `folder`/pictures, each named by its record's key.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.path = folder / f"{name}.jsonl"
        self.own: dict[str, Record] = {}
        self._others: dict[str, Record] = {}
        self._by_cell: dict[str, Record] = {}
        if folder.is_dir():
            for path in sorted(folder.glob("*.jsonl")):
                self._read(path)

    def _read(self, path: Path) -> None:
        target = self.own if path == self.path else self._others
        for record in read_lines(path):
            target[record["key"]] = record
            self._by_cell[record["cell"]] = record

    def find(self, key: str) -> Record | None:
        """The record of exactly this key."""
        return self.own.get(key) or self._others.get(key)

    def all(self) -> Iterator[Record]:
        """Every record of the folder."""
        yield from self.own.values()
        yield from (record for key, record in self._others.items() if key not in self.own)

    def find_older(self, cell: str) -> Record | None:
        """A record of the same cell made by another version of the code."""
        return self._by_cell.get(cell)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Makes the file ready to be appended to, and refuses a second writer."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            _claim(lock, self.path)
            drop_torn_end(self.path)
            yield
        finally:
            os.close(lock)

    def append(self, record: Record, pictures: Mapping[str, bytes] | None = None) -> None:
        """Adds a record; its pictures are on disk before it is."""
        for name, data in (pictures or {}).items():
            (self.folder / PICTURES).mkdir(exist_ok=True)
            write_atomically(self.folder / PICTURES / name, data)
        line = (canonical(record) + "\n").encode()
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if os.write(handle, line) != len(line):
                raise OSError(f"the record could not be written to {self.path} in full")
            os.fsync(handle)
        finally:
            os.close(handle)
        self._remember(record)

    def adopt(self, key: str) -> None:
        """Copies a neighbour's record into this experiment's own."""
        if key not in self.own:
            self._remember(self._others[key])

    def finish(self, keys: Sequence[str], *, prune: bool = False) -> None:
        """Writes the file anew: the records of `keys` in that order, then the rest by key.

        Records that a newer version of the code has replaced go; with `prune` all others go too.
        """
        chosen = [self.own[key] for key in keys]
        cells = {record["cell"] for record in chosen}
        rest = [] if prune else [self.own[key] for key in sorted(set(self.own) - set(keys))]
        rest = [record for record in rest if record["cell"] not in cells]
        self.own = {record["key"]: record for record in [*chosen, *rest]}
        text = "".join(canonical(record) + "\n" for record in self.own.values())
        write_atomically(self.path, text.encode())

    def picture(self, record: Record, kind: str) -> Path:
        """The file of a picture that the record refers to."""
        if kind not in record.get("pictures", {}):
            raise LeaderError(f"The record {record['key']} has no picture '{kind}'; run its experiment again.")
        path = self.folder / PICTURES / str(record["pictures"][kind])
        if not path.is_file():
            raise LeaderError(f"The picture '{path}' of a record is missing; delete the record and run again.")
        return path

    def _remember(self, record: Record) -> None:
        self.own[record["key"]] = record
        self._by_cell[record["cell"]] = record


def read_lines(path: Path) -> Iterable[Record]:
    """The whole records of a file; a torn last line is left out, a broken one elsewhere is refused."""
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line end is torn, or empty
        try:
            record = json.loads(line)
        except ValueError as error:
            raise LeaderError(f"Line {number} of '{path}' is not a record; remove that line.") from error
        if not (isinstance(record, dict) and "key" in record and "cell" in record):
            raise LeaderError(f"Line {number} of '{path}' has no key and cell; remove that line.")
        yield record


def drop_torn_end(path: Path) -> None:
    """Cuts off what follows the last line end."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        os.truncate(path, whole)


def write_atomically(path: Path, data: bytes) -> None:
    """The file either keeps its old content or has all of the new."""
    with replacing(path, durable=True) as temporary:
        temporary.write_bytes(data)


def _claim(handle: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LeaderError(f"Another run is writing '{path}'; wait for it or end it first.") from None
