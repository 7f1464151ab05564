"""Wrong input ends in one sentence, exit 1 or 2, and no file; no output takes the place of something else unasked."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from leader import samples
from leader.cli import app
from leader.pictures import Picture, figures, write_picture
from leader.pictures.container import Measurement, write_container
from tests.cheap_prior import photograph

runner = CliRunner()
LONG = "x" * 296 + ".png"
DEBLUR = ["--task", "deblur"]

BAD = [
    (["none.png", "out.png"], 1, "no file"),
    (["text.png", "out.png"], 1, "not a picture"),
    (["dot.png", "out.png"], 1, "1 x 1 pixels"),
    (["empty.png", "out.png"], 1, "is empty"),
    (["huge.png", "out.png"], 1, "at most"),
    (["fifo.png", "out.png"], 1, "pipe"),
    (["in.png", "out.png", "--task", "deblurr"], 2, "did you mean 'deblur'"),
    (["in.png", "out.png", "--method", "ddrmm"], 2, "did you mean 'ddrm'"),
    (["in.png", "out.png", "--plugin", "none", "--plugin", "satp"], 2, "stands alone"),
    (["in.png", "out.png", "--prior", "imagenet"], 2, "did you mean 'imagenet-256'"),
    (["in.png", "out.png", "--prior", "model.pt"], 1, "does not exist"),
    (["in.png", "out.png", "--sigma", "-0.1"], 2, ">= 0"),
    (["in.png", "out.png", "--sigma", "nan"], 2, "finite"),
    (["in.png", "out.png", "--threads", "1025"], 2, "1024"),
    (["in.png", "out.png", "--device", "cuda:7"], 1, "cuda"),
    (["in.png", "out.png", "--device", "toaster"], 1, "toaster"),
    (["in.png", "out.png", "--seed", "-1"], 2, "--seed"),
    (["in.png", "out.png", "--sigma", "loud"], 2, "number"),
    (["in.png", "out.png", *DEBLUR, "--kernel", "zeros.npy"], 1, "positive sum"),
    (["in.png", "out.png", "--task", "inpaint", "--mask", "mask.png"], 1, "same size"),
    (["in.png", "out.png", "--steps", "0"], 1, "steps"),
    (["in.png", "out.png", "--budget", "-1"], 2, "budget"),
    (["in.png", "out.png", "--budget", "1", "--plugin", "none"], 2, "satp"),
    (["in.png", "none/out.png"], 1, "does not exist"),
    (["in.png", "."], 2, "written as"),
    (["in.png", "out.xyz"], 2, "written as"),
    (["in.png", LONG], 1, "300 bytes"),
    (["in.png", "loop.png"], 1, "symbolic link to itself"),
    (["in.png", "out.png", "--json", "fifo.json"], 1, "pipe"),
    (["in.png", "out.png", "--map", "map.png", "--map", "map.xyz"], 2, "figures are written"),
    (["in.png", "out.png", "--figure", "both.xyz"], 2, "figures are written"),
    ([".", "out.png", "--task", "denoise"], 2, "IN (.) is a folder, so OUT is one too; found the name of a picture, out.png"),
    (["", "out.png", "--task", "denoise"], 2, "IN (.) is a folder"),
    (["in.png", "a.png", "b.png"], 2, "one picture or folder IN and one name OUT; found 3 names"),
    (["in.png"], 2, "OUT"),
    (["in.png", "out.png", "--settings", "none.toml"], 1, "no file"),
    (["in.png", "out.png", "--settings", "."], 1, "folder"),
]

SETTINGS: list[tuple[str, bytes, str]] = [
    ("s.toml", b"= nonsense", "not valid TOML"),
    ("s.json", b"{", "not valid JSON"),
    ("s.json", b"[1]", "names and values"),
    ("s.toml", b"name = 'caf\xe9'", "UTF-8"),
    ("s.json", b"[" * 100_000, "nested too deeply"),
    ("s.toml", b"a = " + b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    ("s.json", b'{"satp": "x"}', "table"),
    ("s.json", b'{"satp": {"budget": "x"}}', "budget"),
    ("s.json", b'{"self": 1}', "self"),
    ("s.json", b'{"eta": null}', "null"),
    ("s.json", b'{"steps": 3}', "--steps"),
    ("s.json", b'{"leader": "run 99"}', "run 1"),
]


def refused(arguments: list[str], code: int | tuple[int, ...], says: str) -> None:
    before = _content()
    result = runner.invoke(app, ["restore", *arguments])
    assert result.exit_code in ((code,) if isinstance(code, int) else code), result.output
    assert says in " ".join(result.stderr.split()), result.stderr
    assert "Traceback" not in result.stderr
    if "Usage:" not in result.stderr:
        assert len(result.stderr.strip().splitlines()) == 1
    assert _content() == before


def _content() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


@pytest.mark.parametrize(("arguments", "code", "says"), BAD, ids=[" ".join(row[0])[:60] for row in BAD])
def test_bad_words(folder: Path, arguments: list[str], code: int, says: str) -> None:
    os.mkfifo("fifo.png")
    os.mkfifo("fifo.json")
    Path("loop.png").symlink_to("loop.png")
    Path("loop").symlink_to("loop")
    refused(["--task", "sr", "--sigma", "0.1", "--steps", "2", *arguments], code, says)


@pytest.mark.parametrize(("name", "content", "says"), SETTINGS, ids=[str(row[1][:30]) for row in SETTINGS])
def test_bad_settings(folder: Path, name: str, content: bytes, says: str) -> None:
    Path(name).write_bytes(content)
    words = ["in.png", "out.png", "--task", "sr", "--sigma", "0.1", "--steps", "2", "--settings", name]
    refused(words, (1, 2), says)


def test_a_list_given_as_a_number_is_refused(folder: Path) -> None:
    """Of a plug-in's setting that holds several numbers."""
    Path("set.toml").write_text("[direct]\nbefore = 120\n")
    words = ["in.png", "out.png", "--task", "denoise", "--sigma", "0.1", "--plugin", "direct", "--settings", "set.toml"]
    refused(words, 1, "a list")
    Path("set.toml").write_text('[direct]\nbefore = [150, "x"]\n')
    refused(words, 1, "a list")


