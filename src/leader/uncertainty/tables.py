"""Tables that are asked for again and again, kept within a limit of memory."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from torch import Tensor


class TableCache:
    """Tables by key, those used last, `limit` bytes of them at most. It may serve several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0  # bytes of all tables
        self._tables: OrderedDict[Hashable, Tensor] = OrderedDict()
        self._lock = Lock()

    def find(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        with self._lock:
            table = self._tables.get(key)
            if table is not None:
                self._tables.move_to_end(key)
                return table
        made = make()
        with self._lock:
            before = self._tables.pop(key, None)  # another thread's
            self._tables[key] = made
            self.size += made.nbytes - (0 if before is None else before.nbytes)
            while self.size > self.limit:
                self.size -= self._tables.popitem(last=False)[1].nbytes
        return made
