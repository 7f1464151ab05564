"""One instance of the page: its limits, its store, its desk, and the upload of pictures."""

import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from leader.errors import LeaderError, no_memory
from leader.files import printable
from leader.forensics import Examination, NotExamined, examine
from leader.forensics.findings import Findings
from leader.messages import render
from leader.pictures import Picture, read_picture
from leader.progress import MachinePace
from leader.restoration.arguments import as_picture
from leader.restoration.diagnose import SMALL, diagnose
from leader.restoration.request import RestoreRequest
from leader.web import work
from leader.web.choices import TASK_WORDS, Repair, Wish, draw_mask, kind_of
from leader.web.jobs import Desk, Job
from leader.web.limits import Limits
from leader.web.samples import SAMPLES, make_sample
from leader.web.store import Entry, Store

LARGE_VIEW = 4_000_000
"""Larger pictures, in pixels, are shown as JPEG: a PNG would take seconds to write and to send."""
CANVAS = 2048
"""Pixels of the longer side of the painting canvas."""
SECONDS_PER_PIXEL = 5e-6
"""Initial guess for a network call, before any measurement."""
CALIBRATION = (32, 256)
"""Sides of the pictures that the server restores at startup to measure the speed of this machine; the first one is a warm-up.
"""


class Examinations:
    """Examinations of the most recent pictures, up to `pixels` in total: nothing is searched twice."""

    def __init__(self, pixels: int, read: Callable[[Path], Picture]) -> None:
        self._pixels, self._read = pixels, read
        self._held: OrderedDict[str, Examination] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, entry: Entry) -> Examination:
        """The examination of an entry's picture, created if there is none."""
        with self._lock:
            found = self._held.pop(entry.token, None)
        found = found or examine(self._read(entry.picture))
        with self._lock:
            self._held[entry.token] = found
            while len(self._held) > 1 and sum(_count_pixels(one) for one in self._held.values()) > self._pixels:
                self._held.popitem(last=False)
        return found


def _count_pixels(examination: Examination) -> int:
    width, height = examination.picture.size
    return width * height


