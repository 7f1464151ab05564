"""Every option of every command reaches what it is for, with a value that is not the default."""

import json
import os
import socket
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from leader.bench import figures, tables
from leader.bench import run as bench_run
from leader.cli import app
from leader.cli.options import option_names
from leader.cli.trust import make_run_engine
from leader.engines import ProcessEngine, count_cores
from leader.engines.ray import RayEngine
from leader.errors import LeaderError
from leader.presets.stored import read_stored, stored_file
from leader.priors import download, inspection, loading
from leader.priors.pyramid import embedded_file
from leader.restoration import restore
from leader.restoration.request import RestoreRequest
from leader.train import adapt, pruning, publish, trust_fit, trust_runs, variance
from leader.train import run as train_run
from leader.train import tables as train_tables
from leader.trust import referee
from leader.trust.calibration import LEVELS
from leader.web import server
from leader.web.reach import Reach
from tests.cheap_prior import CheapPrior
from tests.train.pictures import write_pictures

runner = CliRunner()


class EnoughError(LeaderError):
    """Ends a command where its callee was reached."""


class Reached:
    """Stands for a callee: keeps what it was given, and ends the command."""

    def __init__(self) -> None:
        self.words: tuple[Any, ...] = ()
        self.options: dict[str, Any] = {}

    def __call__(self, *words: Any, **options: Any) -> Any:
        self.words, self.options = words, options
        raise EnoughError("enough")


@pytest.fixture
def reached() -> Reached:
    return Reached()


def run(*words: object) -> None:
    result = runner.invoke(app, [str(word) for word in words])
    assert "enough" in result.output, result.output


