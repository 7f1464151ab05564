"""A run is repeated from its summary: the same bytes, whatever has become of files and presets."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader import presets
from leader.errors import LeaderError
from leader.files import sha256_of
from leader.forensics.noise.light import LightNoise
from leader.forensics.noise.shot import ShotNoise
from leader.pictures import Picture, write_picture
from leader.priors import loading
from leader.restoration.degrade import degrade_file
from leader.restoration.repeat import arguments_of, weights_hash
from leader.restoration.restore import prepare, restore
from leader.restoration.restored import Restoration
from leader.restoration.whitening import Coloured
from leader.schedule import Grid
from leader.trust.measuring import Numbers, RunFacts, measure
from leader.uncertainty.estimators import Difference
from tests.cheap_prior import CheapPrior, photograph


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """`embedded` is the cheap prior here."""
    monkeypatch.setattr(loading, "load_prior", lambda name, **options: CheapPrior())


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    noise = 0.05 * torch.randn(3, 48, 48, generator=torch.Generator().manual_seed(0))
    write_picture(tmp_path / "in.png", Picture((photograph(48, 48) + noise).permute(1, 2, 0).clamp(0, 1).numpy()))
    return tmp_path / "in.png"


def bytes_of(restored: Restoration, path: Path) -> bytes:
    restored.save(path)
    return path.read_bytes()


def through_json(restored: Restoration) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(json.dumps(restored.summary()))
    return summary


KERNEL = np.random.default_rng(0).random((5, 4))
MASK = np.random.default_rng(1).random((48, 48)) > 0.2
MASK[8:40, 8:40] = True

CASES: list[tuple[str, dict[str, Any]]] = [
    ("sr", {"factor": 2}),
    ("sr", {"factor": 3, "down": "average", "sigma": 0.04, "seed": 5, "ids": [9]}),
    ("deblur", {"kernel": "kernel.npy", "sigma": 0.02}),
    ("deblur", {"kernel": "gaussian:1.3", "sigma": 0.02}),
    ("deblur-gaussian", {"sigma": 0.02}),
    ("deblur-motion", {"kernel": "motion:20", "sigma": 0.02}),
    ("inpaint", {"mask": MASK}),
    ("inpaint", {"mask": "random:0.3:4", "sigma": 0.0}),
    ("colourise", {}),
    ("denoise", {"method": "diffpir", "sigma": 0.1}),
    ("sr", {"method": "diffpir", "factor": 2, "settings": {"zeta": 0.7, "satp": {"budget": 0.2}}}),
    ("denoise", {"plugins": ("equs+", "ucpm"), "settings": {"estimator": "hutchinson", "probes": 2, "trust_time": 400}}),
    ("denoise", {"plugins": (), "settings": {"grid": "quadratic", "estimator": None}}),
    ("denoise", {"plugins": ("satp",), "settings": {"estimator": Difference(0.25)}}),
    ("denoise", {"settings": {"grid": Grid((900, 500, 100, -1))}, "ids": [4, 6], "average": 2}),
    ("sr", {"method": "pirp", "plugins": ("ucpm", "satp"), "factor": 2, "settings": {"ucpm": {"phi": "pirp"}}, "sigma": 0.05}),
]


@pytest.mark.parametrize(("task", "options"), CASES)
def test_the_same_bytes_again(picture: Path, monkeypatch: pytest.MonkeyPatch, task: str, options: dict[str, Any]) -> None:
    folder = picture.parent
    np.save(folder / "kernel.npy", KERNEL)
    if options.get("kernel") == "kernel.npy":
        options = {**options, "kernel": str(folder / "kernel.npy")}
    first = restore(picture, task, steps=8, **options)
    summary = through_json(first)
    (folder / "kernel.npy").unlink()
    monkeypatch.setattr(presets, "find", lambda *_: {"eta": 0.123, "satp": {"eta": 9.0}, "ucpm": {"lam": 5.0}})
    again = restore(picture, **arguments_of(summary))
    assert bytes_of(again, folder / "b.png") == bytes_of(first, folder / "a.png")
    assert again.result.settings == first.result.settings
    if first.uncertainty is not None:
        np.testing.assert_array_equal(again.uncertainty, first.uncertainty)
    # and what was repeated says the same of itself
    second = through_json(again)
    for name in ("task", "operator", "options", "sigma", "settings", "prior", "input", "device", "dtype", "uniform_grid"):
        assert second[name] == summary[name], name


def test_containers_and_transparent_pictures(picture: Path) -> None:
    folder = picture.parent
    degrade_file(photograph(32, 32), folder / "m.npz", "cs", sigma=0.05)
    first = restore(folder / "m.npz", steps=5)
    again = restore(folder / "m.npz", **arguments_of(through_json(first)))
    assert bytes_of(again, folder / "b.png") == bytes_of(first, folder / "a.png")
    alpha = np.ones((24, 24), np.float32)
    alpha[4:9, 4:9] = 0
    write_picture(folder / "holes.png", Picture(photograph(24, 24).permute(1, 2, 0).numpy(), alpha))
    first = restore(folder / "holes.png", "inpaint", sigma=0.02, steps=5)
    again = restore(folder / "holes.png", **arguments_of(through_json(first)))
    assert again.picture.alpha is None
    assert bytes_of(again, folder / "b.png") == bytes_of(first, folder / "a.png")


def test_the_summary_holds_every_option(picture: Path) -> None:
    summary = through_json(restore(picture, "sr", factor=2, down="bicubic", steps=4, seed=3, ids=2, threads=1))
    assert summary["leader"] == "run 1" and summary["options"] == {"factor": 2, "down": "bicubic"}
    assert summary["sigma_from"] == "estimated" and summary["input"] == {"name": "in.png", "sha256": sha256_of(picture)}
    assert summary["prior"] == {"source": "embedded", "sha256": weights_hash("embedded")}
    assert summary["dtype"] == "float32" and summary["device"] == "cpu" and summary["operator"] == "sr-bicubic"
    settings = summary["settings"]
    assert (settings["seed"], settings["ids"], settings["steps"], settings["threads"]) == (3, [2], 4, 1)
    assert [item["name"] for item in settings["plugins"]] == ["ucpm", "satp"] and settings["method"]["name"] == "ddnm"
    assert {"leader", "torch", "numpy", "python"} <= summary["versions"].keys()
    for threads, clipped in ((3, 0), (5, 7)):
        again = arguments_of({**summary, "clipped": clipped, "settings": {**settings, "threads": threads}})
        assert (again["threads"], again["clipped"]) == (threads, bool(clipped))


def test_seed_and_id_choose_the_noise(picture: Path) -> None:
    """The README's promise: an image gets in a batch what it gets alone, if it is named."""
    from leader.operators import build_task
    from leader.problem import Problem
    from leader.sampler import Sampler

    def alone(**options: Any) -> Any:
        return restore(photograph(16, 16), "denoise", sigma=0.1, steps=4, plugins=(), **options).result.images

    y = photograph(16, 16)[None].expand(3, -1, -1, -1)
    problem = Problem(y, build_task("denoise", (3, 16, 16)), 0.1)
    batch = Sampler(CheapPrior(), "ddnm", (), 4).run(problem, 7).images
    for name in range(3):
        assert torch.equal(alone(seed=7, ids=name)[0], batch[name])
    assert torch.equal(alone(seed=7), alone(seed=7, ids=[0])) and not torch.equal(alone(seed=7), alone(seed=8))


