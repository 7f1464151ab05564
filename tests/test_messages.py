"""Notes: one sentence for each reader, and data beside it."""

import ast
import copy
import json
import pickle
import re
from pathlib import Path

import pytest

import leader
from leader.messages import Note, Reader, Remedy, render
from leader.web.choices import TASK_WORDS

WEAK = Note("weak noise", "The noise is weak.", Remedy("remove it", {"sigma": 0.012}), {"level": 0.012})
DOUBT = Note("narrowed", "A narrower kernel is used.", Remedy("keep the kernel", {"kernel_doubt": 0}))
SMALL = Note("small", "It is small.", Remedy("enlarge it", {"task": "sr"}))
GUESS = Note("guess", "it is a guess", Remedy("say what you know", {"down": None}))


@pytest.mark.parametrize(
    ("note", "reader", "text"),
    [
        (WEAK, "python", "The noise is weak; use sigma=0.012 to remove it."),
        (WEAK, "terminal", "The noise is weak; use --sigma 0.012 to remove it."),
        (WEAK, "page", 'The noise is weak; set the noise level under "Expert settings" to 0.012 to remove it.'),
        (DOUBT, "terminal", "A narrower kernel is used; use --kernel-doubt 0 to keep the kernel."),
        (DOUBT, "page", "A narrower kernel is used."),
        (Note("both", "It is noisy.", Remedy("restore it", {"sigma": 0.1, "steps": 9})), "page", "It is noisy."),
        (SMALL, "python", "It is small; use task='sr' to enlarge it."),
        (SMALL, "page", 'It is small; choose "It is too small" to enlarge it.'),
        (GUESS, "terminal", "it is a guess; use --down to say what you know"),
        ("It is sharp -- very.", "page", "It is sharp -- very."),
    ],
)
def test_a_remedy_is_worded_for_its_reader(note: str, reader: Reader, text: str) -> None:
    assert render(note, reader, TASK_WORDS) == text


def test_a_note_is_a_plain_sentence_that_keeps_its_data() -> None:
    assert json.dumps(WEAK) == json.dumps(render(WEAK, "python")) and (WEAK.code, WEAK.values) == (
        "weak noise",
        {"level": 0.012},
    )
    for again in (copy.deepcopy(WEAK), pickle.loads(pickle.dumps(WEAK))):
        assert again == WEAK and render(again, "terminal") == render(WEAK, "terminal") and again.code == WEAK.code


def test_no_sentence_of_the_library_names_an_option_of_the_command_line() -> None:
    """Rooms that talk to Python and the page as well as to the terminal; commands shown as examples are no sentences."""
    rooms = ("trust", "restoration", "presets", "pictures", "forensics")
    found = []
    for path in (path for room in rooms for path in sorted((Path(leader.__file__).parent / room).rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in documentation else None
            if isinstance(text, str) and re.search(r"(^| )--[a-z].* | --[a-z]", text) and not text.startswith("leader "):
                found.append(f"{path.name}: {text}")
    assert found == []
