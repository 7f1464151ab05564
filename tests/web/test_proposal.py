"""What the page proposes is what the diagnosis advises."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leader.forensics.size import thumbnails
from leader.restoration.diagnose import Advice, Diagnosis, diagnose
from leader.web import proposal, views
from leader.web.choices import Wish, arguments
from leader.web.proposal import Proposal, propose
from leader.web.words import for_page


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
    chosen = arguments(Wish("blurred"), (30, 20), told.repair)
    assert (chosen["task"], chosen["kernel"], chosen["kernel_doubt"]) == ("deblur", "line:9:40", 0.05)


def test_what_is_filled_in_without_a_brush_is_said() -> None:
    holes, scratches = Proposal((), "inpaint"), Proposal((), "inpaint", {"mask": "auto"})
    assert (holes.filled, scratches.filled) == (
        "The transparent parts are filled in.",
        "The damage that was found is filled in.",
    )
    assert Proposal((), "denoise").filled == ""
    told = [views.canvas("t", (2, 1), text) for text in (holes.filled, "")]
    assert "The transparent parts are filled in. Paint over parts to fill in those instead." in told[0]
    assert "Paint over what is missing." in told[1]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("It is sharp -- very.", "It is sharp -- very."),
        ("It is small; --task sr would enlarge it.", 'It is small; "It is too small" would enlarge it.'),
        ("--task colourise would give it colours.", '"It has no colour" would give it colours.'),
        ("The blur is 5 x 5 taps; use --kernel gaussian:STD for another.", "The blur is 5 x 5 taps."),
        ("The blur was found: a disk, --kernel disk:2.5.", "The blur was found: a disk."),
        ("Leave out --map.", ""),
        (
            "It is too small; give sigma (0 for none).",
            'It is too small; give the noise level under "Expert settings" (0 for none).',
        ),
        ("--task cs is another matter; ask.", "ask."),
    ],
)
def test_options_of_the_command_line_are_not_told_to_a_visitor(said: str, shown: str) -> None:
    assert for_page(said) == shown


def test_no_sentence_of_a_diagnosis_tells_a_visitor_of_options() -> None:
    """Whatever can be found in a picture."""
    source = inspect.getsource(sys.modules[diagnose.__module__]) + inspect.getsource(thumbnails)
    told = [text for text in re.findall(r'"([^"\n]*--[a-z][^"\n]*)"', source) if " " in text]
    assert not told
    assert not any(re.search("--[a-z]", for_page(text)) for text in told)
