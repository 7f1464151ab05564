"""What it means that a finding is missing: nothing was found (None), or nobody looked (NotExamined)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NotExamined:
    """Nobody looked; `reason` says why, in one sentence."""

    reason: str
