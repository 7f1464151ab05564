"""The work behind the button: repairs an uploaded picture step by step and writes the files."""

from __future__ import annotations

import io
import json
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from leader import defaults
from leader.errors import LeaderError
from leader.forensics import Examination, examine
from leader.pictures import Picture
from leader.presets.paths import QUALITIES
from leader.priors.base import Prior
from leader.restoration.progress import RunProgress, count_work
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.result import Step, to_unit_range
from leader.trust import maps
from leader.web import words
from leader.web.choices import Wish, build_request
from leader.web.jobs import Job
from leader.web.store import Entry

if TYPE_CHECKING:
    from leader.web.site import Site

PREVIEW_SIDE = 960
PREVIEW_PAUSE = 0.4
"""Minimum seconds between two previews: more would not be noticed."""
TELLING = 0.25
"""Share of the work after which the run itself is used to estimate the time left."""
LONG = 6.0
"""Runs longer than this many seconds get a draft first, if that takes less than QUICK of them."""
QUICK = 0.4
AROUND = 2.2
"""The time to prepare a run and draw its maps, beyond what `count_work` has for the end of a run, in network calls."""
RESTORED, MAP, COVER, LEVELS, RUN = "restored.png", "map.png", "cover.png", "levels.png", "run.json"


def prepare_repair(
    site: Site, wish: Wish, number: int, examination: Examination, entry: Entry, prior: Prior | None = None
) -> Preparation:
    """Repair `number` of a wish with every choice made; its origin holds the hash of the file, not its name.

    entry  the entry whose picture is examined
    prior  the one that the wish names, if it is already loaded
    """
    size, limits = examination.picture.size, site.limits
    request = build_request(wish, number, size, entry.about.get("advised", {}))
    width, height = request.find_size(size)
    if width * height > limits.pixels:
        raise LeaderError(
            f"The result would have {width} x {height} pixels; the limit here is {limits.pixels / 1e6:.3g} million, "
            "so choose a smaller size or crop the picture."
        )
    more: dict[str, Any] = {} if prior is None else {"prior": prior}
    made = request.prepare(entry.picture, threads=limits.threads, examination=examination, **more)
    return replace(made, origin=replace(made.origin, image=None))


def predict_seconds(site: Site, entry: Entry, wish: Wish) -> dict[str, Any]:
    """The expected time of each quality on this machine (`seconds`), and which ones are the `same` as the default one.

    Every repair is prepared for the given picture: earlier repairs change its pixels but not its size. The time does not depend
    on the painted mask.
    """
    found, same = predict_repairs(site, entry, wish)
    return {"seconds": {quality: sum(seconds) for quality, seconds in found.items()}, "same": same}


def predict_repairs(site: Site, entry: Entry, wish: Wish, job: Job | None = None) -> tuple[dict[str, list[float]], list[str]]:
    """The same for each repair; 0 for one that can only be prepared from the result of the previous repair.

    job  the job it belongs to, which may have been stopped
    """
    examination, prior, sigma, same = site.examinations.take(entry), None, wish.request.sigma, set(QUALITIES)
    found = {quality: [0.0] * len(wish.repairs) for quality in QUALITIES}
    for number in range(len(wish.repairs)):
        for quality in QUALITIES:
            if job is not None:
                job.check()
            try:
                one = wish.change(quality=quality, sigma=sigma)
                made = prepare_repair(site, one, number, examination, entry, prior)
            except LeaderError:
                if number == 0:
                    raise
                continue
            prior, sigma = made.sampler.prior, made.sigma if made.posed.noise is None else sigma
            found[quality][number] = site.pace.predict_seconds(count_cost(made), _kind_of_run(made))
            if quality == defaults.QUALITY:
                same &= set(made.same)
    return found, [quality for quality in QUALITIES if quality in same]


def repair_picture(job: Job, site: Site, entry: Entry, wish: Wish) -> list[dict[str, Any]]:
    """Does the work of a job: updates its previews, share, seconds left and outcomes while it runs.

    The result of each repair is kept as an entry of its own, from which the next repair starts.
    """
    job.words = "Looking at the picture"
    examination = site.examinations.take(entry)
    found = entry.about.get("findings", {}).get("found", ())
    job.check()
    expected, _ = predict_repairs(site, entry, wish, job)
    job.check()
    quality = wish.request.quality or defaults.QUALITY
    if wish.draft_first and _is_worth_a_draft(sum(expected[quality]), sum(expected["draft"])):
        _show_draft(job, site, entry, wish, examination)
    outcomes: list[dict[str, Any]] = []
    for number, repair in enumerate(wish.repairs):
        job.step, job.share = number, 0.0
        begin = time.perf_counter()
        made = prepare_repair(site, wish, number, examination, entry)
        job.check()
        job.later = sum(expected[quality][number + 1 :])
        restored = run_with_second_try(made, partial(_run_or_repeat, job, site, made))
        job.check()
        job.words = "Drawing the maps"
        after, outcome = lay_out(site, restored, entry.client)
        outcome |= {
            "kind": repair.kind,
            "title": words.TOLD[repair.kind][0],
            "story": words.tell_story(restored, repair.kind, repair.kind in found),
        }
        after.about["advised"] = entry.about.get("advised", {})
        site.pace.learn(count_cost(made), time.perf_counter() - begin, _kind_of_run(made))
        outcomes.append(outcome)
        job.outcomes = tuple(outcomes)
        if number + 1 < len(wish.repairs):
            entry, examination = after, site.examinations.take(after)
    return outcomes


