"""A folder of pictures, good and bad, and a prior that costs nothing behind the name `embedded`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leader.pictures import Picture, write_picture
from leader.priors import loading
from leader.priors.base import Prior
from tests.cheap_prior import CheapPrior, photograph
from tests.pictures.test_pictures import header_only


class OtherPrior(CheapPrior):
    name = "other"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """`embedded` and `other` are cheap priors here; other names go their usual way. Returns the options of every load."""
    real, loads = loading.load_prior, []

    def load(name: Any, **options: Any) -> Prior:
        loads.append(options)
        if name in ("embedded", "other") and str(options.get("device", "cpu")) == "cpu":
            return CheapPrior() if name == "embedded" else OtherPrior()
        return real(name, **options)

    monkeypatch.setattr(loading, "load_prior", load)
    monkeypatch.setenv("LEADER_TRACEBACK", "1")  # a bug shows itself in the output of the test
    return loads


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, which is the current one."""
    write_picture(tmp_path / "in.png", Picture(photograph(24, 32).permute(1, 2, 0).numpy()))
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "huge.png").write_bytes(header_only(100_000, 100_000))
    write_picture(tmp_path / "dot.png", Picture(np.zeros((1, 1, 3), np.float32)))
    write_picture(tmp_path / "mask.png", Picture(np.ones((9, 9, 1), np.float32)))
    known = np.ones((24, 32, 1), np.float32)
    known[4:12, 6:20] = 0
    write_picture(tmp_path / "known.png", Picture(known))
    np.save(tmp_path / "zeros.npy", np.zeros((3, 3)))
    np.save(tmp_path / "kernel.npy", np.outer([1.0, 2.0, 1.0], [1.0, 3.0, 1.0]))
    monkeypatch.chdir(tmp_path)
    return tmp_path
