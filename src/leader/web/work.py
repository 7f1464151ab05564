"""The work behind a button: a picture that was handed in is prepared, restored step by step, and laid out as files."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from leader.errors import LeaderError
from leader.pictures import Picture
from leader.presets.paths import QUALITIES
from leader.priors.base import Prior
from leader.progress import MachinePace
from leader.restoration.progress import RunProgress, count_work
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.result import Step, to_unit_range
from leader.trust import maps
from leader.web.choices import Wish, build_request, half_painted
from leader.web.jobs import Job
from leader.web.limits import Limits
from leader.web.proposal import Proposal
from leader.web.store import Entry, Store

PREVIEW_SIDE = 640
PREVIEW_PAUSE = 0.4
"""Seconds between two previews at least: nobody sees more."""
TELLING = 0.25
"""Share of the work after which the run itself tells how long it will take."""
RESTORED, GIVEN, MAP, COVER, PATH, RUN = "restored.png", "given.png", "map.png", "cover.png", "path.png", "run.json"


@dataclass(frozen=True)
class Outcome:
    """A finished restoration: its entry in the store, and what the page says about it.

    files  the names that can be had; legend: (colour, words) of the map
    """

    entry: Entry
    size: tuple[int, int]
    seconds: float
    level: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]
    legend: tuple[tuple[str, str], ...]
    trust: str
    numbers: dict[str, Any]


def prepare_wish(entry: Entry, wish: Wish, limits: Limits, prior: Prior | None = None) -> Preparation:
    """A restoration with every choice made; its origin holds the hash of the file, and no name.

    prior  the one that the wish names, where it is loaded already
    """
    proposal: Proposal = entry.about.get("proposal", Proposal())
    request = build_request(wish, entry.about["size"], proposal.repair)
    width, height = request.find_size(entry.about["size"])
    if width * height > limits.pixels:
        raise LeaderError(
            f"The result would have {width} x {height} pixels; at most {limits.pixels / 1e6:.3g} million are served here, "
            "so choose a smaller factor or crop the picture."
        )
    made = request.prepare(entry.picture, threads=limits.threads, **({} if prior is None else {"prior": prior}))
    return replace(made, origin=replace(made.origin, image=None))


def seconds_by_quality(entry: Entry, wish: Wish, limits: Limits, pace: MachinePace) -> dict[str, float]:
    """How long each quality will take on this machine; the time does not depend on what will be painted."""
    if wish.kind == "missing":
        wish = replace(wish, painted=half_painted())
    first = prepare_wish(entry, wish, limits)
    found = {str(wish.request.quality): pace.predict_seconds(count_work(first))}
    for quality in QUALITIES:
        if quality not in found:  # neither the noise is measured again, nor the network loaded
            again = prepare_wish(entry, wish.change(quality=quality, sigma=first.sigma), limits, first.sampler.prior)
            found[quality] = pace.predict_seconds(count_work(again))
    return found


def restore(job: Job, entry: Entry, wish: Wish, limits: Limits, pace: MachinePace, store: Store, label: str = "") -> Outcome:
    """Does the work of a job: previews, share and seconds left appear in the job while it runs."""
    job.words = f"{label}Looking at the picture"
    made = prepare_wish(entry, wish, limits)
    job.check()
    work = count_work(made)
    expected = pace.predict_seconds(work)
    restored = run_with_second_try(made, lambda one: _run(job, one, label, expected))
    job.check()
    pace.learn(work, restored.seconds)
    job.words = f"{label}Drawing the maps"
    return lay_out(restored, store, entry.client)


def _run(job: Job, one: Preparation, label: str, expected: float) -> Restoration:
    """Runs to the end; `expected` seconds tell more of the time left than the first steps, which are the cheap ones."""
    progress = RunProgress(one)
    job.words, job.share = f"{label}Restoring", 0.0
    last = 0.0

    def on_step(step: Step) -> None:
        nonlocal last
        job.check()
        progress.add(step)
        job.share = progress.share
        job.seconds_left = choose_seconds(progress.share, progress.seconds_left, expected)
        if time.monotonic() - last >= PREVIEW_PAUSE:
            job.preview, job.previews = preview(step, one), job.previews + 1
            last = time.monotonic()

    return one.run(on_step)


def choose_seconds(share: float, left: float | None, expected: float) -> float | None:
    """Seconds left to show: those of the steps so far, and in the first quarter no less than other runs promise."""
    return left if left is None or share >= TELLING else max(left, (1 - share) * expected)


def preview(step: Step, one: Preparation) -> bytes:
    """The estimate after a step as a JPEG of at most PREVIEW_SIDE pixels a side."""
    whole = step.x0_hat if one.posed.window is None else one.posed.window.crop(step.x0_hat)
    pixels = to_unit_range(whole[0].permute(1, 2, 0)).cpu().numpy()
    image = Picture(pixels.astype(np.float32)).rgb()
    image.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def lay_out(restored: Restoration, store: Store, client: str) -> Outcome:
    """Writes everything that can be shown or taken away."""
    from leader.pictures import figures

    entry = store.new(client)
    restored.save(entry.folder / RESTORED)
    _enlarge(restored.given, restored.picture.size).save(entry.folder / GIVEN)
    (entry.folder / RUN).write_text(json.dumps(restored.summary(), indent=2, default=str) + "\n", encoding="utf-8")
    figures.draw_path(entry.folder / PATH, next(iter(restored.result.trace.values())))
    files, spread = [RESTORED, GIVEN, RUN, PATH], restored.uncertainty
    if spread is not None:
        Image.fromarray(maps.colours(spread)).save(entry.folder / COVER)
        maps.heat(spread).save(entry.folder / MAP)
        files += [COVER, MAP]
    judged = restored.verdict
    return Outcome(
        entry,
        restored.picture.size,
        restored.seconds,
        "fine" if judged is None else judged.level,
        () if judged is None else judged.reasons,
        restored.notes,
        tuple(files),
        () if spread is None else _make_legend(),
        "" if spread is None else maps.in_words(spread),
        _numbers(restored),
    )


def _make_legend() -> tuple[tuple[str, str], ...]:
    """(colour as #rrggbb, words) of the trust map, from known to invented."""
    return tuple((f"#{bytes(colour).hex()}", words) for colour, words in maps.legend_entries())


def _enlarge(picture: Picture, size: tuple[int, int]) -> Image.Image:
    """The given picture in the size of the restored one, every pixel a square: nothing is made to look better."""
    image = picture.rgb()
    return image if image.size == size else image.resize(size, Image.Resampling.NEAREST)


def _numbers(restored: Restoration) -> dict[str, Any]:
    settings, total = restored.result.settings, restored.result.ledger.total
    spread = restored.uncertainty
    found: dict[str, Any] = {
        "task": restored.task,
        "noise level sigma": f"{restored.sigma:.4f} ({restored.sigma_from})",
        "method": settings["method"]["name"],
        "plug-ins": ", ".join(item["name"] for item in settings["plugins"]) or "none",
        "steps of the grid": settings["steps"],
        "network calls": total.calls,
        "seed": restored.result.seed,
        "threads": settings["threads"],
        "seconds": f"{restored.seconds:.1f}",
    }
    if spread is not None:
        found["mean uncertainty"] = f"{float(spread.mean()):.4f} of the range 0 to 1"
    for name, value in ({} if restored.verdict is None else restored.verdict.numbers).items():
        if isinstance(value, float):
            found[name.replace("_", " ")] = f"{value:.4g}"
    return found
