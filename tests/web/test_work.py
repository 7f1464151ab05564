"""The work behind a button, on a prior that costs nothing: previews on the way, files at the end, and what the page says."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import leader
from leader.errors import LeaderError
from leader.pictures import Picture, write_picture
from leader.priors import loading
from leader.restoration.progress import count_work
from leader.restoration.request import RestoreRequest
from leader.web import views, work
from leader.web.choices import Wish
from leader.web.jobs import Job, StoppedError
from leader.web.limits import Limits
from leader.web.site import SECONDS_PER_PIXEL, Site
from leader.web.store import Entry
from tests.cheap_prior import CheapPrior, photograph

WISH = Wish("noisy", request=RestoreRequest(sigma=0.1, method="ddnm", plugins=(), steps=6, seed=3))


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = CheapPrior()
    monkeypatch.setattr(loading, "load_prior", lambda name, **options: prior)
    monkeypatch.setattr(work, "PREVIEW_PAUSE", 0.0)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Site(Limits(pixels=10_000))
    yield made
    made.close()
    assert not list(tmp_path.glob("leader-web-*")), "nothing is left of the server"


def given(site: Site, height: int = 24, width: int = 32, client: str = "c") -> Entry:
    def fill(path: Path) -> None:
        pixels = photograph(height, width).permute(1, 2, 0).numpy()
        write_picture(path.with_suffix(".png"), Picture(pixels))
        path.with_suffix(".png").rename(path)

    return site.receive(client, fill)


def done(site: Site, wish: Wish = WISH, entry: Entry | None = None) -> tuple[Job, work.Outcome]:
    job = Job("c", 60.0)
    return job, work.restore(job, entry or given(site), wish, site.limits, site.pace, site.store)


def test_a_job_shows_previews_and_leaves_every_file(site: Site) -> None:
    entry = given(site)
    job, outcome = done(site, entry=entry)
    assert job.previews == 6 and job.share == pytest.approx(1.0) and job.seconds_left == pytest.approx(0.0, abs=1.0)
    shown = Image.open(io.BytesIO(job.preview or b""))
    assert shown.format == "JPEG" and shown.size == (32, 24)
    last = np.asarray(Image.open(outcome.entry.folder / "restored.png").convert("RGB"), dtype=float)
    assert abs(np.asarray(shown, dtype=float).mean() - last.mean()) < 4, "the last preview is as bright as the picture"
    names = {path.name for path in outcome.entry.folder.iterdir()}
    assert names == set(outcome.files) == {"restored.png", "given.png", "run.json", "path.png", "cover.png", "map.png"}
    assert outcome.entry.client == "c" and outcome.entry.token != entry.token and outcome.size == (32, 24)
    assert Image.open(outcome.entry.folder / "cover.png").size == (32, 24)
    assert outcome.numbers["network calls"] == 6 and outcome.numbers["threads"] == 1 and outcome.legend


def test_the_run_repeats_the_picture_byte_for_byte_and_holds_no_name(site: Site, tmp_path: Path) -> None:
    entry = given(site)
    _, outcome = done(site, entry=entry)
    run = json.loads((outcome.entry.folder / "run.json").read_text())
    assert run["input"]["name"] is None and len(run["input"]["sha256"]) == 64
    assert run["seed"] == 3, "the visitor's own"
    leader.restore(entry.picture, **RestoreRequest.from_run(run).arguments()).save(tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == (outcome.entry.folder / "restored.png").read_bytes()


def test_the_given_picture_is_shown_as_large_as_the_result_without_being_made_better(site: Site) -> None:
    entry = given(site, 16, 20)
    _, outcome = done(site, replace(WISH, kind="small", factor=2), entry)
    assert outcome.size == (40, 32)
    before = np.asarray(Image.open(outcome.entry.folder / "given.png"))
    assert np.array_equal(before[::2, ::2], np.asarray(Image.open(entry.picture))) and np.array_equal(before[::2], before[1::2])


def test_a_job_that_is_stopped_or_too_large_leaves_nothing(site: Site) -> None:
    entry = given(site)
    job, kept = Job("c", 60.0), len(site.store)
    job.stop()
    with pytest.raises(StoppedError):
        work.restore(job, entry, WISH, site.limits, site.pace, site.store)
    late = Job("c", 0.0)
    late.began = 0.0
    with pytest.raises(LeaderError, match="longer than"):
        work.restore(late, entry, WISH, site.limits, site.pace, site.store)
    with pytest.raises(LeaderError, match=r"128 x 96 pixels; at most 0.01 million"):
        work.prepare_wish(entry, replace(WISH, kind="small", factor=4), site.limits)
    assert len(site.store) == kept


def test_seconds_are_told_for_every_quality_from_the_runs_of_this_machine(site: Site) -> None:
    entry, wish = given(site), Wish("noisy", request=RestoreRequest(quality="standard", sigma=0.1))
    first = work.seconds_by_quality(entry, wish, site.limits, site.pace)
    assert sorted(first, key=lambda name: first[name]) == ["draft", "standard", "best"]
    made = work.prepare_wish(entry, wish, site.limits)
    site.pace.learn(count_work(made), 10 * first["standard"])
    again = work.seconds_by_quality(entry, wish, site.limits, site.pace)
    assert again["standard"] == pytest.approx(10 * first["standard"]) and again["best"] > again["draft"]
    unpainted = work.seconds_by_quality(entry, replace(wish, kind="missing"), site.limits, site.pace)
    assert set(unpainted) == set(first)  # told before anything is painted


def test_the_time_left_trusts_other_runs_at_first_and_this_run_later() -> None:
    assert work.choose_seconds(0.1, None, 50.0) is None
    assert work.choose_seconds(0.1, 7.0, 50.0) == 45.0 and work.choose_seconds(0.1, 60.0, 50.0) == 60.0
    assert work.choose_seconds(0.25, 7.0, 50.0) == 7.0


def test_the_server_learns_its_pace_when_it_starts(site: Site) -> None:
    job = site.learn_pace()
    while not job.over:
        time.sleep(0.005)
    assert job.state == "done", job.error
    assert site.pace.predict_seconds(1e6) != SECONDS_PER_PIXEL * 1e6, "it has learned"
    assert len(site.store) == 0, "its own pictures are removed"


def test_what_the_page_says_of_a_result(site: Site) -> None:
    _, outcome = done(site)
    text = views.result_text(outcome)
    for name in ("given.png", "restored.png", "cover.png", "path.png"):
        assert f"leader/files/{outcome.entry.token}/{name}" in text
    assert 'download="restored.png"' in text and 'download="run.json"' in text and 'download="map.png"' in text
    assert text.count("<img") == text.count("alt="), "every picture has words"
    bad = replace(outcome, level="failed", reasons=("the <b>measurement</b> is not explained",), notes=("<script>",))
    told = views.result_text(bad)
    assert "do not use it" in told and "The &lt;b&gt;measurement" in told and "<script>" not in told
    plain = replace(outcome, files=("restored.png", "given.png", "run.json", "path.png"))
    assert "no trust map" in views.result_text(plain) and "map.png" not in views.result_text(plain)
    both = views.comparison(("A <x>", outcome), ("B", outcome))
    assert both.count('class="pane"') == 2 and "A &lt;x&gt;" in both


def _page() -> Any:
    return pytest.importorskip("leader.web.page", reason="the page needs the extra web")


def test_a_form_becomes_a_wish() -> None:
    page = _page()
    names = ["look", "method", "plugins", "steps", "budget", "estimator", "sigma", "prior", "seed"]
    chosen = "chosen by the quality"
    wish = page.make_wish(names, "", "small", 2, 0, "draft", "faithful", chosen, chosen, None, "", chosen, None, "embedded", 3)
    assert wish == Wish("small", 2, request=RestoreRequest(quality="draft", look="faithful", seed=3))
    expert = ("natural", "ddnm", "none", "20", "0.1", "head", "0.02", "embedded", "")
    wish = page.make_wish(names, "x", "blurred", 4, 1.5, "best", *expert)
    request = RestoreRequest(
        quality="best", look="natural", method="ddnm", plugins=(), steps=20, budget=0.1, estimator="head", sigma=0.02
    )
    assert wish == Wish("blurred", 4, 1.5, "x", request)
    titles = [page._side(wish, "draft", chosen, chosen), page._side(wish, "draft", "ddrm", "none")]
    assert [title for title, _ in titles] == ["Draft", "ddrm without plug-ins"]
    assert titles[0][1].request.method is None and titles[1][1] == wish.change(quality="draft", method="ddrm", budget=None)


def test_a_visitor_who_leaves_stops_the_job(site: Site) -> None:
    page = _page()

    def endless(job: Job) -> None:
        job.words = "Restoring"
        while True:
            job.check()
            time.sleep(0.001)

    job = site.desk.submit("c", endless)

    async def visit() -> str:
        stream = page.follow(site, job)
        text = ""
        async for text in stream:
            if "Restoring" in text:
                break
        await stream.aclose()
        return text

    assert "Restoring" in asyncio.run(visit())
    end = time.monotonic() + 120
    while not job.over and time.monotonic() < end:
        time.sleep(0.005)
    job.stop()  # where it was not stopped: the thread ends all the same
    assert job.state == "stopped" and "Nothing was kept" in page.final_text(job, None)
    job.state, job.error = "refused", "It is <too> large."
    assert "&lt;too&gt;" in page.final_text(job, None)
    job.state, job.result = "done", 7
    assert page.final_text(job, lambda found: found + 1) == "8"
