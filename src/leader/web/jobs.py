"""The desk: jobs wait in a queue, run a few at a time, report their progress, and can be stopped.

A job runs in its own thread; `Job.on_step` sees every step of its restoration, and stops it by raising.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from leader.engines.memory import trim_memory
from leader.errors import LeaderError
from leader.web.limits import Limits

State = Literal["waiting", "running", "done", "stopped", "refused"]
Work = Callable[["Job"], object]

BUSY = "One picture at a time, please: your last one is still being restored; wait for it or stop it."
LOST = "Something went wrong inside the program; try another picture or other settings."


class StoppedError(Exception):
    """Raised inside a job to stop it."""


@dataclass(eq=False)
class Job:
    """One visitor's job.

    share     finished share of the current repair, 0 to 1; seconds_left: None until it is known; later: seconds of the repairs
              after this one
    words     the current activity; step: the number of the current repair
    preview   the current estimate as a small JPEG, and the number of previews so far; drafted: it is a finished draft
    outcomes  what the page shows for each finished repair
    error     the error message if it failed
    """

    client: str
    limit: float
    state: State = "waiting"
    share: float = 0.0
    seconds_left: float | None = None
    later: float = 0.0
    words: str = ""
    step: int = 0
    preview: bytes | None = None
    previews: int = 0
    drafted: bool = False
    outcomes: tuple[dict[str, Any], ...] = ()
    error: str = ""
    began: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Asks the job to stop at its next step."""
        self._stop.set()

    def show(self, preview: bytes, draft: bool = False) -> None:
        """Shows a picture during the work."""
        self.preview, self.previews, self.drafted = preview, self.previews + 1, draft

    def check(self) -> None:
        """Raises if the job must end: it was stopped, or took too long."""
        if self._stop.is_set():
            raise StoppedError
        if self.began is not None and time.monotonic() - self.began > self.limit:
            raise LeaderError(
                f"This took longer than the limit of {self.limit:.0f} seconds per picture; "
                "choose a lower quality or a smaller picture."
            )

    @property
    def over(self) -> bool:
        return self.state in ("done", "stopped", "refused")


class Desk:
    """Accepts jobs, one per client, and runs `limits.jobs` of them at once."""

    def __init__(self, limits: Limits, begin: Callable[[], None] = lambda: None) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._pool = ThreadPoolExecutor(limits.jobs, "leader-job", initializer=begin)

    def submit(self, client: str, work: Work) -> Job:
        """Queues a job; rejected if the client already has one or the queue is full."""
        job = Job(client, self._limits.seconds)
        with self._lock:
            if any(other.client == client for other in self._jobs):
                raise LeaderError(BUSY)
            waiting = sum(other.state == "waiting" for other in self._jobs)
            if waiting >= self._limits.waiting:
                raise LeaderError(f"{waiting} pictures are already waiting, and the queue is full; try again later.")
            self._jobs.append(job)
        self._pool.submit(self._run, job, work)
        return job

    def ahead(self, job: Job) -> int:
        """The number of jobs waiting ahead of this one."""
        with self._lock:
            waiting = [other for other in self._jobs if other.state == "waiting"]
        return waiting.index(job) if job in waiting else 0

    def count(self, state: State) -> int:
        with self._lock:
            return sum(job.state == state for job in self._jobs)

    def stop(self, client: str) -> None:
        """Stops the job of a client, if there is one."""
        with self._lock:
            for job in [other for other in self._jobs if other.client == client]:
                job.stop()
                if job.state == "waiting":  # it leaves the queue at once, so its client can submit again
                    self._jobs.remove(job)
                    job.state = "stopped"

    def close(self) -> None:
        """Stops every job and waits for all of them to end."""
        with self._lock:
            everyone = list(self._jobs)
        for job in everyone:
            job.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job, work: Work) -> None:
        with self._lock:
            if job.state != "waiting":
                return
            job.state = "running"
        state: State = "refused"
        try:
            job.began = time.monotonic()
            job.check()
            work(job)
            state = "done"
        except StoppedError:
            state = "stopped"
        except LeaderError as error:
            job.error = str(error)
        except Exception:
            logging.getLogger("leader.web").exception("A job ended in an error of the program.")
            job.error = LOST
        finally:
            trim_memory()  # a server that idles for days keeps no more memory than it needs
            with self._lock:
                self._jobs.remove(job)
            job.state = state  # last: whoever sees the end sees everything
