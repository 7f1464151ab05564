"""The Python of README.md and docs/guide.md runs as it stands, with a prior that costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.check_docs import ROOT, blocks

from leader.pictures import Picture, read_picture, write_picture
from leader.priors import loading
from tests.cheap_prior import CheapPrior, photograph

EXAMPLES = [
    pytest.param("\n".join(block.lines[1:-1]), id=f"{page}:{block.line}")
    for page in ("README.md", "docs/guide.md")
    for block in blocks((ROOT / page).read_text(encoding="utf-8"))
    if block.language == "python"
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "load_prior", lambda *_, **__: CheapPrior())
    picture = Picture(photograph(24, 32).permute(1, 2, 0).numpy())
    for name in ("small.png", "torn.png"):
        write_picture(tmp_path / name, picture)
    known = np.ones((24, 32, 1), np.float32)
    known[5:9] = 0
    write_picture(tmp_path / "mask.png", Picture(known))
    (tmp_path / "photos").mkdir()
    (tmp_path / "restored").mkdir()
    write_picture(tmp_path / "photos" / "one.jpg", picture)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "example", "exec"), names)
    if "large.png" in code:
        assert read_picture(tmp_path / "large.png").size == (128, 96)
    if "photos" in code:
        assert (tmp_path / "restored" / "one.png").exists() and names["restored"].uncertainty.shape == (24, 32)
    if "result" in names:
        assert names["result"].images.shape[1:] == (3, 64, 64)
