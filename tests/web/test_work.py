"""The work behind the button, on a prior that costs nothing: previews on the way, files at the end, and what the page says."""

import asyncio
import io
import itertools
import json
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image

import leader
from leader.errors import LeaderError
from leader.files import sha256_of
from leader.forensics import Examination, examine
from leader.messages import Note
from leader.pictures import Picture, read_picture, write_picture
from leader.pictures.exif import ASCII, Tag
from leader.pictures.metadata import Metadata
from leader.presets.paths import QUALITIES
from leader.priors import loading
from leader.progress import format_duration
from leader.restoration import diagnose as diagnosing
from leader.restoration import restore as restoring
from leader.restoration.request import RestoreRequest
from leader.trust import Verdict, maps
from leader.trust.judging import Level
from leader.web import site as sites
from leader.web import words, work
from leader.web.choices import Repair, Wish, mask_of
from leader.web.gate import COOKIE
from leader.web.jobs import Job, StoppedError
from leader.web.limits import Limits
from leader.web.site import SECONDS_PER_PIXEL, Examinations, Site
from leader.web.store import Entry
from tests.cheap_prior import CheapPrior, photograph

REQUEST = RestoreRequest(sigma=0.1, method="ddnm", plugins=(), steps=6, seed=3)
WISH = Wish((Repair("noisy"),), request=REQUEST)


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = CheapPrior()
    monkeypatch.setattr(loading, "load_prior", lambda name, **options: prior)
    monkeypatch.setattr(work, "PREVIEW_PAUSE", 0.0)


def given(site: Site, height: int = 24, width: int = 32, alpha: Any = None) -> Entry:
    def fill(path: Path) -> None:
        pixels = photograph(height, width).permute(1, 2, 0).numpy()
        write_picture(path.with_suffix(".png"), Picture(pixels, alpha))
        path.with_suffix(".png").rename(path)

    return site.receive("c", fill)


def run(site: Site, wish: Wish = WISH, entry: Entry | None = None) -> tuple[Job, list[dict[str, Any]]]:
    job = Job("c", 60.0)
    return job, work.repair_picture(job, site, entry or given(site), wish)


def folder_of(site: Site, outcome: dict[str, Any]) -> Path:
    return site.store.find(outcome["token"], "c").folder


def test_a_job_shows_previews_and_leaves_every_file(site: Site) -> None:
    entry = given(site)
    job, (outcome,) = run(site, entry=entry)
    assert job.previews == 6 and job.share == pytest.approx(1.0) and job.seconds_left == pytest.approx(0.0, abs=1.0)
    shown = Image.open(io.BytesIO(job.preview or b""))
    assert shown.format == "JPEG" and shown.size == (32, 24) and not job.drafted
    folder = folder_of(site, outcome)
    last = np.asarray(Image.open(folder / "restored.png").convert("RGB"), dtype=float)
    assert abs(np.asarray(shown, dtype=float).mean() - last.mean()) < 4, "the last preview is as bright as the picture"
    files = {path.name for path in folder.iterdir()}
    assert files == set(outcome["files"]) == {"restored.png", "run.json", "cover.png", "levels.png", "map.png"}
    assert outcome["token"] != entry.token and outcome["size"] == (32, 24) and outcome["title"] == "Noise removed"
    assert Image.open(folder / "cover.png").size == Image.open(folder / "levels.png").size == (32, 24)
    numbers = ("network calls", "threads", "seed", "task", "noise level sigma", "method", "plug-ins", "steps of the grid")
    told_numbers = ["6", "1", "3", "denoise", "0.1000 (given)", "ddnm", "none", "6"]
    assert [outcome["numbers"][name] for name in numbers] == told_numbers
    assert job.outcomes == (outcome,) and len(outcome["story"]) == 3 and json.dumps(outcome)
    seconds = json.loads((folder / "run.json").read_text())["seconds"]
    assert f"removed, in {format_duration(seconds)}: 32 x 24 pixels" in outcome["story"][1]
    assert outcome["story"][0].startswith("You said")
    assert "small" in site.diagnose(entry)["found"]
    told = run(site, Wish((Repair("small", 1.5),), request=REQUEST), entry)[1][0]["story"][0]
    assert told.startswith("The program looked at the picture and found")
    assert site.pace.predict_seconds(1e6) != SECONDS_PER_PIXEL * 1e6, "runs are learned from"
    kind = work._kind_of_run(work.prepare_repair(site, WISH, 0, site.examinations.take(entry), entry))
    own = site.pace.predict_seconds(1e6, kind)
    for _ in range(9):
        site.pace.learn(1e6, 1e9, "other")
    assert site.pace.predict_seconds(1e6, kind) == own, "most from those of the same kind"


