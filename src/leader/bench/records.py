"""The store of records: JSON lines, one per cell, that survives being killed at any moment.

A record is appended as one whole line and synced. A line cut short by a crash is recognised by its missing end and dropped.
When a run is complete the file is rewritten in the order of the experiment, so its bytes do not depend on how the run
proceeded. What a run's record shares with the same run on another picture is then written once: see `shorten`.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from leader.errors import LeaderError
from leader.files import append_line, claim, drop_torn_end, replacing

Record = dict[str, Any]
"""A cell's record. Always present: "asked" (the request), "revisions" (of the parts that took part), "key" (the hash of both),
"package" (the version that made it); then its numbers. See keys.py.
"""

PICTURES = "pictures"
_PICTURE_NAME = re.compile(r"[\w-]+\.png")


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """A hash of a JSON value, 24 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:24]


class Store:
    """The records of one experiment, in `folder`/`name`.jsonl; those of other experiments in the folder are reused.

    Pictures of records are in `folder`/pictures, each named by its record's key.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.path = folder / f"{name}.jsonl"
        self.own: dict[str, Record] = {}
        self._others: dict[str, Record] = {}
        self._by_asked: dict[str, Record] | None = None
        if folder.is_dir():
            for path in sorted(folder.glob("[!.]*.jsonl")):  # unfinished files start with a dot
                target, state = self.own if path == self.path else self._others, path.stat()
                target.update((record["key"], record) for record in _read_stored(path, state.st_mtime_ns, state.st_size))

    def find(self, key: str) -> Record | None:
        return self.own.get(key) or self._others.get(key)

    def all(self) -> Iterator[Record]:
        yield from self.own.values()
        yield from (record for key, record in self._others.items() if key not in self.own)

    def find_earlier(self, asked: Record) -> Record | None:
        """A record of the same request with other revisions."""
        if self._by_asked is None:
            self._by_asked = {digest(record["asked"]): record for record in self.all()}
        return self._by_asked.get(digest(asked))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Prepares the file for appending, and rejects a second writer."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise LeaderError(f"Records cannot be written to '{self.path}' ({error.strerror}); choose a folder.") from error
        try:
            claim(lock, self.path)
            drop_torn_end(self.path)
            yield
        finally:
            os.close(lock)

    def append(self, record: Record, pictures: Mapping[str, bytes] | None = None) -> None:
        """Appends a record after its pictures are on disk."""
        for name, data in (pictures or {}).items():
            write_atomically(self.folder / PICTURES / name, data)
        try:
            append_line(self.path, (canonical(record) + "\n").encode())
        except OSError as error:
            raise LeaderError(
                f"'{self.path}' can no longer be written ({error.strerror}); make room and run the same command again: it "
                "continues where this one stopped."
            ) from error
        self._remember(record)

    def finish(self, keys: Sequence[str], *, prune: bool = False) -> None:
        """Rewrites the file: the records of `keys` in that order, then the rest by key.

        Records superseded by one of `keys` with newer revisions are dropped; with `prune` all others are dropped too. Of
        several records of the same request outside `keys`, only the last one is kept.
        """
        chosen = [self.own[key] for key in keys if key in self.own]  # the others belong to another experiment
        last = {digest(record["asked"]): key for key, record in self.own.items()}
        for record in chosen:
            last.pop(digest(record["asked"]), None)
        rest = [] if prune else [self.own[key] for key in sorted(last.values())]
        self.own = {record["key"]: record for record in [*chosen, *rest]}
        text = "".join(canonical(record) + "\n" for record in shorten(self.own.values()))
        write_atomically(self.path, text.encode())

    def picture(self, record: Record, kind: str) -> Path:
        if kind not in record.get("pictures", {}):
            raise LeaderError(f"The record {record['key']} has no picture '{kind}'; run its experiment with 'keep' set.")
        path = self.folder / PICTURES / str(record["pictures"][kind])
        if not path.is_file():
            raise LeaderError(f"The picture '{path}' of a record is missing; `leader bench run` makes it again.")
        return path

    def has_pictures(self, record: Record) -> bool:
        return all((self.folder / PICTURES / name).is_file() for name in record.get("pictures", {}).values())

    def _remember(self, record: Record) -> None:
        self.own[record["key"]] = record
        self._by_asked = None


@lru_cache(maxsize=64)
def _read_stored(path: Path, changed: int, size: int) -> tuple[Record, ...]:
    """The records of a file, cached while it is unchanged: each experiment reads all files of the folder."""
    return tuple(read_lines(path))


def read_lines(path: Path) -> Iterable[Record]:
    """The complete records of a file; a torn last line is dropped, a broken line elsewhere is an error."""
    lines = path.read_bytes().split(b"\n")
    complete: dict[str, Record] = {}  # by key
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line end is torn, or empty
        try:
            record = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise LeaderError(f"Line {number} of '{path}' is not a record; remove that line.") from error
        if isinstance(record, dict) and isinstance(record.get("like"), str) and isinstance(record.get("asked"), dict):
            first = complete.get(record["like"])
            if first is None:
                raise LeaderError(f"Line {number} of '{path}' is like no record before it; remove that line.")
            record = _complete(record, first)
        if (wrong := _wrong(record)) is not None:
            raise LeaderError(f"Line {number} of '{path}' is not a record: {wrong}; remove that line.")
        complete[record["key"]] = record
        yield record


_SHARED = ("revisions", "package", "commit")
_VARIED = {"image", "index", "options", "seed"}
"""What records of one run share, and the parts of the request in which they differ from picture to picture."""


def shorten(records: Iterable[Record]) -> Iterator[Record]:
    """Records as a file holds them: the first of a run in full; the others name it ("like") and hold what differs."""
    firsts: dict[str, Record] = {}
    for record in records:
        asked, shared = record["asked"], {name: record.get(name) for name in _SHARED}
        run = canonical([{name: None if name in _VARIED else value for name, value in asked.items()}, shared])
        if run not in firsts:
            firsts[run] = record
            yield record
            continue
        first = firsts[run]
        own = {name: value for name, value in record.items() if name not in _SHARED}
        differing = {name: asked[name] for name in _VARIED if name in asked and _differ(asked[name], first["asked"][name])}
        yield {**own, "asked": differing, "like": first["key"]}


def _differ(value: Any, other: Any) -> bool:
    """Whether two values are written differently: 1 and 1.0 are."""
    return canonical(value) != canonical(other)


def _complete(record: Record, first: Record) -> Record:
    """A shortened record in full."""
    shared = {name: first[name] for name in _SHARED if name in first}
    own = {name: value for name, value in record.items() if name != "like"}
    return {**shared, **own, "asked": {**first["asked"], **record["asked"]}}


_KINDS = {
    **dict.fromkeys(("key", "package", "commit", "error"), "text"),
    **dict.fromkeys(("asked", "revisions", "pictures"), "table"),
    **dict.fromkeys(("trace", "frames", "frame_calls"), "list"),
}
"""Entries of a record that are not numbers."""


def _wrong(record: Any) -> str | None:
    """Why a JSON value is not a valid record; None if it is."""
    if not isinstance(record, dict):
        return "it is not a table"
    for name in ("key", "asked", "revisions", "package"):
        if name not in record:
            return f"it has no '{name}'"
    for name, value in record.items():
        if not _is_a(_KINDS.get(name, "number"), value):
            return f"its '{name}' is not a {_KINDS.get(name, 'number')}"
    if not all(isinstance(name, str) and _PICTURE_NAME.fullmatch(name) for name in record.get("pictures", {}).values()):
        return "one of its pictures is not the name of a PNG file"
    if not all(isinstance(visit, list) and len(visit) == 3 and _is_visit(*visit) for visit in record.get("trace", [])):
        return "its trace does not consist of [t, jump, U]"
    return None


def _is_a(kind: str, value: Any) -> bool:
    if kind == "number":  # None: a score that is not finite
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value))
    return isinstance(value, {"text": str, "table": dict, "list": list}[kind])


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _is_visit(t: Any, jump: Any, mean: Any) -> bool:
    return isinstance(t, int) and isinstance(jump, int) and (mean is None or isinstance(mean, (int, float)))


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces the content of a file completely or not at all; creates its folder if needed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LeaderError(f"'{path}' cannot be written ({error.strerror}); choose another place.") from error
    with replacing(path, durable=True) as temporary:
        temporary.write_bytes(data)
