"""In a process of its own: `leader` with the arguments given, and at the end a line of CPU milliseconds by part (`around.py`).

python benchmarks/around_clock.py restore in.png out.png
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any


class Clock:
    """CPU milliseconds by part, from the start of Python; a part within another one does not count for that."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self.part, self.since = "import", 0.0

    def enter(self, part: str) -> str:
        """Counts for `part` from now on; returns the part before."""
        now, before = 1000 * time.process_time(), self.part
        self.spent[before] += now - self.since
        self.part, self.since = part, now
        return before

    def watch(self, owner: Any, name: str, part: str, within: str | None = None) -> None:
        """Counts a function for a part; only where `within` is counted, if that is given."""
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            if within not in (None, self.part):
                return inner(*args, **kwargs)
            before = self.enter(part)
            try:
                return inner(*args, **kwargs)
            finally:
                self.enter(before)

        setattr(owner, name, timed)


def main() -> None:
    import leader.cli.running  # noqa: F401 - as the command does
    from leader.cli.app import main as run_command
    from leader.cli.results import Results
    from leader.priors.base import Prior
    from leader.restoration import ensemble, restore
    from leader.trust import error_map

    clock = Clock()
    clock.enter("rest")
    clock.watch(restore, "prepare", "preparation")
    clock.watch(restore, "_load_prior", "weights")
    clock.watch(error_map, "referee_of", "weights")
    clock.watch(restore, "as_picture", "reading")
    clock.watch(ensemble, "drain", "loop")
    clock.watch(Prior, "predict", "network", within="loop")
    clock.watch(ensemble, "add_errors", "map")
    clock.watch(restore, "measure", "verdict")
    clock.watch(Results, "write", "writing")
    try:
        run_command()
    finally:
        clock.enter("rest")
        print(json.dumps(clock.spent))


if __name__ == "__main__":
    main()