def test_every_job_has_the_threads_of_the_site(site: Site) -> None:
    site.limits, threads = replace(site.limits, threads=3), list[int]()
    job = site.desk.submit("c", lambda _: threads.append(torch.get_num_threads()))
    while not job.over:
        time.sleep(0.005)
    entry = given(site)
    assert threads == [3] and work.prepare_repair(site, WISH, 0, site.examinations.take(entry), entry).threads == 3


def test_a_preview_shows_the_picture_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A blurred picture is restored with a border around it."""
    job, (outcome,) = run(site, Wish((Repair("blurred", blur=1.0),), request=REQUEST))
    assert Image.open(io.BytesIO(job.preview or b"")).size == (32, 24) == outcome["size"]
    monkeypatch.setattr(work, "PREVIEW_SIDE", 16)
    monkeypatch.setattr(work, "PREVIEW_PAUSE", 60.0)
    job, _ = run(site, entry=given(site, 32, 24))
    assert Image.open(io.BytesIO(job.preview or b"")).size == (12, 16) and job.previews == 1, "small, and not too often"


def test_the_levels_are_those_of_the_map(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = given(site)
    _, (outcome,) = run(site, entry=entry)
    folder = folder_of(site, outcome)
    run_json = json.loads((folder / "run.json").read_text())
    levels = np.asarray(Image.open(folder / "levels.png"))
    shares = {limit: float((levels <= int(limit)).mean()) for limit in run_json["known_to_within"]}
    assert shares == pytest.approx(run_json["known_to_within"]) and levels.min() >= 1
    restored = leader.restore(entry.picture, **RestoreRequest.from_run(run_json).arguments())
    spread = restored.uncertainty
    assert spread is not None
    above = levels - maps.reach(spread)
    assert above.min() >= 0 and above.max() < 1, "never less than it may be off"
    assert outcome["seconds"] == round(run_json["seconds"], 1)
    monkeypatch.setattr(type(restored), "notes", (Note("invented", "The model invents."),))
    _, warned = work.lay_out(site, restored, "c")
    assert warned["warnings"] == [words.WARNINGS["invented"]]
    judged = run_json["verdict"]
    assert outcome["verdict"]["level"] == judged["level"] != "fine"
    assert len(outcome["verdict"]["reasons"]) == len(judged["reasons"]) > 0


def test_repairs_follow_each_other_and_each_keeps_its_verdict_and_its_run(site: Site, tmp_path: Path) -> None:
    entry = given(site, 16, 20)
    seen: list[tuple[int, int, float]] = []
    left: list[float] = []
    job = Job("c", 60.0)

    def show(preview: bytes, draft: bool = False) -> None:
        seen.append((job.step, len(job.outcomes), job.later))
        left.append(job.seconds_left or 0.0)

    job.show = show  # type: ignore[method-assign]
    shares: list[tuple[int, float]] = []
    job.check = lambda: shares.append((job.step, job.share))  # type: ignore[method-assign]
    first, second = work.repair_picture(job, site, entry, Wish((Repair("noisy"), Repair("small", 1.5)), request=REQUEST))
    assert [one["kind"] for one in (first, second)] == ["noisy", "small"] and job.outcomes == (first, second)
    assert (first["size"], second["size"]) == ((20, 16), (30, 24)) and {"level", "reasons"} <= set(second["verdict"])
    assert {item[:2] for item in seen} == {(0, 0), (1, 1)}, "the first one is there while the second is made"
    assert {later > 0 for step, _, later in seen if step == 0} == {True} and seen[-1][2] == 0, "and its time is counted before"
    assert all(whole >= later for whole, (_, _, later) in zip(left, seen))
    assert (1, 0.0) in shares and sum(step == 1 and share > 0.99 for step, share in shares) == 1, "each run begins at nothing"
    between = folder_of(site, first) / "restored.png"
    told = json.loads((folder_of(site, second) / "run.json").read_text())
    assert told["input"]["sha256"] == sha256_of(between), "it is the result of the first one that was repaired"
    leader.restore(between, **RestoreRequest.from_run(told).arguments()).save(tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == (folder_of(site, second) / "restored.png").read_bytes()
    further = run(site, WISH, site.store.find(first["token"], "c"))[1]
    assert further[0]["size"] == (20, 16), "a result can be repaired further"


def test_a_long_run_shows_a_draft_first(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    wish = Wish((Repair("noisy"),), request=RestoreRequest(quality="best", sigma=0.1))
    entry = given(site)
    seconds = work.predict_seconds(site, entry, wish)["seconds"]
    monkeypatch.setattr(site.pace, "learn", lambda *_: None)  # whatever else this machine does
    monkeypatch.setattr(work, "LONG", (seconds["best"] + seconds["draft"]) / 2)
    monkeypatch.setattr(work, "QUICK", 1.0)
    job, (outcome,) = run(site, wish, entry)
    assert job.drafted and len(site.store) == 2, "the draft is shown and not kept"
    assert not run(site, wish.change(quality="draft"), entry)[0].drafted
    alone = Wish(wish.repairs, request=RestoreRequest(quality="draft", sigma=0.1), draft_first=False)
    assert job.previews == run(site, alone, entry)[0].previews + 1, "those of a draft, and its end"
    draft = Image.open(io.BytesIO(job.preview or b""))
    assert draft.size == (32, 24) and outcome["numbers"]["seed"] == "0"
    assert not run(site, Wish(wish.repairs, request=wish.request, draft_first=False), entry)[0].drafted
    stopped = Job("c", 60.0)
    stopped.show = lambda preview, draft=False: stopped.stop()  # type: ignore[method-assign]
    with pytest.raises(StoppedError):
        work.repair_picture(stopped, site, entry, wish)
    assert stopped.words == words.DRAFT and stopped.share < 1, "a draft is stopped like any other run"
    usual = Wish(wish.repairs, request=RestoreRequest(sigma=0.1))
    monkeypatch.setattr(work, "LONG", (seconds["standard"] + seconds["draft"]) / 2)
    assert run(site, usual, entry)[0].drafted, "without a quality it is the usual one that may take long"
    assert work._is_worth_a_draft(9.0, 2.0) and not work._is_worth_a_draft(9.0, 9.5)
    monkeypatch.setattr(work, "LONG", 10.0)
    assert not work._is_worth_a_draft(9.0, 2.0)


def test_the_second_repair_of_a_draft_starts_from_the_first_ones_result(site: Site) -> None:
    entry, job = given(site), Job("c", 60.0)
    twice = Wish((Repair("small", 1.5),) * 2, request=RestoreRequest(sigma=0.1))
    work._show_draft(job, site, entry, twice, site.examinations.take(entry))
    assert Image.open(io.BytesIO(job.preview or b"")).size == (72, 54)


def test_the_pace_counts_what_is_done_before_and_after_a_run(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, learned = [0.0], list[float]()
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(site.pace, "learn", lambda cost, seconds, kind: learned.append(seconds))

    def slow(function: Any, seconds: float) -> Any:
        def take(*given: Any) -> Any:
            clock[0] += seconds
            return function(*given)

        return take

    monkeypatch.setattr(work, "prepare_repair", slow(work.prepare_repair, 7.0))
    monkeypatch.setattr(work, "lay_out", slow(work.lay_out, 2.0))
    run(site)
    assert learned == [9.0]


def test_a_forecast_estimates_the_noise_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, levels = work.prepare_repair, list[Any]()

    def note(site: Site, wish: Wish, *more: Any) -> Any:
        made = prepare(site, wish, *more)
        levels.append((wish.request.sigma, made.sigma))
        return made

    monkeypatch.setattr(work, "prepare_repair", note)
    work.predict_seconds(site, given(site, 40, 48), Wish((Repair("noisy"),), request=RestoreRequest()))
    first = levels[0][1]
    assert levels == [(None, first), (first, first), (first, first)]


def test_a_job_that_is_stopped_or_too_large_leaves_nothing(site: Site) -> None:
    entry = given(site)
    job, kept = Job("c", 60.0), len(site.store)
    job.stop()
    with pytest.raises(StoppedError):
        work.repair_picture(job, site, entry, WISH)
    with pytest.raises(StoppedError):
        work.predict_repairs(site, entry, WISH, job)
    late = Job("c", 0.0)
    late.began = 0.0
    with pytest.raises(LeaderError, match="longer than"):
        work.repair_picture(late, site, entry, WISH)
    with pytest.raises(LeaderError, match=r"128 x 96 pixels; the limit here is 0.01 million"):
        run(site, Wish((Repair("small", 4.0),), request=REQUEST), entry)
    assert len(site.store) == kept


def test_a_picture_is_examined_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Picture] = []

    def look(picture: Picture) -> Examination:
        looked.append(picture)
        return examine(picture)

    for place in (sites, restoring):
        monkeypatch.setattr(place, "examine", look)
    entry = given(site)
    for _ in range(2):
        site.diagnose(entry)
        site.find_damage(entry)
        work.predict_seconds(site, entry, WISH)
    run(site, entry=entry)
    assert len(looked) == 1
    assert site.examinations.take(entry) is site.examinations.take(entry)


def test_examinations_are_kept_as_far_as_they_fit(tmp_path: Path) -> None:
    read: list[str] = []

    def make(path: Path) -> Picture:
        read.append(path.parent.name)
        return Picture(np.zeros((10, 20, 3), np.float32))

    held = Examinations(400, make)
    first, second, third = (Entry(name, "c", tmp_path / name / "picture", 0.0) for name in "abc")
    for entry in (first, second, first, third, first, second):
        held.take(entry)
    assert read == ["a", "b", "c", "b"], "two fit; the one that was not asked for goes"


def test_a_site_keeps_no_more_than_its_limits() -> None:
    small = Site(Limits(kept=2, pixels=1000))
    first, second, third = (given(small, 20, 24) for _ in range(3))
    assert len(small.store) == 2 and not first.folder.exists()
    kept = small.examinations.take(second)
    small.examinations.take(third)
    assert small.examinations.take(second) is kept
    given(small, 24, 24)
    assert small.examinations.take(third) is not kept
    small.close()


def test_a_diagnosis_is_told_and_proposed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = np.ones((24, 32), np.float32)
    alpha[4:9, 3:20] = 0
    torn = site.diagnose(given(site, alpha=alpha))
    assert torn["fillable"] and {"kind": "missing"} not in torn["repairs"], "what is transparent stays so unless somebody asks"
    answers = iter([diagnosing.Advice("inpaint", {"mask": "auto"})])
    with monkeypatch.context() as patch:
        patch.setattr(diagnosing, "advise", lambda found: next(answers, None))
        site.diagnose(scratched := given(site, alpha=alpha))
    assert scratched.about["advised"]["missing"] == ("inpaint", {"mask": "auto"}), "more than its transparent parts"
    entry = given(site)
    plain = site.diagnose(entry)
    assert plain["repairs"] == [] and not plain["fillable"] and "small" in plain["found"]
    assert not any("--" in text for text in plain["sentences"]) and site.diagnose(entry) is plain
    for client in ("c", "d"):
        assert site.diagnose(site.sample(client, "small"))["repairs"] == [{"kind": "small", "factor": 4}]
    advice = diagnosing.Advice("deblur", {"kernel": "line:9:40", "kernel_doubt": 0.05})
    monkeypatch.setattr(diagnosing, "advise", lambda found: advice)
    again = given(site)
    assert site.diagnose(again)["repairs"] == [{"kind": "blurred"}]
    made = work.prepare_repair(site, Wish((Repair("blurred"),), request=REQUEST), 0, site.examinations.take(again), again)
    assert made.task == "deblur" and made.posed.options["kernel"].shape[1] >= 7, "its kernel holds, too"
    _, (_, second) = run(site, Wish((Repair("noisy"), Repair("blurred")), request=REQUEST), again)
    assert second["numbers"]["task"] == "deblur", "and after another repair"


def test_a_blur_that_is_found_is_there_for_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Site(Limits())
    blurred = wide.sample("c", "blurred")
    monkeypatch.setattr(diagnosing, "advise", lambda found: diagnosing.Advice("denoise", {}))
    assert "blurred" in wide.diagnose(blurred)["found"]
    task, options = blurred.about["advised"]["blurred"]
    assert task == "deblur" and 0 < options["kernel_doubt"] < 1
    del blurred.about["findings"]
    monkeypatch.setattr(diagnosing, "advise", lambda found: diagnosing.Advice("deblur", {"kernel": "line:9:40"}))
    wide.diagnose(blurred)
    assert blurred.about["advised"]["blurred"] == ("deblur", {"kernel": "line:9:40"}), "advice wins"
    wide.close()


def test_what_is_seen_is_what_was_done_to_it(site: Site) -> None:
    clean = photograph(80, 96).permute(1, 2, 0).numpy()
    noisy = clean + np.random.default_rng(0).normal(0, 0.1, clean.shape)
    grey = np.repeat(clean[..., :1], 3, -1)
    seen = []
    for pixels in (noisy, grey):
        values = Image.fromarray(np.round(255 * pixels.clip(0, 1)).astype(np.uint8))
        seen.append(set(site.diagnose(site.receive("c", partial(values.save, format="PNG")))["found"]))
    values = Image.fromarray(np.round(255 * clean.clip(0, 1)).astype(np.uint8))
    seen.append(set(site.diagnose(site.receive("c", partial(values.save, format="JPEG", quality=10)))["found"]))
    assert seen == [{"noisy", "small"}, {"grey", "small"}, {"jpeg", "small"}]
    found = replace(diagnosing.diagnose(site.examinations.take(given(site))).findings, size=(4000, 30))
    assert sites._list_damage(found) == [] and sites._list_damage(replace(found, enlarged=2.0)) == ["small"]


def test_scratches_are_proposed_as_a_mask(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from leader.web.choices import PNG

    def fill(path: Path) -> None:
        pixels = photograph(96, 80).permute(1, 2, 0).numpy().copy()
        pixels[:, 30:32] = 1.0
        Image.fromarray(np.round(255 * pixels.clip(0, 1)).astype(np.uint8)).save(path, "PNG")

    import base64

    entry = site.receive("c", fill)
    mask = site.find_damage(entry)
    assert mask is not None
    known = mask_of(PNG + base64.b64encode(mask).decode(), (80, 96))
    assert known[10:90, 30:32].max() == 0 and known[:, :20].mean() > 0.9
    assert "missing" in site.diagnose(entry)["found"]
    assert site.find_damage(given(site)) is None
    monkeypatch.setattr(sites, "CANVAS", 48)
    assert Image.open(io.BytesIO(site.find_damage(entry) or b"")).size == (40, 48)


def test_seconds_are_told_for_every_quality_from_the_runs_of_this_machine(site: Site) -> None:
    wish = Wish((Repair("noisy"),), request=RestoreRequest(quality="standard", sigma=0.1))
    entry = given(site)
    first = work.predict_seconds(site, entry, wish)["seconds"]
    assert sorted(first, key=lambda name: first[name]) == ["draft", "standard", "best"]
    made = work.prepare_repair(site, wish, 0, site.examinations.take(entry), entry)
    site.pace.learn(work.count_cost(made), 10 * first["standard"], work._kind_of_run(made))
    again = work.predict_seconds(site, entry, wish)["seconds"]
    assert again["standard"] == pytest.approx(10 * first["standard"])
    chain = work.predict_seconds(site, entry, Wish((Repair("noisy"), Repair("small", 2.0)), request=wish.request))
    assert chain["seconds"]["standard"] > again["standard"], "every repair counts"
    unknown, _ = work.predict_repairs(site, entry, Wish((Repair("noisy"), Repair("blurred")), request=wish.request))
    assert unknown["standard"] == [again["standard"], 0.0], "but for one of which nothing can be said yet"
    with pytest.raises(LeaderError, match="brush"):
        work.predict_seconds(site, entry, Wish((Repair("missing"),), request=wish.request))


def test_qualities_that_do_the_same_are_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several repairs all must do the same; where a method was chosen there is no quality."""
    entry, request = given(site), RestoreRequest(quality="draft", sigma=0.1)
    assert work.predict_seconds(site, entry, Wish((Repair("noisy"),), request=request))["same"] == ["standard", "best"]
    monkeypatch.setattr(CheapPrior, "name", "embedded")
    assert work.predict_seconds(site, entry, Wish((Repair("noisy"),), request=request))["same"] == list(QUALITIES)
    for both in ((Repair("noisy"), Repair("grey")), (Repair("grey"), Repair("small", 2.0))):
        assert work.predict_seconds(site, entry, Wish(both, request=request))["same"] == ["standard"]
    named = Wish((Repair("noisy"),), request=RestoreRequest(method="ddnm", sigma=0.1))
    assert work.predict_seconds(site, entry, named)["same"] == []


