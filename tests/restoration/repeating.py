"""A run, and the same run from what its JSON holds."""

import json
from typing import Any

import numpy as np

from leader.restoration.repeat import arguments_of
from leader.restoration.restore import restore
from leader.restoration.restored import Restoration
from tests.cheap_prior import CheapPrior


def repeat(image: Any, task: str, **choices: Any) -> tuple[Restoration, Restoration, dict[str, Any]]:
    """A restoration by the cheap prior, its repetition, which gives the same picture, and the JSON between them."""
    prior = CheapPrior()
    first = restore(image, task, prior=prior, check=False, **choices)
    kept: dict[str, Any] = json.loads(json.dumps(first.summary()))
    again = restore(image, check=False, **arguments_of(kept, prior))
    assert np.array_equal(again.array, first.array) and again.sigma == first.sigma
    return first, again, kept