def test_threads_are_those_of_the_run_and_put_back(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    seen: list[int] = []

    def judge(facts: RunFacts) -> Numbers:
        seen.append(torch.get_num_threads())
        return measure(facts)

    monkeypatch.setattr("leader.restoration.restore.measure", judge)
    ready = prepare(picture, "denoise", sigma=0.1, steps=2, threads=before + 1)
    ready.run(lambda _: seen.append(torch.get_num_threads()))
    assert seen == [before + 1] * 3 and torch.get_num_threads() == before
    assert ready.plan.settings["threads"] == before + 1


def test_priors_given_as_objects_and_changed_weights(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(picture.parent)
    summary = through_json(restore(picture, "denoise", sigma=0.1, steps=3, prior=CheapPrior()))
    with pytest.raises(LeaderError, match="given as an object"):
        arguments_of(summary)
    again = arguments_of(summary, prior=CheapPrior())
    assert "dtype" not in again
    restore(picture, **again)
    weights = picture.parent / "model.safetensors"
    weights.write_bytes(b"first")
    summary = through_json(restore(picture, "denoise", sigma=0.1, steps=3, prior=weights.name))
    assert summary["prior"] == {"source": str(weights.resolve()), "sha256": sha256_of(weights)}
    assert arguments_of(summary)["prior"] == str(weights.resolve())
    weights.write_bytes(b"second")
    with pytest.raises(LeaderError, match="not those of the run"):
        arguments_of(summary)


def damaged(summary: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(summary)
    *parents, last = path.split("/")
    table = copied
    for name in parents:
        table = table[name]
    if value is KeyError:
        del table[last]
    else:
        table[last] = value
    return copied


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("leader", "run 2"), ("task", 3), ("sigma", "loud"), ("sigma", 10**400), ("noise_spectrum", [[[10**400]]])),
        *(("sigma", True), ("settings", []), ("settings/method", "ddnm"), ("settings/method/name", "dnm")),
        *(("settings/method/nonsense", 1), ("settings/method/use_presets", True), ("settings/plugins", {})),
        *(("settings/plugins", ["satp"]), ("settings/grid", [1.5, -1]), ("settings/grid", [10**9, -1])),
        *(("settings/estimator", {"name": "oracle"}), ("settings/estimator", {"name": "hutchinson", "nonsense": 1})),
        *(("settings/seed", -1), ("settings/seed", "x"), ("settings/threads", True), ("settings/trust_time", True)),
        *(("settings/ids", [-1]), ("settings/threads", 10**9), ("settings/probes", None), ("device", "abacus")),
        *(("dtype", 3), ("prior", "embedded"), ("uniform_grid", "yes"), ("options", []), ("options/task", "sr")),
        *(("options/sigma", 0.1), ("options/threads", 3), ("options/nonsense", 1), ("options/kernel", {})),
        *(("options/kernel/shape", [5, 5]), ("options/kernel/shape", [10**9, 10**9])),
        *(("options/kernel/shape", [-5, -4]), ("options/kernel/dtype", "object"), ("options/kernel/zlib", "!!!")),
    ],
)
def test_a_damaged_summary_is_refused_in_one_sentence(picture: Path, path: str, value: Any) -> None:
    summary = through_json(restore(picture, "deblur", kernel=KERNEL, sigma=0.02, steps=2))
    restore(picture, **arguments_of(summary))
    with pytest.raises(LeaderError) as caught:
        restore(picture, **arguments_of(damaged(summary, path, value)))
    text = str(caught.value)
    assert len(text.splitlines()) == 1 and len(text) < 400


