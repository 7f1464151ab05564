"""Compressed sensing: its measurement is no picture, so it starts from a container."""

from __future__ import annotations

import math
from typing import Any

from leader.errors import LeaderError, UsageError, unknown_name
from leader.operators.hadamard import ORDERS
from leader.restoration.tasks.base import Option, Request, Task, Values


def _ratio(ratio: Any, request: Request) -> float:
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not (math.isfinite(ratio) and 0 < ratio <= 1):
        raise UsageError(f"The share of coefficients that is measured must lie in (0, 1]; found {ratio}.")
    return ratio


def _order(order: Any, request: Request) -> str:
    if order not in ORDERS:
        raise unknown_name("order of coefficients", str(order), ORDERS)
    return str(order)


class CompressedSensing(Task):
    name = "cs"
    title = "compressed sensing"
    description = (
        "Recovers a picture from a part of its Walsh-Hadamard coefficients; sides must be powers of two. "
        "Options: ratio (default 0.25), order = random, sequency or published; in experiments seed, keep_constant and "
        "indices too."
    )
    example = "leader restore measurement.npz picture.png --task cs"
    options = (
        Option("ratio", _ratio, lambda _: None),
        Option("order", _order, lambda _: None),
    )
    is_picture = False

    def check(self, request: Request) -> None:
        if not request.degrading:
            raise LeaderError(
                "Compressed sensing starts from a measurement, not a picture; give a container (.npz) of `leader degrade`."
            )

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        return {**super().exact(given, values, seed), "seed": seed}
