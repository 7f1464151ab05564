"""The doors of prepare and restore: names and objects, settings, devices, memory, and how results show themselves."""

import inspect
import io
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import leader
from leader.errors import LeaderError, UsageError
from leader.methods import DDNM
from leader.pictures import Picture
from leader.pictures.container import Measurement, read_container, write_container
from leader.plugins import SATP
from leader.priors.base import Prediction
from leader.restoration import resources
from leader.restoration.restore import RestoreChoices, prepare, restore
from tests.cheap_prior import CheapPrior, photograph


def run(**options: Any) -> leader.Restoration:
    return restore(photograph(16, 20), "denoise", **{"sigma": 0.1, "prior": CheapPrior(), "steps": 4, **options})


def test_names_and_objects_are_the_same() -> None:
    names = run(plugins=("leader",)).array
    np.testing.assert_array_equal(run(plugins="leader").array, names)
    np.testing.assert_array_equal(run(plugins=["ucdc", "satp"]).array, names)
    one = run(method="ddnm", plugins="satp", settings={"eta": 0.3, "satp": {"budget": 0.5}, "use_presets": False}).array
    np.testing.assert_array_equal(run(method=DDNM(eta=0.3), plugins=SATP(budget=0.5)).array, one)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *(({"seed": -1}, "integer from 0"), ({"seed": 1.5}, "integer from 0"), ({"ids": [1, 2]}, "one id")),
        *(({"ids": -3}, "integer from 0"), ({"threads": 0}, "threads"), ({"device": "abacus"}, "Unknown device")),
        *(({"dtype": "float16"}, "load_prior"), ({"sigma": 25}, r"25/255 = 0\.098")),
        ({"stepz": 5}, "Unknown option 'stepz'"),
        *(
            ({"settings": {name: 1}}, f"'{name}'.*argument of its own")
            for name in ("self", "prior", "method", "plugins", "steps")
        ),
        *(
            ({"settings": {1: 2}}, "names and values"),
            ({"settings": []}, "names and values"),
            ({"settings": "a=1"}, "names and"),
        ),
        *(({"settings": {"seed": 3}}, "no setting 'seed'"), ({"settings": {"nonsense": 1}}, "no setting 'nonsense'")),
    ],
)
def test_wrong_arguments(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError if "device" not in options else LeaderError, match=says):
        run(**options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:7", "meta"])
def test_a_device_that_is_not_here(device: str) -> None:
    """The tensors of meta have a shape and no numbers."""
    with pytest.raises(LeaderError, match=f"'{device}' is not available here"):
        run(device=device)


class Weighted(CheapPrior):
    """The cheap prior with a weight, so that it has a place."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))


def test_measurement_and_prior_meet_on_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is needed: where y is put is seen from the calls of `Tensor.to`."""
    places: list[torch.device] = []
    to = Tensor.to

    def noted(self: Tensor, *given: Any, **named: Any) -> Tensor:
        if given and isinstance(given[0], torch.device) and self.ndim == 4:
            places.append(given[0])
            return self
        return to(self, *given, **named)

    monkeypatch.setattr(Weighted, "weights_device", lambda self: torch.device("meta"))
    monkeypatch.setattr(Tensor, "to", noted)
    ready = prepare(photograph(16, 20), "denoise", sigma=0.1, prior=Weighted(), steps=2)
    assert torch.device("meta") in places and ready.origin.device == "meta"


def test_dtype_and_device_reach_the_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def load(name: str, **given: Any) -> CheapPrior:
        seen.append(given)
        return CheapPrior()

    monkeypatch.setattr("leader.priors.loading.load_prior", load)
    done = run(prior="embedded", dtype="bfloat16", device="cpu")
    assert seen == [{"device": "cpu", "dtype": "bfloat16"}]
    assert done.summary()["dtype"] == "bfloat16"
    run(prior="embedded")
    assert seen[1] == {"dtype": "auto"}


def test_results_show_themselves() -> None:
    restored = run()
    text = repr(restored)
    assert "Restoration denoise: 20 x 16 pixels, sigma 0.1" in text and len(text) < 120
    with Image.open(io.BytesIO(restored._repr_png_())) as shown:
        np.testing.assert_array_equal(np.asarray(shown), np.asarray(restored.image))
    json.dumps(restored.summary())


@pytest.mark.parametrize(
    "error",
    [
        *(MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")),
        *(RuntimeError("CUDA out of MEMORY"), RuntimeError("boom")),
    ],
)
def test_out_of_memory_in_one_sentence(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(self: CheapPrior, x: Tensor, t: Tensor) -> Prediction:
        raise error

    monkeypatch.setattr(CheapPrior, "_predict", fail)
    expected = RuntimeError if str(error) == "boom" else LeaderError
    with pytest.raises(expected, match=r"boom|not enough memory for a picture of 20 x 16 pixels"):
        run()


def test_what_cannot_fit_is_refused_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    """63 million black pixels in a few kilobytes: nothing of their size is computed."""
    monkeypatch.setattr(resources, "find_memory", lambda: 8 << 30)
    monkeypatch.setattr("leader.forensics.examination.noise_behind", lambda *_: pytest.fail("the noise was estimated"))
    huge = np.broadcast_to(np.float32(0.5), (9000, 7000, 3))
    with pytest.raises(LeaderError, match=r"7000 x 9000 pixels takes at least 14\.3 GB.*has 8\.0 GB"):
        prepare(Picture(huge), "denoise", prior=CheapPrior())
    monkeypatch.setattr(resources, "find_memory", lambda: 1 << 30)
    with pytest.raises(LeaderError, match="8000 x 6400"):  # what counts is the size of the result
        prepare(Picture(np.broadcast_to(np.float32(0.5), (1600, 2000, 3))), "sr", prior=CheapPrior())
    monkeypatch.setattr(resources, "find_memory", lambda: None)
    resources.check_memory((3, 10**6, 10**6))  # a system that does not tell is trusted


def test_memory_is_that_of_this_machine_or_the_least_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = resources.find_memory()
    assert here is None or 1 << 28 < here < 1 << 50
    said, unlimited, absent = (tmp_path / name for name in ("limit", "none", "absent"))
    said.write_text("123456\n")
    unlimited.write_text("max\n")
    for files in ((absent, said), (said, absent), (unlimited, said)):
        monkeypatch.setattr(resources, "_LIMITS", tuple(map(str, files)))
        assert resources.find_memory() in (None, 123456)
    monkeypatch.setattr(resources, "_LIMITS", (str(unlimited),))
    assert resources.find_memory() in (None, here) or here is not None
    for there, fits in ((resources.count_needed_memory((3, 100, 200)), True), (1 << 20, False), (None, True)):
        monkeypatch.setattr(resources, "find_memory", lambda there=there: there)
        with nullcontext() if fits else pytest.raises(LeaderError, match="200 x 100 pixels takes at least"):
            resources.check_memory((3, 100, 200))
    needed = [resources.count_needed_memory((channels, 1000, 1000)) - resources.BYTES_ALWAYS for channels in (1, 3)]
    assert needed[1] == 10**6 * resources.BYTES_PER_PIXEL and needed[0] == pytest.approx(0.6 * needed[1])


@pytest.mark.parametrize(
    ("task", "options"),
    [
        *(("deblur-gaussian", {"std": 1e9}), ("deblur-motion", {"size": 10**6})),
        *(("deblur", {"kernel": torch.ones(1, 1026)}), ("sr", {"factor": 0}), ("sr", {"factor": 2.5})),
        *(("cs", {"indices": torch.tensor([10**9])}), ("denoise", {"nonsense": 1}), ("nonsense", {})),
    ],
)
def test_containers_with_absurd_operators(tmp_path: Path, task: str, options: dict[str, Any]) -> None:
    write_container(tmp_path / "m.npz", Measurement(task, torch.zeros(1, 3, 16, 16), (3, 16, 16), 0.1, options))
    with pytest.raises(LeaderError) as caught:
        restore(tmp_path / "m.npz", prior=CheapPrior())
    assert len(str(caught.value).splitlines()) == 1


def test_a_container_cannot_ask_for_more_than_it_holds(tmp_path: Path) -> None:
    import zipfile

    from tests.restoration.test_arguments import npy

    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("y.npy", npy("(100000, 100000)"))
    with pytest.raises(LeaderError, match="not a container that can be read"):
        read_container(tmp_path / "m.npz")


def test_restore_shows_the_keywords_of_prepare() -> None:
    shared = set(inspect.signature(prepare).parameters)
    assert shared - {"image", "task"} == set(RestoreChoices.__annotations__)
    assert shared < set(inspect.signature(leader.restore).parameters)
    with pytest.raises(UsageError, match="did you mean 'quality'"):
        leader.restore(photograph(), "denoise", qualty="draft")  # type: ignore[call-arg]


def test_a_diagnosis_has_attributes() -> None:
    noisy = photograph(96, 128) + 0.08 * torch.randn(3, 96, 128, generator=torch.Generator().manual_seed(1))
    found = leader.diagnose(noisy)
    assert found.task == "denoise" and found.size == (128, 96) and found.noise_level == pytest.approx(0.08, rel=0.3)
    assert found.kernel is None and found.jpeg_quality is None and found.defects == () and found.missing == 0