def test_a_side_that_the_format_cannot_hold_is_refused_before_the_work(folder: Path) -> None:
    Image.new("RGB", (16_400, 24), (90, 120, 200)).save("wide.png")
    refused(["wide.png", "out.webp", "--task", "denoise", "--sigma", "0.1"], 1, "16400 x 24")


def test_a_picture_too_small_to_tell_its_noise_has_none(folder: Path) -> None:
    Image.open("in.png").crop((3, 2, 22, 19)).save("icon.png")
    result = runner.invoke(app, ["restore", "icon.png", "out.png", "--task", "denoise"])
    assert result.exit_code == 0 and "assumed to have none" in result.stderr
    assert (np.asarray(Image.open("out.png")) == np.asarray(Image.open("icon.png"))).all()
    larger = runner.invoke(
        app, ["restore", "icon.png", "large.png", "--task", "sr", "--factor", "2", "--steps", "2", "--keep-failed"]
    )
    assert larger.exit_code == 0 and Image.open("large.png").size == (38, 34)


def test_every_pixel_s_derivative_of_a_photograph_is_refused_and_that_of_an_icon_is_not(folder: Path) -> None:
    Image.new("RGB", (160, 120), (90, 120, 200)).save("photo.png")
    words = ["--task", "denoise", "--sigma", "0.1", "--steps", "1", "--method", "ddnm", "--plugin", "satp"]
    words += ["--estimator", "exact"]
    refused(["photo.png", "out.png", *words], 1, "57600 derivatives")
    Image.open("in.png").resize((12, 9)).save("dots.png")
    assert runner.invoke(app, ["restore", "dots.png", "out.png", *words, "--keep-failed"]).exit_code == 0


@pytest.mark.parametrize("options", [{"factor": 2}, {"factor": 2, "down": "average"}, {"factor": 3, "down": "lanczos"}, None])
def test_an_operator_whose_decomposition_would_not_end_is_refused(folder: Path, options: dict[str, Any] | None) -> None:
    """A container may name any size; so may a picture that is long and thin."""
    task = "deblur-gaussian" if options is None else "sr"
    write_container(Path("long.npz"), Measurement(task, torch.zeros(1, 1, 8, 20_400), (1, 16, 40_800), 0.1, options or {}))
    refused(["long.npz", "out.png"], 1, "40800 pixels")


def test_a_name_that_is_no_utf_8(folder: Path) -> None:
    refused(["in.png", os.fsdecode(b"\xff.png"), "--task", "sr", "--sigma", "0.1"], 1, "UTF-8")


def test_the_task_must_be_said_where_nothing_is_found(folder: Path) -> None:
    result = runner.invoke(app, ["restore", "in.png", "out.png"])
    assert result.exit_code == 0 and not Path("out.png").exists()
    for name in ("Nothing was found to repair in in.png", "a task", "sr", "deblur", "inpaint", "denoise"):
        assert name in result.stderr
    Path("many").mkdir()
    several = runner.invoke(app, ["restore", "many", "out"])
    assert several.exit_code == 2 and "leader restore many out --task sr" in several.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(["restore", "LONG", "out.png", "--task", "sr"], ["diagnose", "LONG"]),
        *(["degrade", "LONG", "out.png", "--task", "sr"], ["bench", "run", "LONG", "--dry-run"]),
        *(["bench", "run", "table1", "--dry-run", "--images", "LONG"], ["fit-variance", "--images", "LONG"]),
    ],
)
def test_names_that_no_file_can_have(folder: Path, words: list[str]) -> None:
    result = runner.invoke(app, ["n" * 300 if word == "LONG" else word for word in words])
    assert result.exit_code in (1, 2) and "bug" not in result.output, result.output


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
    with monkeypatch.context() as patch:
        patch.setattr(figures, "draw_path", None)
        assert runner.invoke(app, words).exit_code == 70
    assert runner.invoke(app, words).exit_code == 0, "one that was broken off can be started again"
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