def test_a_second_try_says_that_it_is_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def run(job: object, one: object, site: Site, words: str, check: bool = True) -> object:
        said.append(words)
        return one

    def twice(made: Any, run: Any) -> Any:
        run(made)
        run(replace(made))
        raise LeaderError("enough")

    monkeypatch.setattr(work, "_run", run)
    monkeypatch.setattr(work, "run_with_second_try", twice)
    wish = Wish((Repair("noisy"),), request=RestoreRequest(sigma=0.1), draft_first=False)
    with pytest.raises(LeaderError, match="enough"):
        work.repair_picture(Job("c", 60.0), site, given(site), wish)
    assert said == [words.RUN, words.AGAIN]


def test_the_time_left_trusts_other_runs_at_first_and_this_run_later() -> None:
    assert work.choose_seconds(0.1, None, 50.0) is None
    assert work.choose_seconds(0.1, 7.0, 50.0) == 45.0 and work.choose_seconds(0.1, 60.0, 50.0) == 60.0
    assert work.choose_seconds(0.25, 7.0, 50.0) == 7.0


def test_the_server_learns_its_pace_when_it_starts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "CALIBRATION", (24, 32))
    monkeypatch.setattr(time, "process_time", itertools.count(0.0, 8.0).__next__)
    learned: list[tuple[float, float]] = []
    learn = site.pace.learn

    def note(cost: float, seconds: float) -> None:
        learned.append((cost, seconds))
        learn(cost, seconds)

    monkeypatch.setattr(site.pace, "learn", note)
    site.limits = replace(site.limits, threads=4)
    job = site.learn_pace()
    while not job.over:
        time.sleep(0.005)
    assert job.state == "done", job.error
    assert site.pace.predict_seconds(1e6) != SECONDS_PER_PIXEL * 1e6, "it has learned"
    assert len(site.store) == 0, "its own pictures are removed"
    ((cost, seconds),) = learned
    assert seconds == 8.0 / 4, "the processor's seconds, shared by the threads"
    entry, wish = given(site, 32, 32), Wish((Repair("noisy"),), request=RestoreRequest(quality="draft", sigma=0.1))
    made = work.prepare_repair(site, wish, 0, site.examinations.take(entry), entry)
    assert cost == work.count_cost(made), "of the last picture; the first one warms up"


