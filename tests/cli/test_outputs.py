"""No output takes the place of something else unasked."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leader import samples
from leader.cli import app
from leader.pictures import Picture, figures, write_picture
from tests.cheap_prior import photograph

runner = CliRunner()
RESTORE = ["restore", "--task", "inpaint", "--steps", "2", "--sigma", "0.1", "--keep-failed"]

SAME = [
    ["in.png", "in.png", "--mask", "known.png"],
    ["in.png", "./in.png", "--mask", "known.png"],
    ["in.png", "link.png", "--mask", "known.png"],
    ["in.png", "hard.png", "--mask", "known.png"],
    ["in.png", "out.png", "--mask", "known.png", "--figure", "known.png"],
    ["in.png", "out.png", "--mask", "known.png", "--map", "sub/../known.png"],
    ["in.png", "out.png", "--mask", "known.png", "--map", "out.png"],
    ["in.png", "out.png", "--mask", "known.png", "--map", "./out.png"],
    ["in.png", "out.png", "--mask", "known.png", "--map", "folder/out.png"],
    ["in.png", "out.png", "--mask", "known.png", "--figure", "f.png", "--map", "f.png"],
    ["in.png", "out.png", "--mask", "known.png", "--settings", "s.json", "--json", "s.json"],
    ["in.png", "out.png", "--mask", "known.png", "--prior", "model.safetensors", "--json", "model.safetensors"],
    ["in.png", "out.png", "--task", "deblur", "--kernel", "kernel.npy", "--map", "kernel.npy"],
]


@pytest.fixture
def linked(folder: Path) -> Path:
    Path("link.png").symlink_to("in.png")
    os.link("in.png", "hard.png")
    Path("sub").mkdir()
    Path("folder").symlink_to(".")
    Path("s.json").write_text("{}")
    Path("model.safetensors").write_bytes(b"weights")
    return folder


@pytest.mark.parametrize("arguments", SAME, ids=" ".join)
def test_one_file_by_two_names_is_refused(linked: Path, arguments: list[str]) -> None:
    """Even with --force."""
    before = {path.name: path.read_bytes() for path in linked.iterdir() if path.is_file()}
    result = runner.invoke(app, [*RESTORE, *arguments, "--force"])
    assert result.exit_code == 2 and "same file" in result.stderr, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    assert {path.name: path.read_bytes() for path in linked.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("option", ["OUT", "--map", "--figure", "--json"])
def test_what_exists_is_kept_unless_forced(folder: Path, option: str) -> None:
    Path("kept.png").write_bytes(b"kept")
    names = ["in.png", "kept.png"] if option == "OUT" else ["in.png", "out.png", option, "kept.png"]
    words = [*RESTORE, *names, "--mask", "known.png"]
    result = runner.invoke(app, words)
    assert result.exit_code == 2 and "already exists" in result.stderr and "--force" in result.stderr
    assert Path("kept.png").read_bytes() == b"kept" and not Path("out.png").exists()
    assert runner.invoke(app, [*words, "--force"]).exit_code == 0
    assert Path("kept.png").read_bytes() != b"kept"


def test_a_link_to_nothing_counts_as_a_file(folder: Path) -> None:
    Path("link.png").symlink_to("nothing.png")
    words = [*RESTORE, "in.png", "link.png", "--mask", "known.png"]
    assert "already exists" in runner.invoke(app, words).stderr
    assert runner.invoke(app, [*words, "--force"]).exit_code == 0
    assert not Path("nothing.png").exists() and not Path("link.png").is_symlink()


def test_degrade_keeps_what_exists(folder: Path) -> None:
    Path("kept.png").write_bytes(b"kept")
    words = ["degrade", "in.png", "kept.png", "--task", "sr"]
    result = runner.invoke(app, words)
    assert result.exit_code == 2 and "already exists" in result.stderr and Path("kept.png").read_bytes() == b"kept"
    assert runner.invoke(app, [*words, "--force"]).exit_code == 0
    assert Path("kept.png").read_bytes() != b"kept"
    Path("kernel.png").write_bytes(Path("known.png").read_bytes())
    for extra in (
        ["in.png", "in.png", "--task", "sr"],
        ["in.png", "known.png", "--task", "inpaint", "--mask", "known.png"],
        ["in.png", "kernel.png", "--task", "deblur", "--kernel", "kernel.png"],
    ):
        refused = runner.invoke(app, ["degrade", *extra, "--force"])
        assert refused.exit_code == 2 and "same file" in refused.stderr


def test_demo_writes_over_its_own_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_picture(tmp_path / "small.png", Picture(photograph(128, 160).permute(1, 2, 0).numpy()))
    monkeypatch.setattr(samples, "demo_photograph", lambda: nullcontext(tmp_path / "small.png"))
    for name in ("draw_map", "draw_side_by_side", "draw_path"):
        monkeypatch.setattr(figures, name, lambda path, *_: path.write_bytes(b"drawn"))
    out = tmp_path / "out"
    words = ["demo", "--out", str(out), "--steps", "1"]
    assert runner.invoke(app, words).exit_code == 0
    (out / "notes.txt").write_text("mine")
    assert runner.invoke(app, words).exit_code == 0, "its own folder"
    assert (out / "notes.txt").read_text() == "mine"
    (out / "run.json").unlink()
    (out / "restored.png").write_bytes(b"mine")
    result = runner.invoke(app, words)
    assert result.exit_code == 2 and "already exists" in result.stderr
    assert (out / "restored.png").read_bytes() == b"mine"
    assert runner.invoke(app, [*words, "--force"]).exit_code == 0
    assert (out / "restored.png").read_bytes() != b"mine"
