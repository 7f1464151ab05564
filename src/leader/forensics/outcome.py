"""Why a finding is missing: nothing was found (None), or the check was not run (NotExamined)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NotExamined:
    """The check was not run; `reason` says why, in one sentence."""

    reason: str
