"""What a folder is restored with: the same choices for every picture, and a digest that changes with any of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import leader
from leader.errors import LeaderError
from leader.pictures.container import WIDEST_KERNEL
from leader.pictures.picture import MOST_PIXELS
from leader.priors.fingerprint import ABSENT, fingerprint
from leader.restoration.arguments import read_table

MOST_TOGETHER = 16
"""Pictures that a worker with a GPU is given at a time."""
_WORDS = {"kernel": ("gaussian:", "disk:", "line:", "motion:"), "mask": ("random:",)}
_MOST = {"kernel": WIDEST_KERNEL**2, "mask": MOST_PIXELS}
AUTO = "auto"
"""Found for every picture anew."""
_NO_RESULT = ("threads",)
"""Arguments that change roundings at most: a folder may be finished with other ones."""
_AS_LEFT_OUT: dict[str, Any] = {"average": None, "settings": {}}
"""Arguments that say what leaving them out says: the command line gives them always, Python seldom."""


@dataclass(frozen=True)
class Choices:
    """Plain data, so that it can be sent to workers.

    arguments    those of `prepare` besides image: task, sigma, prior, seed, ...; kernels and masks as tables
    run          a run kept by --json instead, or None
    check        whether results are judged
    keep_failed  whether a result that was judged to have failed is written
    location     whether results keep where their picture was taken
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] | None = None
    check: bool = True
    keep_failed: bool = True
    location: bool = False

    @property
    def prior(self) -> str:
        """The name or path of the prior."""
        if self.run is None:
            return str(self.arguments.get("prior", "embedded"))
        about = self.run.get("prior")
        source = about.get("source") if isinstance(about, Mapping) else None
        if not isinstance(source, str):
            raise LeaderError("The kept run had a prior that was given as an object; a folder needs one by name or path.")
        return source

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU was asked for."""
        device = self.arguments.get("device") if self.run is None else self.run.get("device")
        return str(device or "cpu").partition(":")[0] != "cpu"

    @property
    def together(self) -> int:
        """How many pictures a worker is given at a time: several where one pass of the network can serve them."""
        return MOST_TOGETHER if self.on_gpu else 1

    def described(self) -> dict[str, Any]:
        """Everything that decides what a picture becomes, as JSON values; tables by their hash."""
        words = {
            name: _described(value)
            for name, value in sorted(self.arguments.items())
            if value is not None and name not in _NO_RESULT and not _as_left_out(name, value)
        }
        if "prior" in words:
            words["prior"] = {"name": Path(self.prior).name, "files": _files(self.prior)}
        run = None if self.run is None else hashlib.sha256(_canonical(self.run).encode()).hexdigest()
        return {
            "arguments": words,
            "run": run,
            "check": self.check,
            "keep_failed": self.keep_failed,
            "leader": leader.__version__,
            **({"location": True} if self.location else {}),
        }

    @cached_property
    def digest(self) -> str:
        """A hash of `described`, 24 hexadecimal digits."""
        return hashlib.sha256(_canonical(self.described()).encode()).hexdigest()[:24]


def with_tables(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the files of kernel and mask read: workers elsewhere may not have them, and they may change."""
    out = dict(arguments)
    for name, words in _WORDS.items():
        value = out.get(name)
        if isinstance(value, (str, Path)) and str(value) != AUTO and not str(value).startswith(words):
            out[name] = read_table(Path(value), name, _MOST[name])
    prior = out.get("prior")
    if isinstance(prior, (str, Path)) and Path(prior).expanduser().exists():
        out["prior"] = str(Path(prior).expanduser().resolve())
    return out


def _as_left_out(name: str, value: Any) -> bool:
    return name in _AS_LEFT_OUT and bool(value == _AS_LEFT_OUT[name])


def _files(prior: str) -> str:
    found = fingerprint(prior)
    return prior if found == ABSENT else found


def _described(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        table = np.ascontiguousarray(value)
        return {"shape": list(table.shape), "dtype": str(table.dtype), "sha256": hashlib.sha256(table.tobytes()).hexdigest()}
    return value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