def test_what_is_no_summary() -> None:
    for other in ({}, {"eta": 0.5}, {"leader": 1}):
        with pytest.raises(LeaderError, match="no run that can be repeated"):
            arguments_of(other)


def test_kept_shot_noise_is_gain_floor_and_least(picture: Path) -> None:
    summary = through_json(restore(picture, "denoise", sigma=Coloured(0.1, ShotNoise(0.01, -0.002, 0.003)), steps=2))
    assert summary["shot_noise"] == [0.01, -0.002, 0.003]
    again = arguments_of(summary)["sigma"]
    assert again == Coloured(summary["sigma"], ShotNoise(gain=0.01, floor=-0.002, least=0.003))


def test_kept_noise_of_light_has_its_gamma_and_white_noise(picture: Path) -> None:
    noise = LightNoise(gain=0.01, floor=0.002, least=0.003, gamma=1.8, white=0.01)
    summary = through_json(restore(picture, "denoise", sigma=Coloured(0.1, noise), steps=2))
    again = arguments_of(summary)["sigma"]
    assert again == Coloured(summary["sigma"], noise) and type(again.shape) is LightNoise
    for wrong in (0.0, "x", math.inf):
        for line in ([0.01, 0.002, 0.003, wrong], [0.01, 0.002, 0.003, 1.8, wrong or -1.0]):
            with pytest.raises(LeaderError, match="noise_spectrum or shot_noise"):
                arguments_of({**summary, "shot_noise": line})
