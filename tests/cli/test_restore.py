"""leader restore: every option is seen in what is written, printed or kept."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from leader.cli import app
from leader.pictures import Picture, figures, formats, read_picture, write_picture
from leader.pictures.exif import ASCII, Tag
from leader.pictures.metadata import Metadata
from leader.restoration.restore import restore
from leader.trust import maps

runner = CliRunner()
BASE = ["restore", "in.png", "out.png", "--steps", "4", "--keep-failed"]
"""The cheap prior makes pictures that deserve no better verdict."""


def run(*words: str) -> dict[str, Any]:
    """Runs `leader restore` and returns what --json kept."""
    result = runner.invoke(app, [*BASE, *words, "--json", "run.json", "--force"])
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = json.loads(Path("run.json").read_text())
    return content


SEEN: list[tuple[list[str], dict[str, Any]]] = [
    (["--task", "deblur", "--kernel", "kernel.npy"], {"task": "deblur", "kernel": "kernel.npy"}),
    (
        ["--task", "denoise", "--sigma", "0.2", "--seed", "3", "--method", "diffpir", "-p", "none", "--steps", "7"],
        {"task": "denoise", "sigma": 0.2, "seed": 3, "method": "diffpir", "plugins": (), "steps": 7},
    ),
    (
        ["--task", "denoise", "--sigma", "0.2", "--budget", "50", "--estimator", "noise-energy"],
        {
            "task": "denoise",
            "sigma": 0.2,
            "plugins": ("leader",),
            "settings": {"satp": {"budget": 50.0}, "estimator": "noise-energy"},
        },
    ),
]


def test_the_picture_is_that_of_the_python_call(folder: Path) -> None:
    """The written bytes are those of `leader.restore` with the same arguments, and no two of these runs are the same."""
    seen: dict[bytes, str] = {}
    for words, arguments in SEEN:
        run(*words)
        written = (folder / "out.png").read_bytes()
        restore("in.png", **{"steps": 4, **arguments}).save("python.png")
        assert written == (folder / "python.png").read_bytes(), words
        pixels = read_picture(folder / "out.png").pixels.tobytes()
        assert pixels not in seen, f"{words} and {seen[pixels]} wrote the same picture"
        seen[pixels] = str(words)


def test_the_place_where_it_was_taken(folder: Path) -> None:
    place = Metadata(gps={1: Tag(ASCII, b"N\0")})
    write_picture(folder / "placed.jpg", Picture(read_picture(folder / "in.png").pixels, metadata=place), location=True)
    for words, kept in (([], {}), (["--keep-location"], place.gps)):
        result = runner.invoke(
            app, ["restore", "placed.jpg", "out.jpg", "--task", "denoise", "--steps", "2", "-f", "--no-check", *words]
        )
        assert result.exit_code == 0, result.output
        assert read_picture(folder / "out.jpg").metadata.gps == kept
        assert ("--keep-location keeps it" in result.stderr) is not bool(kept)
        many = ["restore", ".", "../many", "--task", "denoise", "--steps", "2", "--jobs", "0", "-f", "--no-check", *words]
        runner.invoke(app, many)
        assert read_picture(folder.parent / "many" / "placed.jpg").metadata.gps == kept


def test_what_was_chosen_is_told(folder: Path) -> None:
    result = runner.invoke(app, [*BASE, "--task", "denoise", "--sigma", "0.25"])
    assert result.exit_code == 0 and result.stdout == "out.png\n"
    assert "Noise level sigma = 0.2500 (as given)." in result.stderr and "Restored 32 x 24 pixels with " in result.stderr
    again = runner.invoke(app, [*BASE, "--task", "deblur-gaussian", "--sigma", "0.25", "--force"])
    assert again.exit_code == 0 and "No kernel was given" in again.stderr
    words = ["--task", "deblur", "--kernel", "gaussian:1", "--sigma", "0.25", "--kernel-doubt", "0.3", "--force"]
    doubted = runner.invoke(app, [*BASE, *words, "--json", "run.json"])
    used = json.loads(Path("run.json").read_text())["sigma"]
    assert (
        f"Noise level sigma = {used:.4f} (as given, raised because of the kernel's uncertainty)." in doubted.stderr
        and used > 0.25
    )
    found = runner.invoke(app, [*BASE, *words[:4], *words[6:]])
    assert "(estimated from the picture)" in found.stderr, "it was raised as well, but nobody gave it"


def test_what_out_cannot_hold_is_refused_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = np.linspace(0, 1, 24 * 32, dtype=np.float32).reshape(24, 32)
    write_picture(folder / "alpha.png", Picture(np.full((24, 32, 3), 0.5, np.float32), alpha))
    result = runner.invoke(app, ["restore", "alpha.png", "out.jpg", "--task", "denoise", "--sigma", "0.1", "--steps", "2"])
    assert result.exit_code == 1 and "transparency" in result.stderr and not (folder / "out.jpg").exists()
    assert "network calls" not in result.stderr, "it was found out after the work"
    monkeypatch.setitem(formats.FORMATS, ".webp", replace(formats.FORMATS[".webp"], side=63))
    wide = ["restore", "in.png", "out.webp", "--task", "sr", "--factor", "2", "--sigma", "0.1", "--steps", "1"]
    result = runner.invoke(app, wide)
    assert result.exit_code == 1 and "at most 63 pixels on a side" in result.stderr and "Restored" not in result.stderr


def test_outputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    real = figures.draw_side_by_side

    def draw(*given: Any) -> None:
        drawn.append(given)
        real(*given)

    monkeypatch.setattr(figures, "draw_side_by_side", draw)
    words = ["--task", "sr", "--factor", "2", "--map", "map.png", "--figure", "figure.png", "--json", "run.json"]
    words += ["--map", "map.fade.png"]
    result = runner.invoke(app, [*BASE, *words])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == ["out.png", "map.png", "map.fade.png", "figure.png", "run.json"]
    assert "estimated from the picture" in result.stderr
    content = json.loads(Path("run.json").read_text())
    assert content["sigma_from"] == "estimated" and content["network"]["calls"] == len(content["trace"])
    assert f"with {len(content['trace'])} network calls in" in result.stderr
    same = restore("in.png", "sr", factor=2, steps=4)
    assert same.uncertainty is not None
    assert content["known_to_within"] == maps.shares(same.uncertainty)
    ((path, views, spread, words_below),) = drawn
    assert same.verdict is not None and words_below == f"Verdict: {same.verdict.in_words('terminal')}"
    assert path == Path("figure.png") and [title for title, _ in views] == ["given", "restored"]
    assert np.array_equal(views[0][1], read_picture(folder / "in.png").pixels)
    assert np.array_equal(views[1][1], same.array) and np.array_equal(spread, same.uncertainty)
    for name in ("map.png", "figure.png"):
        read_picture(folder / name)
    words = ["--task", "inpaint", "--mask", "known.png", "--figure", "figure.png", "--force"]
    assert runner.invoke(app, [*BASE, *words]).exit_code == 0
    given, filled, _ = drawn[1][1]
    hole = read_picture(folder / "known.png").pixels[..., 0] == 0
    assert filled[0] == "filled in" and np.array_equal(filled[1][~hole], given[1][~hole])
    assert hole.any() and np.array_equal(np.unique(filled[1][hole], axis=0), [figures.HOLES]), "what was missing is marked"
    assert runner.invoke(app, [*BASE, "--task", "sr", "--factor", "2", "--map", "raw.npy", "--force"]).exit_code == 0
    assert np.array_equal(np.load("raw.npy"), same.uncertainty)


def test_a_failed_picture_is_told_and_not_written_unless_asked(folder: Path) -> None:
    words = ["restore", "in.png", "out.png", "--steps", "4", "--task", "sr", "--sigma", "0.1", "--json", "run.json"]
    result = runner.invoke(app, [*words, "--figure", "figure.png"])
    assert result.exit_code == 3 and "Verdict: failed: " in result.stderr and "--keep-failed" in result.stderr
    assert not Path("out.png").exists() and not Path("figure.png").exists() and result.stdout.split() == ["run.json"]
    content = json.loads(Path("run.json").read_text())
    assert content["verdict"]["level"] == "failed" and content["tries"] == []  # sigma was given: no repetition
    kept = runner.invoke(app, [*words, "--force", "--keep-failed"])
    assert kept.exit_code == 0 and "Verdict: failed: " in kept.stderr
    written = Path("out.png").read_bytes()
    unchecked = runner.invoke(app, [*words, "--no-check", "--force"])
    assert unchecked.exit_code == 0 and "Verdict" not in unchecked.stderr and Path("out.png").read_bytes() == written


def test_the_run_on_stdout(folder: Path) -> None:
    result = runner.invoke(app, [*BASE, "--task", "denoise", "--json", "-"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["task"] == "denoise" and "out.png" in result.stderr
    assert Path("out.png").exists() and not Path("-").exists()


def test_without_an_estimator_there_is_no_map(folder: Path) -> None:
    words = [*BASE, "--task", "denoise", "--plugin", "none", "--estimator", "none"]
    result = runner.invoke(app, [*words, "--map", "map.png"])
    assert result.exit_code == 1 and "no uncertainty" in result.stderr
    assert runner.invoke(app, [*words, "--force"]).exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--task", "sr", "--factor", "2", "--down", "average", "--seed", "5"],
        ["--task", "deblur", "--kernel", "kernel.npy", "--method", "diffpir", "--budget", "0.2"],
        ["--task", "inpaint", "--mask", "known.png", "--plugin", "none", "--estimator", "noise-energy"],
        ["--task", "denoise", "--sigma", "0.25", "--prior", "other", "--settings", "s.toml"],
    ],
    ids=lambda words: words[1],
)
def test_a_kept_run_gives_the_same_picture_again(folder: Path, words: list[str]) -> None:
    Path("s.toml").write_text("eta = 0.5\n")
    run(*words)
    for name in ("kernel.npy", "known.png", "s.toml"):
        Path(name).unlink()
    again = runner.invoke(
        app, ["restore", "in.png", "again.png", "--settings", "run.json", "--json", "second.json", "--keep-failed"]
    )
    assert again.exit_code == 0, again.output
    assert Path("again.png").read_bytes() == Path("out.png").read_bytes()
    third = runner.invoke(app, ["restore", "in.png", "third.png", "--settings", "second.json", "--keep-failed"])
    assert third.exit_code == 0 and Path("third.png").read_bytes() == Path("out.png").read_bytes()


def test_beside_a_kept_run_only_outputs_are_named(folder: Path) -> None:
    run("--task", "denoise")
    words = ["restore", "in.png", "again.png", "--settings", "run.json"]
    for extra in (["--seed", "0"], ["--task", "denoise"], ["-m", "ddnm"], ["--budget", "1"]):
        result = runner.invoke(app, [*words, *extra])
        option = {"-m": "--method"}.get(extra[0], extra[0])
        assert result.exit_code == 2 and option in result.stderr and not Path("again.png").exists()
    assert runner.invoke(app, [*words, "--map", "map.npy", "--force", "--keep-failed"]).exit_code == 0
    Path("later.json").write_text(json.dumps({**json.loads(Path("run.json").read_text()), "leader": "run 99"}))
    later = runner.invoke(app, ["restore", "in.png", "later.png", "--settings", "later.json"])
    assert later.exit_code == 1 and "run 1" in later.stderr