class Site:
    """The state shared by the routes and the jobs of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.store = Store(limits.keep_seconds, limits.kept)
        self.desk = Desk(limits, self._begin)
        self.pace = MachinePace(SECONDS_PER_PIXEL)
        self.examinations = Examinations(limits.pixels, self._read)
        self._samples: dict[str, Path] = {}
        self._lock = threading.Lock()

    def _begin(self) -> None:
        """Sets the same number of torch threads in every thread of the desk, so no job changes another's bits."""
        import torch

        torch.set_num_threads(self.limits.threads)

    def _read(self, path: Path) -> Picture:
        """Reads a picture of the store; errors leave out its name, which is an internal one."""
        try:
            return as_picture(read_picture(path, self.limits.pixels))
        except LeaderError as error:
            if isinstance(error.__cause__, Image.DecompressionBombError):  # whose message only knows the limit for files
                most = f"{self.limits.pixels / 1e6:.3g} million"
                text = f"This file declares far too many pixels; the limit here is {most}, so crop it first."
                raise LeaderError(text) from error
            raise type(error)(str(error).replace(printable(path), "This file")) from error
        except MemoryError as error:
            raise no_memory() from error

    def receive(self, client: str, fill: Callable[[Path], object]) -> Entry:
        """A new entry whose picture is written by `fill`, then read and rendered for the page; a rejected one is removed."""
        entry = self.store.new(client)
        try:
            fill(entry.picture)
            picture = self.examinations.take(entry).picture
            entry.about |= {"size": picture.size, "view": _draw_view(picture, entry.folder)}
        except BaseException:
            self.store.remove(entry)
            raise
        return entry

    def diagnose(self, entry: Entry) -> dict[str, Any]:
        """The diagnosis of a picture, computed once: sentences and proposed repairs.

        Kinds of damage that are reported are `found`; those that are `advised` are repaired by default.
        """
        if "findings" not in entry.about:
            found = diagnose(self.examinations.take(entry))
            advised = {kind: (advice.task, dict(advice.options)) for advice in found.repairs if (kind := kind_of(advice.task))}
            if found.missing:  # transparent parts are filled in without a brush if a visitor asks for it
                advised.setdefault("missing", ("inpaint", {}))
            blur = found.findings.blur.blur
            if blur is not None and "blurred" not in advised:
                advised["blurred"] = ("deblur", {"kernel": blur.kernel, "kernel_doubt": round(blur.error, 3)})
            sample = entry.about.get("sample")
            repairs = [{"kind": kind_of(advice.task)} for advice in found.repairs] if sample is None else [sample.repair]
            entry.about["advised"] = advised
            entry.about["findings"] = {
                "sentences": [render(sentence, "page", TASK_WORDS) for sentence in found.sentences()],
                "repairs": repairs,
                "found": _list_damage(found.findings),
                "fillable": "missing" in advised,
            }
        findings: dict[str, Any] = entry.about["findings"]
        return findings

    def find_damage(self, entry: Entry) -> bytes | None:
        """Scratches, tears and specks as a mask to paint on; None if there are none."""
        defects = self.examinations.take(entry).defects
        if isinstance(defects, NotExamined) or not defects.kinds:
            return None
        return draw_mask(~defects.known, CANVAS)

    def sample_file(self, name: str) -> Path:
        """A sample as a PNG, created on first use."""
        with self._lock:
            if name not in self._samples:
                path = self.store.root / f"sample-{name}"
                make_sample(SAMPLES[name], path)
                self._samples[name] = path
            return self._samples[name]

    def sample(self, client: str, name: str) -> Entry:
        """An entry with a copy of a sample."""
        file = self.sample_file(name)
        entry = self.receive(client, partial(shutil.copyfile, file))
        entry.about["sample"] = SAMPLES[name]
        return entry

    def learn_pace(self) -> Job:
        """A short restoration in the queue, used to estimate how long others will take.

        Processor time counts, since other load at startup says nothing about later.
        """

        def measure(job: Job) -> None:
            for side in CALIBRATION:
                entry = self.receive("server", partial(_write_gradient, side))
                try:
                    wish = Wish((Repair("noisy"),), request=RestoreRequest(quality="draft", sigma=0.1))
                    made = work.prepare_repair(self, wish, 0, self.examinations.take(entry), entry)
                    begin = time.process_time()
                    made.run(lambda _: job.check())
                    took = (time.process_time() - begin) / self.limits.threads
                finally:
                    self.store.remove(entry)
            self.pace.learn(work.count_cost(made), took)

        return self.desk.submit("server", measure)

    def close(self) -> None:
        """Stops every job and removes every file."""
        self.desk.close()
        self.store.close()


def _draw_view(picture: Picture, folder: Path) -> str:
    """Writes a picture in a format that browsers can show, in its own size and colours; returns the file name."""
    image = picture.to_pil()
    large = picture.alpha is None and image.width * image.height > LARGE_VIEW
    options: dict[str, Any]
    name, options = ("view.jpg", {"quality": 92, "subsampling": 0}) if large else ("view.png", {"compress_level": 1})
    image.save(folder / name, **options, icc_profile=picture.icc)
    return name


def _list_damage(found: Findings) -> list[str]:
    """Kinds of damage found in a picture, whether or not they are repaired by default."""
    seen = {
        "missing": bool(found.missing or found.defects),
        "noisy": found.noisy,
        "jpeg": found.blocky,
        "blurred": found.blur.blur is not None,
        "grey": found.grey,
        "small": found.enlarged is not None or max(found.size) <= SMALL,
    }
    return [kind for kind, yes in seen.items() if yes]


def _write_gradient(side: int, path: Path) -> None:
    Image.linear_gradient("L").resize((side, side)).convert("RGB").save(path, "PNG")
