"""The command line: what it writes and prints, and that wrong input ends in one sentence, exit 1 or 2, and "
"no file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from leader.cli import app
from leader.cli.progress import WorkLeft
from leader.pictures import Picture, read_picture, write_picture
from leader.priors import loading
from leader.restoration.restore import prepare
from tests.cheap_prior import CheapPrior, photograph
from tests.pictures.test_pictures import animated_gif, header_only, truncated_jpeg

runner = CliRunner()


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """`embedded` is the cheap prior here; other names go their usual way."""
    real = loading.load_prior
    monkeypatch.setattr(
        loading, "load_prior", lambda name, **options: CheapPrior() if name == "embedded" else real(name, **options)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_picture(tmp_path / "in.png", Picture(photograph(24, 32).permute(1, 2, 0).numpy()))
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.jpg").write_bytes(truncated_jpeg())
    (tmp_path / "huge.png").write_bytes(header_only(100_000, 100_000))
    (tmp_path / "moving.gif").write_bytes(animated_gif())
    write_picture(tmp_path / "dot.png", Picture(np.zeros((1, 1, 3), np.float32)))
    write_picture(tmp_path / "mask.png", Picture(np.ones((9, 9, 1), np.float32)))
    np.save(tmp_path / "zeros.npy", np.zeros((3, 3)))
    np.save(tmp_path / "nan.npy", np.full((3, 3), np.nan))
    (tmp_path / "bad.toml").write_text("= nonsense")
    return tmp_path


BAD = [
    (["none.png", "out.png"], 1, "no file"),
    (["text.png", "out.png"], 1, "not a picture"),
    (["cut.jpg", "out.png"], 1, "damaged"),
    (["dot.png", "out.png"], 1, "1 x 1 pixels"),
    (["empty.png", "out.png"], 1, "is empty"),
    (["huge.png", "out.png"], 1, "at most"),
    (["moving.gif", "out.png"], 1, "several frames"),
    (["in.png", "out.png", "--task", "deblurr"], 2, "did you mean 'deblur'"),
    (["in.png", "out.png", "--method", "ddrmm"], 2, "did you mean 'ddrm'"),
    (["in.png", "out.png", "--plugin", "sapt"], 2, "did you mean 'satp'"),
    (["in.png", "out.png", "--prior", "imagenet"], 2, "did you mean 'imagenet-256'"),
    (["in.png", "out.png", "--prior", "model.pt"], 1, "does not exist"),
    (["in.png", "out.png", "--sigma", "-0.1"], 2, ">= 0"),
    (["in.png", "out.png", "--sigma", "inf"], 2, "finite"),
    (["in.png", "out.png", "--sigma", "nan"], 2, "finite"),
    (["in.png", "out.png", "--sigma", "loud"], 2, "must be a number; found 'loud'"),
    (["in.png", "out.png", "--task", "deblur", "--kernel", "zeros.npy"], 1, "positive sum"),
    (["in.png", "out.png", "--task", "deblur", "--kernel", "nan.npy"], 1, "NaN"),
    (["in.png", "out.png", "--task", "deblur", "--kernel", "gaussian:wide"], 2, "number was expected"),
    (["in.png", "out.png", "--task", "inpaint", "--mask", "mask.png"], 1, "same size"),
    (["in.png", "out.png", "--steps", "0"], 1, "number of steps"),
    (["in.png", "out.png", "--budget", "-1"], 2, "budget"),
    (["in.png", "out.png", "--budget", "1", "--plugin", "none"], 2, "satp"),
    (["in.png", "out.png", "--settings", "bad.toml"], 1, "not a valid TOML"),
    (["in.png", "none/out.png"], 1, "does not exist"),
    (["in.png", "."], 2, "written as"),
    (["in.png", "out.xyz"], 2, "written as"),
    (["in.png", "in.png"], 2, "named twice"),
    (["in.png", "out.png", "--map", "out.png"], 2, "named twice"),
    (["in.png", "out.png", "--map", "map.xyz"], 2, "figures are written"),
    (["in.png"], 2, "OUT"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "says"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else None
)
def test_bad_input(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, says: str) -> None:
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = runner.invoke(app, ["restore", "--sigma", "0.1", "--steps", "2", *arguments])
    assert result.exit_code == code, result.output
    assert says in " ".join(result.stderr.split()), result.stderr
    assert "Traceback" not in result.stderr
    if "Usage:" not in result.stderr:
        assert len(result.stderr.strip().splitlines()) == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_failing_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    before = sorted(path.name for path in folder.iterdir())
    result = runner.invoke(app, ["restore", str(folder / "in.png"), str(folder / "out.png"), "--steps", "2", "--sigma", "0"])
    assert result.exit_code == 1 and "could not be written" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


def test_interruption(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CheapPrior, "_predict", interrupt)
    result = runner.invoke(app, ["restore", str(folder / "in.png"), str(folder / "out.png"), "--sigma", "0"])
    assert result.exit_code == 130 and not (folder / "out.png").exists()


def test_restore_writes_everything_asked_for(folder: Path) -> None:
    names = ["out.png", "map.png", "raw.npy", "figure.png", "run.json"]
    out, drawn, raw, figure, summary = (folder / name for name in names)
    base = ["restore", str(folder / "in.png"), str(out), "--task", "sr", "--factor", "2", "--steps", "3"]
    result = runner.invoke(app, [*base, "--map", str(drawn), "--figure", str(figure), "--json", str(summary)])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(out), str(drawn), str(figure), str(summary)]
    assert "estimated from the picture" in result.stderr
    assert read_picture(out).size == (64, 48)
    content = json.loads(summary.read_text())
    assert content["sigma_from"] == "estimated" and content["network"]["calls"] == len(content["trace"])
    assert [entry["name"] for entry in content["settings"]["plugins"]] == ["ucpm", "satp"]
    assert runner.invoke(app, [*base, "--map", str(raw)]).exit_code == 0
    assert np.load(raw).shape == (48, 64)


def test_settings_and_budget_reach_the_run(folder: Path) -> None:
    (folder / "s.toml").write_text("eta = 0.5\n[satp]\neta = 3.0\n")
    arguments = ["restore", str(folder / "in.png"), str(folder / "out.png"), "--steps", "3", "--sigma", "0.1"]
    arguments += ["--settings", str(folder / "s.toml"), "--budget", "0.05", "--json", str(folder / "run.json")]
    assert runner.invoke(app, arguments).exit_code == 0
    settings = json.loads((folder / "run.json").read_text())["settings"]
    satp = next(entry for entry in settings["plugins"] if entry["name"] == "satp")
    assert settings["method"]["eta"] == 0.5 and satp["eta"] == 3.0 and satp["budget"] == 0.05


def test_degrade_then_restore(folder: Path) -> None:
    for task, extra in (("cs", []), ("inpaint", ["--mask", "random:0.5"]), ("deblur-motion", ["--kernel", "motion:2"])):
        write_picture(folder / "square.png", Picture(photograph(64, 64).permute(1, 2, 0).numpy()))
        made = runner.invoke(
            app, ["degrade", str(folder / "square.png"), str(folder / "m.npz"), "--task", task, "--sigma", "0.05", *extra]
        )
        assert made.exit_code == 0, made.output
        done = runner.invoke(app, ["restore", str(folder / "m.npz"), str(folder / "out.png"), "--steps", "2"])
        assert done.exit_code == 0, done.output
        assert "0.0500 (from the container)" in done.stderr
    refused = runner.invoke(app, ["degrade", str(folder / "in.png"), str(folder / "no.png"), "--task", "cs"])
    assert refused.exit_code == 2 and not (folder / "no.png").exists()


def test_demo(tmp_path: Path) -> None:
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out"), "--steps", "3"])
    assert result.exit_code == 0, result.output
    names = {"degraded.png", "restored.png", "uncertainty.png", "figure.png", "path.png"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert {Path(line).name for line in result.stdout.split()} == names


@pytest.mark.parametrize("kind", ["methods", "tasks", "plugins", "priors"])
def test_lists_and_details(kind: str) -> None:
    listed = runner.invoke(app, [kind])
    assert listed.exit_code == 0
    names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
    assert len(names) >= 3
    for name in names:
        shown = runner.invoke(app, [kind, name])
        assert shown.exit_code == 0 and name in shown.stdout
    wrong = runner.invoke(app, [kind, names[0] + "x"])
    assert wrong.exit_code == 2 and f"did you mean '{names[0]}'" in wrong.stderr


def test_help_has_examples() -> None:
    for command in ("restore", "degrade"):
        shown = runner.invoke(app, [command, "--help"])
        assert shown.exit_code == 0 and f"leader {command}" in shown.stdout


def test_time_left_follows_the_work() -> None:
    """A prior whose late steps cost 100 times as much: the estimate after the cheap ones is still right."""

    class Uneven(CheapPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return height * width * (1.0 if t < 500 else 0.01)

    ready = prepare(photograph(16, 16), "denoise", sigma=0.1, prior=Uneven(), steps=10, plugins=())
    now = [0.0]
    left = WorkLeft(ready, clock=lambda: now[0])
    assert left.seconds_left is None
    pixels = 16 * 16
    costs = [cost + 0.3 * pixels for _, cost in ready.work()]  # not quite the ratio the bar starts from
    walk = ready.sampler.iterate(ready.problem)
    for done in range(1, 6):
        now[0] += costs[done - 1] / pixels  # a clock that ticks with the work
        left.step(next(walk))
        assert left.seconds_left == pytest.approx(sum(costs[done:]) / pixels, rel=0.5)
    assert left.done < 0.3
    for step in walk:
        now[0] += costs[done] / pixels
        done += 1
        left.step(step)
        assert left.seconds_left == pytest.approx(sum(costs[done:]) / pixels, rel=0.25)
    assert left.done == 1
