"""The fuzzer itself: the same number gives the same case, and what it must find it finds."""

import io
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tools.fuzz import worker
from tools.fuzz.__main__ import distinct
from tools.fuzz.cases import SHARES, Case, make_case, reader_of
from tools.fuzz.damage import find_pieces, mended_png, spoiled, spoiled_json, spoiled_structure, spoiled_text
from tools.fuzz.worker import FINDING, REFUSED, SERVED, Outcome, run_case

from leader.cli.results import Results
from leader.errors import LeaderError
from leader.pictures import Picture, write_picture
from leader.priors import loading
from leader.restoration import restore as restoration
from tests.cheap_prior import CheapPrior, photograph


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """A few of the files that fuzzing starts from."""
    folder = tmp_path / "seeds"
    for name in ("pictures", "containers", "tables", "priors"):
        (folder / name).mkdir(parents=True)
    write_picture(folder / "pictures" / "rgb.png", Picture(photograph(12, 20).permute(1, 2, 0).numpy()))
    for name in ("grey.png", "alpha.png"):
        (folder / "pictures" / name).write_bytes((folder / "pictures" / "rgb.png").read_bytes())
    np.save(folder / "tables" / "kernel.npy", np.ones((3, 3)))
    return folder


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "load_prior", lambda name, **_: CheapPrior())
    monkeypatch.setenv("LEADER_TRACEBACK", "1")


def case_of(folder: Path, *words: str) -> Case:
    write_picture(folder / "in.png", Picture(photograph(12, 20).permute(1, 2, 0).numpy()))
    return Case(7, "commands", [word.replace("@", f"{folder}/") for word in words])


def run(tmp_path: Path, *words: str) -> Outcome:
    folder = tmp_path / "case"
    folder.mkdir()
    return run_case(case_of(folder, *words), folder)


GOOD = ("restore", "@in.png", "@out.png", "--task", "denoise", "--sigma", "0.1", "--keep-failed", "--steps", "1")


def test_damage_follows_from_the_generator_alone() -> None:
    data, text, content = bytes(range(256)) * 4, "a = 1\nb = [2, 3]\n", {"a": {"b": [1, 2]}, "c": "d"}
    for damage in (
        lambda rng: spoiled(data, rng, b"other"),
        lambda rng: spoiled_text(text, rng),
        lambda rng: spoiled_json(content, rng),
    ):
        first = [damage(Random(number)) for number in range(30)]
        assert first == [damage(Random(number)) for number in range(30)]
        assert len(set(first)) > 3, "it must do something, and not always the same"


@pytest.mark.parametrize("name", ["PNG", "JPEG", "TIFF", "WEBP", "AVIF", "JPEG2000"])
def test_pieces_of_every_format_are_found_and_changed(name: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.arange(12 * 20 * 3, dtype=np.uint8).reshape(12, 20, 3)).save(buffer, name)
    data = buffer.getvalue()
    pieces = find_pieces(data)
    assert pieces and all(begin < end <= len(data) for begin, end in pieces)
    made = [spoiled_structure(data, Random(number)) for number in range(60)]
    assert len(set(made)) > 30 and sum(one != data for one in made) > 50 and mended_png(data) == data
    assert spoiled_structure(b"BM, of no format known here", Random(0)) == b"BM, of no format known here"


def test_a_number_gives_the_same_case_again(seeds: Path, tmp_path: Path) -> None:
    numbers = [n for n in range(400) if reader_of(0, n) in ("settings", "kernels")][:12]
    for number in numbers:
        made = []
        for name in ("a", "b"):
            folder = tmp_path / name / str(number)
            folder.mkdir(parents=True)
            case = make_case(0, number, seeds, folder)
            files = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
            made.append((case.reader, [word.replace(str(folder), "") for word in case.arguments], files))
        assert made[0] == made[1] and made[0][0] == reader_of(0, number)
    assert {reader_of(0, number) for number in range(400)} == set(SHARES)


def test_what_is_served_and_what_is_refused_in_words_is_no_finding(tmp_path: Path) -> None:
    assert run(tmp_path, *GOOD).status == SERVED
    outcome = run(tmp_path / "case", *GOOD[:-1], "0")
    assert outcome.status == REFUSED and "number of steps" in outcome.words


def write_half(self: Any, out: Path, restored: Any) -> None:
    out.write_bytes(b"half")
    raise LeaderError("Too late.")


def want_memory(*_: Any) -> float:
    raise MemoryError


@pytest.mark.parametrize(
    ("owner", "name", "stub", "kind"),
    [
        (restoration, "as_sigma", lambda sigma: 1 / 0, "ZeroDivisionError"),
        (restoration, "as_sigma", want_memory, "memory"),
        (Results, "write", write_half, "refused, yet it left out.png"),
        (Results, "write", lambda self, out, restored: None, "nothing was written"),
    ],
)
def test_what_must_not_happen_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, stub: Any, kind: str
) -> None:
    monkeypatch.setattr(owner, name, stub)
    outcome = run(tmp_path, *GOOD)
    assert (outcome.status, outcome.kind) == (FINDING, kind)
    if kind == "ZeroDivisionError":
        assert outcome.place.startswith("restoration/restore.py:") and "division" in outcome.words


@pytest.mark.parametrize("busy", [True, False])
def test_a_hang_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool) -> None:
    def hang(sigma: Any) -> float:
        while busy:
            pass
        time.sleep(60)
        return 0.1

    monkeypatch.setattr(worker, "SECONDS", 1)
    monkeypatch.setattr(restoration, "as_sigma", hang)
    began = time.monotonic()
    outcome = run(tmp_path, *GOOD)
    assert outcome.status == FINDING and outcome.kind == "over 1 s" and time.monotonic() - began < 20


def test_findings_of_one_kind_and_place_are_one() -> None:
    made = [Outcome(n, "masks", FINDING, kind, "a.py:1") for n, kind in enumerate(("E", "F", "E", "E"))]
    assert [(item.number, count) for item, count in distinct(made)] == [(0, 3), (1, 1)]
