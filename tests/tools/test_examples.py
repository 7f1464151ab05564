"""Every code block of README.md and the pages runs as it stands, page by page, in a folder of its own, with a cheap prior.

`sh` blocks hold `leader` commands and nothing else, `python` blocks run in one namespace each, blocks with a title are files.
What needs a network, hours or a cluster is a `console` block, which `tools/check_docs.py` holds to commands that exist.
"""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter
from tools.check_docs import ROOT, Block, blocks, pages
from typer.testing import CliRunner

from leader.cli.app import app
from leader.methods import METHODS
from leader.operators.tasks import TASKS
from leader.priors import loading
from leader.priors.base import Prior
from tests.cheap_prior import CheapPrior

LANGUAGES = ("python", "sh", "toml")
RUNNING: list[str] = []
"""The command that runs."""


def executed(page: Path) -> list[Block]:
    found = [block for block in blocks(page.read_text(encoding="utf-8")) if block.kind == "code"]
    return [block for block in found if block.language.partition(" ")[0] in LANGUAGES]


PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages(ROOT) if executed(page)]


def make_pictures(folder: Path) -> None:
    """The pictures that the pages speak of, from a bundled photograph, 80 x 64 pixels."""
    sample = sorted((ROOT / "src/leader/samples/test").glob("*.png"))[6]
    photograph = Image.open(sample).convert("RGB").crop((40, 40, 120, 104))
    noise = np.random.default_rng(0).normal(0, 25, (64, 80, 3))
    noisy = Image.fromarray((np.asarray(photograph) + noise).clip(0, 255).astype(np.uint8))
    mask = Image.new("L", photograph.size, 255)
    ImageDraw.Draw(mask).line((10, 12, 60, 50), fill=0, width=4)
    torn = photograph.copy()
    torn.paste((255, 255, 255), mask=mask.point(lambda value: 255 - value))
    soft = photograph.filter(ImageFilter.GaussianBlur(2))
    pictures = {
        "photo.png": photograph,
        "photo.jpg": photograph,
        "small.png": photograph.resize((20, 16)),
        "noisy.png": noisy,
        "torn.png": torn,
        "mask.png": mask,
        "soft.jpg": soft,
        "blurred.jpg": soft,
        "photos/one.jpg": noisy,
    }
    for name in ("photos", "restored"):
        (folder / name).mkdir()
    for name, picture in pictures.items():
        picture.save(folder / name, quality=30 if name == "photo.jpg" else 92)


def link_experiments(folder: Path) -> None:
    """The experiments with their records, file by file: what a page adds stays in the test's own folder."""
    (folder / "records").mkdir(parents=True)
    for path in (*(ROOT / "experiments").glob("*.toml"), *(ROOT / "experiments/records").glob("*.jsonl")):
        (folder / path.relative_to(ROOT / "experiments")).symlink_to(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    real = loading.load_prior

    def load(name: Any = "embedded", **options: Any) -> Prior:
        """Records of experiments belong to the network itself; all else takes the cheap one."""
        cheap = name in ("embedded", "model.safetensors") and "bench" not in RUNNING
        return CheapPrior() if cheap else real(name, **options)

    monkeypatch.setattr(loading, "load_prior", load)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for registry in (METHODS, TASKS):
        monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("LEADER_TRACEBACK", "1")
    monkeypatch.chdir(tmp_path)
    make_pictures(tmp_path)
    link_experiments(tmp_path / "experiments")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("my_"):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_run(page: Path, folder: Path) -> None:
    for block in executed(page):
        language, _, title = block.language.partition(" ")
        code = "\n".join(block.lines[1:-1])
        if title:
            (folder / title.partition('"')[2].rstrip('"')).write_text(code + "\n", encoding="utf-8")
        elif language == "python":
            exec(compile(code, f"{page.name}:{block.line}", "exec"), {"__name__": "example"})
        elif language == "sh":
            for line in block.lines[1:-1]:
                run_command(line, f"{page.name}:{block.line}")


def run_command(line: str, where: str) -> None:
    words = shlex.split(line, comments=True)
    if not words:
        return
    assert words[0] == "leader", f"{where}: a sh block holds `leader` commands; `{line}` belongs in a console block"
    restores = words[1] == "restore"
    # A prior that knows nothing of photographs fails the verdict; its picture is wanted by later commands all the same.
    extra = ["--keep-failed"] if restores else []
    if restores and Path(words[2]).is_dir():
        extra += ["--jobs", "0"]  # other processes would load the network itself
    RUNNING[:] = words[1:2]
    result = CliRunner().invoke(app, [*words[1:], *extra])
    RUNNING.clear()
    assert result.exit_code in ((0, 3) if restores else (0,)), f"{where}: {line}\n{result.output}"
