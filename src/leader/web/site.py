"""One instance of the page: its limits, its store, its desk, and how pictures come in."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PIL import Image

from leader.errors import LeaderError, no_memory
from leader.files import printable
from leader.pictures import read_picture
from leader.progress import MachinePace
from leader.restoration.progress import count_work
from leader.restoration.request import RestoreRequest
from leader.web import work
from leader.web.choices import Wish
from leader.web.jobs import Desk, Job
from leader.web.limits import Limits
from leader.web.proposal import propose
from leader.web.samples import SAMPLES, make_sample
from leader.web.store import Entry, Store

VIEW_SIDE = 1024
VIEW = "view.png"
SECONDS_PER_PIXEL = 5e-6
"""Of a network call, before anything was learned."""
CALIBRATION = (32, 96)
"""Sides of the pictures that the server restores when it starts, to learn how fast this machine is; the first one is for
warming up."""


class Site:
    """What the routes and the events of one server share."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.store = Store(limits.keep_seconds, limits.kept)
        self.desk = Desk(limits, self._begin)
        self.pace = MachinePace(SECONDS_PER_PIXEL)
        self._samples: dict[str, Path] = {}
        self._lock = threading.Lock()

    def _begin(self) -> None:
        """Every thread of the desk computes with the same number of threads, so that no job changes another's bits."""
        import torch

        torch.set_num_threads(self.limits.threads)

    def receive(self, client: str, fill: Callable[[Path], object]) -> Entry:
        """A new entry whose picture `fill` writes: looked at, shown small, diagnosed; a refused one is removed."""
        entry = self.store.new(client)
        try:
            fill(entry.picture)
            self._look_at(entry)
        except BaseException:
            self.store.remove(entry)
            raise
        return entry

    def _look_at(self, entry: Entry) -> None:
        try:
            picture = read_picture(entry.picture, self.limits.pixels)
            entry.about["size"] = picture.size
            view = picture.to_pil() if picture.alpha is not None else picture.rgb()
            view.thumbnail((VIEW_SIDE, VIEW_SIDE), Image.Resampling.BICUBIC)
            view.info.pop("icc_profile", None)
            view.save(entry.folder / VIEW)
            entry.about["proposal"] = propose(entry.picture)
        except LeaderError as error:  # the file has a name of ours, which tells a visitor nothing
            if isinstance(error.__cause__, Image.DecompressionBombError):  # whose sentence knows the limit of files alone
                most = f"{self.limits.pixels / 1e6:.3g} million"
                text = f"This file declares far too many pixels; at most {most} are served here, so crop it first."
                raise LeaderError(text) from error
            text = str(error).replace(printable(entry.picture), "This file")
            raise type(error)(text) from error
        except MemoryError as error:
            raise no_memory() from error

    def sample_file(self, name: str) -> Path:
        """A sample as a PNG, made when it is first asked for."""
        with self._lock:
            if name not in self._samples:
                path = self.store.root / f"sample-{name if name in SAMPLES else 'unknown'}"
                make_sample(name, path)
                self._samples[name] = path
            return self._samples[name]

    def sample(self, client: str, name: str) -> Entry:
        """An entry with a copy of a sample."""
        file = self.sample_file(name)
        entry = self.receive(client, partial(shutil.copyfile, file))
        entry.about["sample"] = SAMPLES[name]
        return entry

    def learn_pace(self) -> Job:
        """A short restoration in line with the others, whose time tells how long others will take."""

        def measure(job: Job) -> None:
            for side in CALIBRATION:
                entry = self.receive("server", partial(_write_gradient, side))
                try:
                    wish = Wish("noisy", request=RestoreRequest(quality="draft", sigma=0.1))
                    made = work.prepare_wish(entry, wish, self.limits)
                    restored = made.run(lambda _: job.check())
                finally:
                    self.store.remove(entry)
            self.pace.learn(count_work(made), restored.seconds)

        return self.desk.submit("server", measure)

    def close(self) -> None:
        """Stops every job and removes every file."""
        self.desk.close()
        self.store.close()


def _write_gradient(side: int, path: Path) -> None:
    Image.linear_gradient("L").resize((side, side)).convert("RGB").save(path, "PNG")