def test_restore(folder: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    monkeypatch.setattr(restore, "prepare", reached)
    words = {item.name: item.metadata["word"] for item in fields(RestoreRequest) if "word" in item.metadata}
    own: dict[str, Any] = {"plugins": ("satp",)}  # which the budget needs; every other choice gets a value of its own
    for number, name in enumerate(words):
        if name not in ("plugins", "budget", "estimator", "jpeg", "clipped"):  # the last four become settings, or have no value
            own[name] = {str: f"word{number}", int: 3 + number, float: 1 + number / 64}[words[name].kind]
    typed = [part for name, value in own.items() for part in (option_names(name, words[name])[0], value)]
    typed[1] = "satp"
    Path("S.JSON").write_text('{"eta": 0.5}')
    apart = ["--budget", "0.125", "--estimator", "head", "--no-jpeg", "--no-clipped", "--settings", "S.JSON"]
    run("restore", "in.png", "out.png", *typed, *apart)
    settings = {"eta": 0.5, "satp": {"budget": 0.125}, "estimator": "head"}
    assert reached.words == (Path("in.png"),)
    apart_from_words = {"settings": settings, "jpeg": False, "clipped": False}
    assert reached.options == {**own, **apart_from_words}


def test_web(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def serve(*words: Any) -> None:
        seen.append((*words, os.environ.get("LEADER_WEB_AUTH")))

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setenv("LEADER_WEB_AUTH", "ann:pass:word")
    words = ["--host", "localhost", "--port", "49213", "--max-megabytes", "3", "--max-pixels", "500", "--queue", "7"]
    words += ["--time-limit", "11", "--keep", "13", "--jobs", "5", "--threads", "9"]
    words += ["--name", "a.example", "--name", "b.example", "--behind-proxy"]
    result = runner.invoke(app, ["web", *words])
    assert result.exit_code == 0, result.output
    ((reach, port, limits, auth, kept),) = seen
    assert (reach, port, auth) == (Reach("localhost", ("a.example", "b.example"), True), 49213, ("ann", "pass:word"))
    assert kept is None, "a process that is started here, or a report of a crash, would hold the password"
    found = (limits.upload_bytes, limits.pixels, limits.waiting, limits.seconds, limits.keep_seconds)
    assert found == (3 << 20, 500, 7, 11, 13) and (limits.jobs, limits.threads) == (5, 9)
    assert "Open http://localhost:49213 " in result.output
    for host, shown in (("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]")):
        if host == "0.0.0.0" or socket.has_dualstack_ipv6():
            everywhere = runner.invoke(app, ["web", "--host", host, "--port", "49215"])
            assert f"Open http://{shown}:49215 " in everywhere.output and seen.pop()[0].host == host
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = runner.invoke(app, ["web", "--port", str(taken.getsockname()[1])])
        assert refused.exit_code == 1 and "choose another --port" in refused.output and "Open http" not in refused.output
    for wrong in (["--auth", "ann"], ["--max-megabytes", "nan"]):
        assert runner.invoke(app, ["web", *wrong]).exit_code == 2 and len(seen) == 1
    assert runner.invoke(app, ["web", "--name", "http://a.example"]).exit_code == 2 and len(seen) == 1


def test_web_without_its_extra_says_so_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = runner.invoke(app, ["web", "--port", "49214"])
    assert result.exit_code == 1 and "leader-ir[web]" in result.output and "Open http" not in result.output


BENCH = ["--form", "full", "--fit", "square", "--count", "2", "--size", "64", "--prior", "other", "--device", "cuda:1"]


def check_bench(experiment: Any, pictures: Path) -> None:
    """Every option of BENCH has reached the experiment."""
    form = experiment.form
    assert experiment.name == "table1-full"
    assert (form.images, form.fit, form.count, form.size) == (str(pictures), "square", 2, 64)
    assert (form.prior, form.device, form.settings) == ("other", "cuda:1", {"satp-paper": {"eta": 0.25}})


def test_bench_shows_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """A dry run, the table, the figure and the comparison: the same form, and the records that are taken."""
    pictures = write_pictures(tmp_path / "photos", count=3)
    (tmp_path / "satp.toml").write_text("satp-paper = { eta = 0.25 }")
    common = ["table1", *BENCH, "--images", pictures, "--settings", tmp_path / "satp.toml", "--records", tmp_path / "kept"]
    some = ["--rows", "DDNM", "--tasks", "cs"]
    asked: list[tuple[Any, Any, bool]] = []

    def gather(experiment: Any, store: Any, *, partial: bool) -> Any:
        asked.append((experiment, store, partial))
        return SimpleNamespace(places={}, earlier={"ddnm": 2})

    monkeypatch.setattr(bench_run, "gather", gather)
    for module, name in (
        (bench_run, "dry_run"),
        (tables, "render_table"),
        (tables, "render_comparison"),
        (figures, "draw_figure"),
    ):
        monkeypatch.setattr(module, name, reached)
    run("bench", "run", *common, *some, "--dry-run")
    check_bench(reached.words[0], pictures)
    run("bench", "table", *common, *some, "--partial", "--format", "latex")
    assert reached.words[1] == "latex"
    for chosen in (reached.words[0].experiment, asked[0][0]):
        check_bench(chosen, pictures)
        assert {"DDNM" in row.label for row in chosen.rows} == {True} and [task.name for task in chosen.tasks] == ["cs"]
    run("bench", "figure", *common, "--partial", "--out", tmp_path / "f.svg")
    assert reached.words[0] is asked[1][0] and reached.words[3] == tmp_path / "f.svg"
    run("bench", "compare", *common, "--partial", "DDNM + EquS+", "DDRM")
    assert reached.words[1:] == ("DDNM + EquS+", "DDRM")
    run("bench", "compare", *common, "DDNM + EquS+")
    assert reached.words[2] == "DDNM"
    run("bench", "figure", *common)
    assert [partial for *_, partial in asked] == [True, True, True, False, False]
    for experiment, store, _ in asked:
        check_bench(experiment, pictures)
        assert store.path.is_relative_to(tmp_path / "kept")
    monkeypatch.setattr(tables, "render_table", lambda *_: "a table\n")
    result = runner.invoke(app, ["bench", "table", *map(str, common), "--out", str(tmp_path / "t.md")])
    assert (
        "2 records were made by another revision of 'ddnm'" in result.stderr and (tmp_path / "t.md").read_text() == "a table\n"
    )
    assert not asked[-1][2]


def test_bench_run_goes_where_it_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    monkeypatch.setattr(bench_run, "run_experiment", reached)
    common = ["--records", tmp_path, "--count", "1"]
    run("bench", "run", "table1", *common, "--engine", "ray", "--address", "auto", "--tasks", "cs")
    experiment, store, ray = reached.words
    assert isinstance(ray, RayEngine) and (ray.workers, ray.address) == (2, "auto")
    assert [task.name for task in experiment.tasks] == ["cs"] and store.path.parent == tmp_path
    assert reached.options == {"alone": None, "prune": False}
    run("bench", "run", "table1", *common, "--workers", "3", "--rows", "DDNM", "--prune")
    assert isinstance(reached.words[2], ProcessEngine) and reached.words[2].workers == 3 and reached.options["prune"]
    assert {"DDNM" in cell.row for cell in reached.words[0].cells()} == {True}
    photos = write_pictures(tmp_path / "photos", count=1)
    for words, fit in (([], "half"), (["--fit", "square"], "square"), (["--form", "paper", "--device", "cpu"], "host")):
        words = ["--images", str(photos), *words]
        run("bench", "run", "table1", *common, *words)
        assert reached.words[0].form.fit == fit
    run("bench", "run", "table1", *common, "--images", "test")
    assert reached.words[0].form.fit != "half", "the shipped ones are at half size already"
    run("bench", "run", "table4", *common)
    assert reached.words[0].form.memory and reached.words[2].fresh, "peak memory: a process for every run"
    (tmp_path / "timed.toml").write_text('tasks = ["sr"]\n[[rows]]\nmethods = ["ddnm"]\n[form.small]\ntimed = 1\n')
    run("bench", "run", tmp_path / "timed.toml", *common)
    assert reached.options["alone"].workers == 1 and not reached.words[2].fresh
    with monkeypatch.context() as patch:
        patch.setattr(loading, "device_named", lambda name: SimpleNamespace(type="cuda"))
        patch.setattr("torch.cuda.device_count", lambda: 5)
        run("bench", "run", "table1", *common)
        assert reached.words[2].workers == 5, "one for each GPU"
    monkeypatch.setattr(bench_run, "run_experiment", lambda *_, **__: bench_run.Outcome(1, 2, 3, "too large"))
    failed = runner.invoke(app, ["bench", "run", "table1", *map(str, common)])
    assert failed.exit_code == 1 and "1 cells run, 2 found, 3 failed" in failed.stderr and "too large" in failed.stderr


def test_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    import torch

    monkeypatch.setattr(train_run, "train", reached)
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    words = ["--validation", tmp_path, "--start", "scratch", "--start-ffdnet", "f.pth", "--hours", "0.5"]
    words += ["--parts", "main, share"]
    words += ["--rate", "0.25", "--expert-rate", "0.5", "--share-rate", "0.75", "--batch", "3", "--threads", "2", "--seed", "9"]
    run("train", "--images", tmp_path, "--state", "run", *words, "--device", "cuda", "--autocast", "--compile")
    (config,) = reached.words
    assert (config.images, config.state, config.validation) == (tmp_path, Path("run"), tmp_path)
    assert (config.start_pyramid, config.start_ffdnet, config.seconds) == (None, Path("f.pth"), 1800)
    assert config.parts == ("main", "share") and (config.main.batch, config.expert.batch) == (3, 3)
    assert (config.rate, config.expert_rate, config.share_rate) == (0.25, 0.5, 0.75)
    assert (config.seed, config.device, config.autocast, config.compile, threads) == (9, "cuda", True, True, [2])
    (tmp_path / "mine.safetensors").touch()
    for start, file in (("embedded", embedded_file()), (tmp_path / "mine.safetensors", tmp_path / "mine.safetensors")):
        run("train", "--images", tmp_path, "--state", "run", "--start", start)
        assert reached.words[0].start_pyramid == file


def test_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    monkeypatch.setattr(publish, "publish_state", reached)
    for name in ("state", "images", "calibration"):
        (tmp_path / name).mkdir()
    given = [tmp_path / name for name in ("state", "images", "calibration", "x.safetensors")]
    run("publish", "--state", given[0], "--images", given[1], "--calibration", given[2], "--out", given[3])
    assert list(reached.words) == given


def test_fit_variance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    monkeypatch.setattr(variance, "fit_variance", reached)
    names: list[tuple[str, dict[str, Any]]] = []

    def load(name: str, **options: Any) -> CheapPrior:
        names.append((name, options))
        return CheapPrior()

    monkeypatch.setattr(loading, "load_prior", load)
    out = tmp_path / "x.variance.safetensors"
    run("fit-variance", "--prior", "other", "--images", tmp_path, "--out", out, "--minutes", "2.5", "--seed", "11")
    _, images, target, settings = reached.words
    assert (images, target, settings.seconds, settings.seed) == (tmp_path, out, 150, 11)
    assert names == [("other", {"whole": True, "head": False})], "whatever head lies beside it"
    monkeypatch.setattr(variance, "fit_variance", lambda *_, **__: ("the head", None))
    monkeypatch.setattr(train_tables, "fit_tables", reached)
    (tmp_path / "mine.pt").touch()
    run("fit-variance", "--prior", tmp_path / "mine.pt", "--images", tmp_path, "--out", out, "--minutes", "2.5")
    assert reached.words[1:] == ("the head", tmp_path, tmp_path / "x", 75)
    report = SimpleNamespace(answers=12, steps=34, seconds=56.4, ratio=0.875)
    monkeypatch.setattr(variance, "fit_variance", lambda *_, **__: ("the head", report))
    for crops, said in ((7, "The spectrum of 7 crops"), (0, "no time for a spectrum")):
        monkeypatch.setattr(train_tables, "fit_tables", lambda *_, crops=crops: crops)
        done = runner.invoke(app, ["fit-variance", "--prior", "other", "--images", str(tmp_path), "--out", str(out)])
        assert done.exit_code == 0 and said in done.stderr and done.stdout.strip() == str(out), done.output
        told = (
            "12 answers of the network and 34 steps in 56 s; squared error over predicted variance on held-out pictures: 0.88."
        )
        assert told in done.stderr


def test_fit_trust_and_calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    pictures = write_pictures(tmp_path / "photos", count=3)
    (tmp_path / "other").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "load_prior", lambda name: CheapPrior())
    monkeypatch.setattr(trust_runs, "make_runs", reached)
    asked: list[tuple[Any, ...]] = []
    for name in ("training_cases", "every_family"):
        monkeypatch.setattr(trust_runs, name, lambda *words: asked.append(words))
    file = tmp_path / f"x{referee.SUFFIX}"
    common = ["--prior", "other", "--images", pictures, "--store", tmp_path / "kept", "--jobs", "3"]
    run("fit-trust", *common, "--out", file, "--seed", "5")
    _, images, _, store, _, engine, source = reached.words
    assert (images, store, asked[0][0], asked[0][2]) == (pictures, tmp_path / "kept", 3, 5)
    assert source == str(tmp_path / "other"), "which workers find from elsewhere"
    assert isinstance(engine, ProcessEngine) and engine.workers == 3
    file.touch()
    monkeypatch.setattr(referee.Referee, "load", lambda path: path)
    run("calibrate", *common, "--referee", file, "--crops", "2")
    assert asked[1] == (3, 2) and reached.words[3] == tmp_path / "kept"


def test_adapt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    plan = SimpleNamespace(home=tmp_path / "x")
    asked: list[tuple[Any, ...]] = []

    def plan_adaptation(*words: Any) -> Any:
        asked.append(words)
        return plan

    monkeypatch.setattr(adapt, "plan_adaptation", plan_adaptation)
    monkeypatch.setattr(adapt, "adapt", reached)
    run("adapt", "mine:Net", "--data", tmp_path, "--minutes", "2.5", "--seed", "7", "--jobs", "3", "--again")
    assert asked[0][:4] == ("mine:Net", tmp_path, 150.0, 7)
    given, make_workers, _, again = reached.words
    assert (
        given is plan and again is True and (make_workers().workers, make_workers().threads) == (3, max(1, count_cores() // 3))
    )
    for jobs in (None, 0):
        assert make_run_engine(jobs) is None, "this process has the prior already"
    monkeypatch.setattr(adapt, "adapt", lambda *_: None)
    done = runner.invoke(app, ["adapt", "mine:Net", "--data", str(tmp_path)])
    assert done.stdout.strip() == str(plan.home) and "--prior mine:Net" in done.stderr
    assert runner.invoke(app, ["adapt", "mine:Net", "--data", str(tmp_path), "--minutes", "0"]).exit_code == 2


def test_calibrate_satp_says_what_it_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    pictures = write_pictures(tmp_path / "photos", count=3)
    loads: list[tuple[str, str]] = []

    def load(name: str, device: str) -> CheapPrior:
        loads.append((name, device))
        return CheapPrior()

    monkeypatch.setattr(loading, "load_prior", load)
    monkeypatch.setattr(pruning, "curves", reached)
    words = ["--prior", "other", "--estimator", "noise-energy", "--count", "2", "--size", "48"]
    result = runner.invoke(app, ["calibrate-satp", "--images", str(pictures), *words])
    assert "6 runs of 100 steps will take about" in result.output
    _, crops, estimator = reached.words
    assert crops.shape == (2, 3, 48, 48) and estimator == "noise-energy"
    middle = Image.open(pictures / "0.png").crop((32, 52, 128, 148)).resize((48, 48), Image.Resampling.BOX)
    assert np.abs(crops[0].permute(1, 2, 0).numpy() - np.asarray(middle) / 255).mean() < 0.03, "at half size"
    monkeypatch.setattr(CheapPrior, "size", (64, 40))
    monkeypatch.setattr(pruning, "predict_seconds", lambda *_: 0.0)
    words = ["calibrate-satp", "--images", str(pictures), "--device", "meta"]
    runner.invoke(app, words)
    assert reached.words[1].shape == (3, 3, 40, 40) and reached.words[1].is_meta, "as large as the network takes, where it is"
    assert loads == [("other", "cpu"), ("embedded", "meta")]
    monkeypatch.setattr(pruning, "curves", lambda *_, **__: [])
    monkeypatch.setattr(pruning, "calibrate_eta", lambda _: pruning.Calibrated(0.25, dict.fromkeys(pruning.RANGES, 0.0)))
    refused = runner.invoke(app, [*words, "--store"])
    assert refused.exit_code == 2 and "no weights file" in refused.stderr
    home = tmp_path / "x.pt"
    monkeypatch.setattr(CheapPrior, "home", home)
    for more, there in (([], False), (["--store"], True)):
        done = runner.invoke(app, [*words, *more])
        assert done.stdout == "satp = { eta = 0.25 }\nsatp-paper = { eta = 0.25 }\n" and "no eta fits" in done.stderr
        assert stored_file(home).exists() is there
    assert [entry["settings"]["satp-paper"] for entry in read_stored(home)] == [{"eta": 0.25}]


def test_the_minutes_and_the_cluster_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    pictures = write_pictures(tmp_path / "photos", count=1)
    file = tmp_path / f"x{referee.SUFFIX}"
    monkeypatch.setattr(loading, "load_prior", lambda name: CheapPrior())
    monkeypatch.setattr(referee.Referee, "load", lambda path: path)
    monkeypatch.setattr(trust_runs, "make_timed_runs", reached)
    words = ["--images", pictures, "--minutes", "1.5"]
    cluster = ["--engine", "ray", "--address", "auto", "--jobs", "4"]
    for command in (["fit-trust", *words, "--out", file], ["calibrate", *words, "--referee", file]):
        run(*command, *cluster)
        _, engine, seconds = reached.words
        assert seconds == 90 and isinstance(engine, RayEngine) and (engine.workers, engine.address) == (4, "auto")
        file.touch()
    monkeypatch.setattr(trust_runs, "make_timed_runs", lambda *_: [])
    monkeypatch.setattr(trust_fit, "read_lessons", lambda files: [])
    monkeypatch.setattr(trust_fit, "fit_referee", reached)
    run("fit-trust", *words, "--seed", "4", "--out", file)
    assert (reached.words[1].seconds, reached.words[1].seed) == (30, 4)
    monkeypatch.setattr(trust_fit, "fit_calibration", lambda *_: SimpleNamespace(save=reached, families={}))
    run("calibrate", *words, "--referee", file)
    assert reached.words == (tmp_path / f"x{referee.SUFFIX}.json",)
    nodes = [SimpleNamespace(noise=0.05, factors=[1.0, 1.25, 1.5, 1.75], runs=9)]
    monkeypatch.setattr(trust_fit, "fit_calibration", lambda *_: SimpleNamespace(save=print, families={"sr": nodes}))
    done = runner.invoke(app, ["calibrate", *map(str, words), "--referee", str(file)])
    shown = dict(zip(LEVELS, nodes[0].factors))[0.9]
    assert (
        f"sr: 90 % of errors lie within this many of the referee's standard deviations, by noise: 0.05: {shown:.2f} (9 runs)."
        in (done.stderr)
    )


@pytest.mark.parametrize(("module", "name"), [(train_run, "train"), (adapt, "adapt")])
def test_a_long_command_that_is_interrupted_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupt)
    monkeypatch.setattr(adapt, "plan_adaptation", lambda *_: None)
    words = {"train": ["train", "--images", tmp_path, "--state", tmp_path / "run"], "adapt": ["adapt", "x", "--data", tmp_path]}
    result = runner.invoke(app, [str(word) for word in words[name]])
    assert result.exit_code == 130 and "Interrupted" in result.stderr and "continues" in result.stderr


def test_priors_get_and_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sized(CheapPrior):
        size, channels, home = (24, 32), 3, tmp_path / "x.pt"

    monkeypatch.setattr(download, "download", lambda name, tell: tell(1, 2) or tmp_path / name)
    assert runner.invoke(app, ["priors", "get", "ffhq-256"]).stdout.strip() == str(tmp_path / "ffhq-256")
    monkeypatch.setattr(loading, "load_prior", lambda name, **options: Sized())
    told = runner.invoke(app, ["inspect", "mine:Net"]).stdout
    assert (
        "3 channels, of 32 x 24 pixels" in told and "fitted to it: variance\n" in told and "Next: leader adapt mine:Net" in told
    )
    monkeypatch.setattr(adapt, "list_companions", lambda prior: {"variance": True, "referee": True})
    told = runner.invoke(app, ["inspect", "mine:Net"]).stdout
    assert "fitted to it: variance, referee" in told and "Next: leader restore IN OUT --prior mine:Net" in told
    (tmp_path / "x.pt").touch()
    found = {"family": "ddpm", "parameters": 7, "bytes": 8, "missing": ["heads"]}
    monkeypatch.setattr(inspection, "inspect", lambda file: found)
    ended = runner.invoke(app, ["inspect", str(tmp_path / "x.pt")])
    assert ended.exit_code == 1 and "do not tell heads: write them into x.json" in ended.stdout
    assert json.loads(runner.invoke(app, ["priors", "inspect", str(tmp_path / "x.pt")]).stdout) == found
