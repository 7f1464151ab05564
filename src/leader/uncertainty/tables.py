"""Tables that are asked for again and again, kept within a limit of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from torch import Tensor


class TableCache:
    """Tables by key, those used last, `limit` bytes of them at most. It may serve several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._tables: OrderedDict[Hashable, Tensor] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Bytes of all tables."""
        return sum(table.nbytes for table in self._tables.values())

    def find(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The table of a key, made if it is not here."""
        with self._lock:
            table = self._tables.get(key)
        made = make() if table is None else table
        with self._lock:
            self._tables[key] = made
            self._tables.move_to_end(key)
            while self.size > self.limit:
                self._tables.popitem(last=False)
        return made
