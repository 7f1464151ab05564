"""The settings of a folder: the same request for every picture, and a digest that changes with any choice."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import leader
from leader.priors.loading import ABSENT, fingerprint
from leader.restoration.request import RestoreRequest

MOST_TOGETHER = 16
"""Pictures per job for a worker with a GPU."""
_NO_RESULT = ("threads",)
"""Choices that change at most the rounding: a folder may be finished with different ones."""


@dataclass(frozen=True)
class FolderChoices:
    """The choices of a run over a folder, as plain data that can be sent to workers.

    request      the request; kernels and masks as tables
    run          the kept run that the request repeats, or None
    check        whether results get a verdict
    keep_failed  whether a result whose verdict is "failed" is written
    location     whether results keep the location of their picture
    """

    request: RestoreRequest = field(default_factory=RestoreRequest)
    run: dict[str, Any] | None = None
    check: bool = True
    keep_failed: bool = True
    location: bool = False

    @property
    def prior(self) -> str:
        return str(self.request.prior)

    @property
    def on_gpu(self) -> bool:
        return str(self.request.device or "cpu").partition(":")[0] != "cpu"

    @property
    def together(self) -> int:
        """Pictures per job: several if they can share a pass of the network."""
        return MOST_TOGETHER if self.on_gpu else 1

    def describe(self) -> dict[str, Any]:
        """Everything that determines the result, as JSON values; tables by their hash."""
        words: dict[str, Any] = {}
        if self.run is None:
            given = self.request.arguments().items()
            words = {name: _describe(value) for name, value in given if name not in _NO_RESULT and not _is_empty(value)}
            found = fingerprint(self.prior)
            words["prior"] = {"name": Path(self.prior).name, "files": self.prior if found == ABSENT else found}
        run = None if self.run is None else hashlib.sha256(_canonical(self.run).encode()).hexdigest()
        return {
            "arguments": words,
            "run": run,
            "check": self.check,
            "keep_failed": self.keep_failed,
            "location": self.location,
            "leader": leader.__version__,
        }

    @cached_property
    def digest(self) -> str:
        """A hash of `describe`, 24 hexadecimal digits."""
        return hashlib.sha256(_canonical(self.describe()).encode()).hexdigest()[:24]


def _describe(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        table = np.ascontiguousarray(value)
        return {"shape": list(table.shape), "dtype": str(table.dtype), "sha256": hashlib.sha256(table.tobytes()).hexdigest()}
    return value


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict) and not value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