def _run_or_repeat(job: Job, site: Site, first: Preparation, one: Preparation) -> Restoration:
    return _run(job, one, site, words.RUN if one is first else words.AGAIN)


def _is_worth_a_draft(seconds: float, draft: float) -> bool:
    return seconds >= LONG and draft <= QUICK * seconds


def _show_draft(job: Job, site: Site, entry: Entry, wish: Wish, examination: Examination) -> None:
    """Runs the whole wish as a draft, whose picture is shown during the real run."""
    draft = wish.change(quality="draft")
    for number in range(len(draft.repairs)):
        job.step = number
        made = prepare_repair(site, draft, number, examination, entry)
        restored = _run(job, made, site, words.DRAFT, check=False)
        examination = examine(restored.picture)
    job.show(_draw_preview(restored.picture), draft=True)


def _run(job: Job, one: Preparation, site: Site, said: str, check: bool = True) -> Restoration:
    """Runs to the end. Earlier runs predict the time left better than the first steps, which are the cheap ones."""
    expected = site.pace.predict_seconds(count_cost(one), _kind_of_run(one))
    progress = RunProgress(one)
    job.words, job.share = said, 0.0
    last = 0.0

    def on_step(step: Step) -> None:
        nonlocal last
        job.check()
        progress.add(step)
        job.share = progress.share
        left = choose_seconds(progress.share, progress.seconds_left, expected)
        job.seconds_left = None if left is None else left + job.later
        if not job.drafted and time.monotonic() - last >= PREVIEW_PAUSE:
            job.show(preview(step, one))
            last = time.monotonic()

    return one.run(on_step, check)


def count_cost(made: Preparation) -> float:
    """The work of a repair, in pixels of network calls, including the work before and after the run."""
    _, height, width = made.problem.image_shape
    return count_work(made) + AROUND * height * width


def _kind_of_run(made: Preparation) -> str:
    """A key for runs that take the same share of the maximal work: task, method, plug-ins, grid."""
    settings = made.plan.settings
    plugins = "+".join(str(item["name"]) for item in settings["plugins"])
    return f"{made.task} {settings['method']['name']} {plugins} {len(made.plan.grid.times)}"


def choose_seconds(share: float, own: float | None, expected: float) -> float | None:
    """Seconds left: at first based on other runs, later on this one; None before the first step."""
    if own is None:
        return None
    return own if share >= TELLING else max(own, (1 - share) * expected)


def preview(step: Step, ready: Preparation) -> bytes:
    """The estimate of a step as a small JPEG."""
    whole = step.x0_hat if ready.posed.window is None else ready.posed.window.crop(step.x0_hat)
    pixels = to_unit_range(whole[0].permute(1, 2, 0)).cpu().numpy()
    return _draw_preview(Picture(pixels.astype(np.float32)))


def _draw_preview(picture: Picture) -> bytes:
    image = picture.rgb()
    image.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def lay_out(site: Site, restored: Restoration, client: str) -> tuple[Entry, dict[str, Any]]:
    """Writes everything that can be shown or downloaded; returns the entry, and what the page says about it."""
    entry = site.store.new(client, RESTORED)
    restored.save(entry.picture)
    (entry.folder / RUN).write_text(json.dumps(restored.summary(), indent=2, default=str) + "\n", encoding="utf-8")
    files, spread = [RESTORED, RUN], restored.uncertainty
    if spread is not None:
        Image.fromarray(maps.colours(spread)).save(entry.folder / COVER)
        Image.fromarray(np.ceil(maps.reach(spread)).clip(1, 255).astype(np.uint8)).save(entry.folder / LEVELS)
        maps.heat(spread).save(entry.folder / MAP)
        files += [COVER, LEVELS, MAP]
    return entry, {
        "token": entry.token,
        "size": restored.picture.size,
        "seconds": round(restored.seconds, 1),
        "verdict": words.tell_verdict(restored),
        "warnings": words.tell_warnings(restored.notes),
        "notes": words.tell_notes(restored.notes),
        "numbers": words.list_numbers(restored),
        "files": files,
    }
