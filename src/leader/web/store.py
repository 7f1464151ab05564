"""Uploads and results: files with internal names in one private folder, removed after a while.

Visitors' file names are not kept. A file is shown only to the client that owns it.
"""

import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leader.errors import LeaderError

TOKEN = re.compile(r"[0-9a-f]{32}")
GONE = "This picture is no longer here; drop it in again."


@dataclass
class Entry:
    """A folder of files that belong together.

    client   its owner
    picture  the uploaded or restored file; its folder holds the others
    about    what is known about them, such as a diagnosis
    """

    token: str
    client: str
    picture: Path
    last: float
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.picture.parent


class Store:
    """Entries by token, in a folder that is removed with the server."""

    def __init__(self, keep_seconds: float, kept: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = tempfile.TemporaryDirectory(prefix="leader-web-")  # readable only by its owner
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._keep_seconds, self._kept, self._clock = keep_seconds, kept, clock

    @property
    def root(self) -> Path:
        return Path(self._root.name)

    def __len__(self) -> int:
        return len(self._entries)

    def new(self, client: str, name: str = "picture") -> Entry:
        """A new entry whose picture has an internal name; expired and surplus entries are removed first."""
        self.sweep(room=1)
        token = secrets.token_hex(16)
        entry = Entry(token, client, self.root / token / name, self._clock())
        entry.folder.mkdir()
        with self._lock:
            self._entries[token] = entry
        return entry

    def find(self, token: object, client: str) -> Entry:
        """The entry of a client; raises a one-sentence error if there is none."""
        with self._lock:
            entry = self._entries.get(token) if isinstance(token, str) and TOKEN.fullmatch(token) else None
            if entry is None or entry.client != client:
                raise LeaderError(GONE)
            entry.last = self._clock()
            return entry

    def keep_all(self, client: str) -> None:
        """Nothing of a client who waits for a result grows old: the line may be longer than an entry is kept."""
        with self._lock:
            for entry in self._entries.values():
                if entry.client == client:
                    entry.last = self._clock()

    def remove(self, entry: Entry) -> None:
        """Removes an entry and its files."""
        with self._lock:
            self._entries.pop(entry.token, None)
        shutil.rmtree(entry.folder, ignore_errors=True)

    def sweep(self, room: int = 0) -> None:
        """Removes expired entries, and the oldest ones beyond the limit."""
        with self._lock:
            oldest = sorted(self._entries.values(), key=lambda entry: entry.last)
        surplus = len(oldest) + room - self._kept
        for number, entry in enumerate(oldest):
            if number < surplus or self._clock() - entry.last > self._keep_seconds:
                self.remove(entry)

    def close(self) -> None:
        """Removes everything."""
        with self._lock:
            self._entries.clear()
        self._root.cleanup()