def test_what_a_visitor_must_know_is_told_in_plain_words() -> None:
    notes = ("A plain choice.", Note("invented", "The model invents."), Note("trust map: other paths", "Calibrated elsewhere."))
    assert words.tell_warnings(notes) == [words.WARNINGS["invented"], words.WARNINGS["trust map: other paths"]]
    assert words.tell_notes(notes) == ["A plain choice."]
    assert words._put_plainly(Note("new", "the JPEG is odd")) == "The JPEG is odd."
    assert words._put_plainly(Note("invented", "x", values={"value": 0.125})).startswith("12 % of the picture is made up")
    for level in get_args(Level):
        judged: Any = SimpleNamespace(verdict=Verdict(level))
        told = words.tell_verdict(judged)
        assert (told["level"], told["title"], told["reasons"]) == (level, words.VERDICTS[level][0], [])


def test_every_reason_for_doubt_has_plain_words() -> None:
    from leader.trust.error_map import NOTES
    from leader.trust.judging import REASONS

    assert set(REASONS) <= set(words.REASONS) and {f"trust map: {source}" for source in NOTES} <= set(words.WARNINGS)


def test_a_visit_from_the_upload_to_the_download(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the routes, as the page asks: every choice of a wish is seen in the run that is taken away."""
    routes = pytest.importorskip("leader.web.routes", reason="the page needs the extra web")
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    client: Any = TestClient(Starlette(routes=routes.list_routes(site)), cookies={COOKIE: "0" * 32})
    place = Metadata(gps={1: Tag(ASCII, b"N\0")})
    pixels = photograph(24, 32).permute(1, 2, 0).numpy()
    write_picture(tmp_path / "in.png", Picture(pixels, metadata=place), location=True)
    token = client.post("/api/pictures", content=(tmp_path / "in.png").read_bytes()).json()["token"]
    assert "small" in client.get(f"/api/pictures/{token}/findings").json()["found"]
    assert client.get(f"/api/pictures/{token}/damage").status_code == 404
    expert = {"method": "ddnm", "plugins": "none", "steps": "6", "sigma": "0.1", "seed": "3"}
    wish = {"picture": token, "repairs": [{"kind": "noisy"}], **expert}
    told = client.post("/api/estimate", json=wish).json()
    assert set(told["seconds"]) == set(QUALITIES) and min(told["seconds"].values()) > 0 and told["same"] == []
    submit, clients = site.desk.submit, list[str]()

    def note(client: str, do: Any) -> Job:
        clients.append(client)
        return submit(client, do)

    monkeypatch.setattr(site.desk, "submit", note)
    answer = client.post("/api/restore", json=wish)
    assert answer.headers["x-accel-buffering"] == "no" and answer.headers["cache-control"] == "no-store", "proxies pass it on"
    *_, last = (json.loads(line) for line in answer.text.splitlines())
    assert clients == ["0" * 32], "one job per client"
    assert last["state"] == "done" and len(last["outcomes"]) == 1, last["error"]
    (outcome,) = last["outcomes"]
    found = {name: client.get(f"/api/files/{outcome['token']}/{name}").content for name in outcome["files"]}
    told = json.loads(found["run.json"])
    assert told["input"] == {"name": None, "sha256": sha256_of(tmp_path / "in.png")}, "no name of ours"
    kept = RestoreRequest.from_run(told).arguments()
    leader.restore(tmp_path / "in.png", **kept).save(tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == found["restored.png"]
    places = [read_picture(tmp_path / name).metadata.gps for name in ("in.png", "again.png")]
    assert places == [place.gps, {}], "nor where it was taken"
    assert (kept["method"], kept["plugins"], kept["steps"], kept["sigma"], kept["seed"]) == ("ddnm", (), 6, 0.1, 3)


class Visitor:
    """Looks at a job so many times and leaves."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    async def is_disconnected(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def follow(site: Site, job: Job, visitor: Visitor) -> list[dict[str, Any]]:
    routes = pytest.importorskip("leader.web.routes", reason="the page needs the extra web")

    async def visit() -> list[dict[str, Any]]:
        return [json.loads(line) async for line in routes.follow(site, job, visitor)]

    return asyncio.run(visit())


def test_a_visitor_hears_of_changes_alone_and_stops_the_job_by_leaving(site: Site) -> None:
    go_on = threading.Event()

    def endless(job: Job) -> None:
        job.words, job.step, job.seconds_left = "Restoring", 2, 61.04
        job.show(b"a preview", draft=True)
        go_on.wait(20)
        while True:
            job.check()
            job.share = 0.5
            time.sleep(0.001)

    job = site.desk.submit("c", endless)
    while job.preview is None:
        time.sleep(0.005)
    waiting = [site.desk.submit(client, lambda _: None) for client in ("d", "e")]
    own, other = pictures = site.store.new("e"), site.store.new("d")
    own.last = other.last = 0.0
    assert follow(site, waiting[1], Visitor(2)) == [{"state": "waiting", "ahead": 1}], "said once"
    assert [picture.last > 0 for picture in pictures] == [True, False], "the line may be longer than a picture is kept"
    go_on.set()
    while job.share == 0:
        time.sleep(0.005)
    told, plain = follow(site, job, Visitor(5))
    assert plain == {key: value for key, value in told.items() if key != "preview"}, "each preview once"
    assert told["state"] == "running" and told["preview"].startswith("data:image/jpeg;base64,") and told["share"] == 0.5
    assert [told[name] for name in ("words", "step", "left", "drafted")] == ["Restoring", 2, 61.0, True]
    end = time.monotonic() + 120
    while not (job.over and waiting[0].over) and time.monotonic() < end:
        time.sleep(0.005)
    job.stop()  # where it was not stopped: the thread ends all the same
    assert [one.state for one in (job, *waiting)] == ["stopped", "done", "stopped"]


def test_a_visitor_sees_every_preview_and_how_a_job_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    routes = pytest.importorskip("leader.web.routes", reason="the page needs the extra web")
    monkeypatch.setattr(routes, "PAUSE", 0.01)

    def show(job: Job) -> None:
        for preview in (b"a", b"b", b"b"):
            job.show(preview)
            time.sleep(0.2)

    lines = follow(site, site.desk.submit("c", show), Visitor(10_000))
    assert [line["preview"][-4:] for line in lines if "preview" in line] == ["YQ==", "Yg==", "Yg=="]
    assert lines[-1]["state"] == "done"
