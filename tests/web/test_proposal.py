"""What the page proposes is what the diagnosis advises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leader.restoration.diagnose import Advice, Diagnosis, diagnose
from leader.web import proposal
from leader.web.choices import Wish, build_request
from leader.web.proposal import propose


def test_a_diagnosis_becomes_a_proposal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "grey.png"
    Image.fromarray(np.full((20, 30, 3), 90, np.uint8)).save(file)
    found = diagnose(file)
    nothing = propose(file)
    assert nothing.kind is None and nothing.repair is None and nothing.filled == ""
    assert len(nothing.words) == len(found.sentences()) and not any("--" in text for text in nothing.words)
    advice = Advice("deblur", {"kernel": "line:9:40", "kernel_doubt": 0.05})
    monkeypatch.setattr(proposal, "diagnose", lambda path: Diagnosis(found.findings, advice, str(path)))
    told = propose(file)
    assert told.kind == "blurred" and told.repair == ("deblur", {"kernel": "line:9:40", "kernel_doubt": 0.05})
    chosen = build_request(Wish("blurred"), (30, 20), told.repair)
    assert (chosen.task, chosen.kernel, chosen.kernel_doubt) == ("deblur", "line:9:40", 0.05)
