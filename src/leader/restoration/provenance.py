"""The note a restored picture carries: which program made it, by which task, method and seed, and that parts are invented.

It says the same for the same run, wherever and whenever that happens: no times, no names of files.
"""

from __future__ import annotations

import json
import re
from typing import Any

import leader
from leader.pictures.metadata import OURS, Stamp
from leader.priors.catalogue import ENTRIES
from leader.restoration.pose import PosedProblem
from leader.restoration.repeat import Origin
from leader.result import Result

_WORD = re.compile(r"[a-z][a-z0-9-]{0,30}")
"""Options that are words, such as "bicubic"; whatever could be the name of a file is left out."""


def stamp_of(posed: PosedProblem, result: Result, origin: Origin) -> Stamp:
    """What a run says of itself in the metadata of its picture."""
    program = f"leader {leader.__version__}"
    method = str(result.settings["method"]["name"])
    record: dict[str, Any] = {
        "program": program,
        "task": posed.task,
        "options": {name: value for name, value in sorted(posed.options.items()) if _is_plain(value)},
        "sigma": float(f"{posed.sigma:.6g}"),
        "method": method,
        "plugins": [str(item["name"]) for item in result.settings["plugins"]],
        "steps": result.settings["steps"],
        "seed": result.seed,
        "prior": origin.prior if origin.prior == "embedded" or origin.prior in ENTRIES else "other",
        "weights": None if origin.prior_sha256 is None else origin.prior_sha256[:16],
        "invented": True,
    }
    sentence = f"{OURS} {leader.__version__}: task {posed.task}, method {method}, seed {result.seed}; parts are invented."
    return Stamp(program, sentence, json.dumps(record, separators=(",", ":"), default=str))


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and _WORD.fullmatch(value) is not None)
