"""A tree of pictures, and a prior that costs nothing behind the name `embedded`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leader.engines import LocalEngine
from leader.folders import work
from leader.folders.choices import FolderChoices
from leader.folders.run import FolderOutcome, run_folder
from leader.pictures import Picture, write_picture
from leader.priors import loading
from leader.restoration.request import RestoreRequest
from tests.cheap_prior import CheapPrior, photograph

ARGUMENTS: dict[str, Any] = {
    "task": "denoise",
    "sigma": 0.1,
    "method": "ddnm",
    "plugins": (),
    "steps": 2,
    "prior": "embedded",
    "seed": 3,
}
NAMES = ("a.png", "b.png", "sub/c.png")


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The cheap prior; returns the names that were loaded."""
    loads: list[str] = []

    def load(name: Any, **options: Any) -> CheapPrior:
        loads.append(str(name))
        return CheapPrior()

    monkeypatch.setattr(loading, "load_prior", load)
    work._models.clear()
    yield loads
    work._models.clear()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three pictures, one in a folder, one file that is none."""
    root = tmp_path / "in"
    (root / "sub").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        save_picture(root / name, 16 + number)
    (root / "notes.txt").write_text("no picture")
    return root


def save_picture(path: Path, height: int = 16, width: int = 24) -> None:
    write_picture(path, Picture(photograph(height, width).permute(1, 2, 0).numpy()))


def go(source: Path | str, out: Path | str, arguments: dict[str, Any] | None = None, **options: Any) -> FolderOutcome:
    """A run in this process; options are those of `run_folder` and of FolderChoices."""
    workers = options.pop("workers", LocalEngine(1))
    chosen = {name: options.pop(name) for name in ("check", "keep_failed", "location") if name in options}
    return run_folder(str(source), str(out), choose(arguments, **chosen), workers, **options)


def choose(arguments: dict[str, Any] | None = None, **options: Any) -> FolderChoices:
    """The usual choices with others."""
    return FolderChoices(RestoreRequest(**{**ARGUMENTS, **(arguments or {})}), **options)


def results(out: Path) -> dict[str, bytes]:
    """Every file of an output folder besides the manifest, hidden ones too."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "leader-manifest.jsonl"
    }


def lines(out: Path) -> list[dict[str, Any]]:
    """Those of the manifest of an output folder."""
    return [json.loads(text) for text in (out / "leader-manifest.jsonl").read_text().splitlines()]
