"""Keys of records: what was asked and the revisions of what took part determine them, and nothing else does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leader.bench import keys
from leader.bench.cell import Cell, Frozen
from leader.bench.keys import identify, metrics_of_record
from leader.bench.priors import fingerprint
from leader.bench.records import Store, digest, read_lines
from leader.bench.run import gather, run_experiment
from leader.bench.running import run_cell
from leader.engines import make_engine
from leader.methods import DDNM, PIRP
from leader.operators import BicubicSR
from leader.plugins import UCPM
from leader.priors.loading import load_prior
from leader.sampler import Sampler
from tests.bench.test_cell import cell
from tests.bench.tiny import photographs, tiny

__all__ = ["cell"]
RECORDS = Path(__file__).parents[2] / "experiments" / "records"


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """Revisions and weights that a test changes are looked up again."""
    keys._revisions.cache_clear()
    keys._choices.cache_clear()


def test_the_committed_records_have_their_keys() -> None:
    for path in sorted(RECORDS.glob("*.jsonl")):
        for record in read_lines(path):
            assert digest([record["asked"], record["revisions"]]) == record["key"] and record["package"]


def test_names_do_not_determine_a_record_and_everything_else_does(cell: Cell) -> None:
    key = identify(cell).key
    assert identify(replace(cell, row="another", title="name")).key == key
    assert cell.image is not None
    changes: list[dict[str, Any]] = [
        {"fit": "square"},
        {"size": 32},
        {"task": "denoise", "options": Frozen()},
        {"options": Frozen({"factor": 2})},
        {"sigma": 0.06},
        {"method": "ddpg"},
        {"plugins": ("ucpm",)},
        {"plugins": ("ucpm",), "settings": Frozen({"ucpm": {"lam": 0.3}})},
        {"plugins": ("ucpm",), "estimator": "hutchinson"},
        {"plugins": ("ucpm",), "estimator": "hutchinson", "settings": Frozen({"probes": 2})},
        {"settings": Frozen({"eta": 0.5})},
        {"steps": 6},
        *({"grid": name} for name in ("quadratic", "respaced", "noise")),  # whose ends are the same
        {"estimator": "noise-energy"},
        {"seed": 1},
        {"timing": True},
        {"memory": True},
        {"keep": ("trace",)},
        {"device": "cuda:1"},
        {"device": "cuda:1", "precision": "float16"},
    ]
    cells = [cell.altered(**change) for change in changes]
    cells += [replace(cell, image=cell.image.with_name("photo0.png")), replace(cell, index=0)]
    assert len({key, *(identify(item).key for item in cells)}) == 1 + len(cells)
    assert identify(cell.altered(settings=Frozen({"eta": 0.85}))).key == key, "a default that is written out"
    kept = (cell.altered(keep=order) for order in (("trace", "path"), ("path", "trace")))
    assert len({identify(item).key for item in kept}) == 1
    small = metrics_of_record(cell.altered(size=24).recipe)
    assert "lpips" not in small and "psnr" in small and "lpips" in metrics_of_record(cell.recipe)
    assert "estimators" in identify(cell.altered(plugins=("ucpm",))).revisions and "estimators" not in identify(cell).revisions


def test_a_picture_is_known_by_its_content(cell: Cell, tmp_path: Path) -> None:
    assert cell.image is not None
    same, other = tmp_path / "elsewhere" / "photo1.png", tmp_path / "other" / "photo1.png"
    same.parent.mkdir()
    same.write_bytes(cell.image.read_bytes())
    photographs(other.parent, 2, side=96)
    assert identify(replace(cell, image=same)).key == identify(cell).key != identify(replace(cell, image=other)).key


def test_weights_are_part_of_a_key(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(cell).key
    keys._choices.cache_clear()
    monkeypatch.setattr(keys, "fingerprint", lambda prior, size: f"other weights of {prior}")
    assert identify(cell).key != before


def test_a_prior_of_ones_own_is_known_by_its_text_and_by_the_weights_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says itself where its weights lie: its head is found beside them, and both are part of the key."""
    weights = tmp_path / "own.weights"
    (tmp_path / "own_prior.py").write_text(
        "from pathlib import Path\n\nfrom leader import Schedule\nfrom leader.priors import Prior\n\n\n"
        "class Bare(Prior):\n    def __init__(self):\n        super().__init__(Schedule.linear())\n\n\n"
        f"class Heavy(Bare):\n    def __init__(self):\n        super().__init__()\n        self.home = Path({str(weights)!r})\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    weights.write_bytes(b"first")
    assert load_prior("own_prior:Heavy").home == weights and load_prior("own_prior:Bare").home == tmp_path / "Bare"
    bare, first = fingerprint("own_prior:Bare", 16), fingerprint("own_prior:Heavy", 16)
    assert "+" not in bare and len(first.split("+")) == 2
    weights.write_bytes(b"another")
    assert fingerprint("own_prior:Heavy", 16).split("+")[0] == first.split("+")[0]
    assert fingerprint("own_prior:Heavy", 16) != first


@pytest.mark.parametrize("part", [DDNM, UCPM, BicubicSR, Sampler])
def test_a_raised_revision_is_a_new_key_of_what_it_took_part_in(cell: Cell, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plugged, other = cell.altered(plugins=("ucpm",)), cell.altered(method="pinv", task="denoise", options=Frozen())
    before = [identify(item) for item in (plugged, other)]
    monkeypatch.setattr(part, "revision", 2)
    keys._revisions.cache_clear()
    after = [identify(item) for item in (plugged, other)]
    assert after[0].key != before[0].key and after[0].asked == before[0].asked and after[1] == before[1]


def test_a_term_that_a_plug_in_takes_over_takes_part(cell: Cell) -> None:
    taken = cell.altered(plugins=("ucpm",), settings=Frozen({"ucpm": {"phi": "pirp"}}))
    assert identify(taken).revisions[PIRP.name] == 1 and PIRP.name not in identify(cell).revisions


def test_a_record_says_which_package_and_commit_made_it_outside_its_key(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader.bench.running.provenance", lambda: {"package": "9.9", "commit": "abc"})
    record = run_cell(cell).record
    assert (record["package"], record["commit"]) == ("9.9", "abc")
    assert record["key"] == identify(cell).key == digest([record["asked"], record["revisions"]])


def test_records_of_earlier_revisions_serve_tables_are_counted_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny(tmp_path).restricted("DDNM + UCPM", "SR")
    run_experiment(experiment, Store(tmp_path / "r", "x"), make_engine(), quiet=True)
    monkeypatch.setattr(UCPM, "revision", 7)
    keys._revisions.cache_clear()
    found = gather(experiment, Store(tmp_path / "r", "x"))
    assert (found.earlier, found.missing, len(found.places)) == ({"ucpm": 4}, 0, 4)
    assert run_experiment(experiment, Store(tmp_path / "r", "x"), make_engine(), quiet=True).ran == 4
    store = Store(tmp_path / "r", "x")
    assert not gather(experiment, store).earlier and len(store.own) == 4, "the former ones have gone"
