"""What the page sees in a picture, and the repair it proposes: the diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leader.messages import render
from leader.restoration.diagnose import diagnose
from leader.web.choices import TASK_WORDS, kind_of


@dataclass(frozen=True)
class Proposal:
    """Plain sentences, and (task, options) of the repair; task None: none is proposed."""

    words: tuple[str, ...] = ()
    task: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str | None:
        return None if self.task is None else kind_of(self.task)

    @property
    def filled(self) -> str:
        """What is filled in without a brush, as a sentence; empty: nothing."""
        if self.kind != "missing":
            return ""
        return "The damage that was found is filled in." if "mask" in self.options else "The transparent parts are filled in."

    @property
    def repair(self) -> tuple[str, Mapping[str, Any]] | None:
        return None if self.task is None else (self.task, self.options)


def propose(path: Path) -> Proposal:
    """The diagnosis of a picture file."""
    found = diagnose(path)
    advice = found.advice
    words = tuple(render(sentence, "page", TASK_WORDS) for sentence in found.sentences())
    return Proposal(words) if advice is None else Proposal(words, advice.task, dict(advice.options))
