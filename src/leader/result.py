"""What a run yields on the way (Step) and at the end (Result)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from leader.methods.base import State
from leader.priors.ledger import Ledger


@dataclass(frozen=True)
class Step:
    """One evaluation of every image that is still under way.

    ids         image ids, [B] as a tuple
    index       how many steps the loop has yielded before
    t, u        times now and next, LongTensor [B]
    state       the state after the step
    x0          the network's estimate after plug-ins, [B, C, H, W]
    x0_hat      the same after data consistency
    sigma       Sigma_t, [B, C, H, W], or None where no estimator runs
    U           mean of Sigma per image, [B], or None
    jump        grid steps taken, LongTensor [B]
    """

    ids: tuple[int, ...]
    index: int
    t: Tensor
    u: Tensor
    state: State
    x0: Tensor
    x0_hat: Tensor
    sigma: Tensor | None
    U: Tensor | None
    jump: Tensor


@dataclass(frozen=True)
class Visit:
    """One line of an image's trace."""

    t: int
    u: int
    U: float | None
    jump: int


@dataclass(frozen=True)
class Result:
    """The restored images and everything needed to run it again.

    images         [B, C, H, W] in [-1, 1], not clamped, in the order of the problem
    posterior_std  square root of Sigma at the first visited time at or below `trust_time`, [B, C, H, W] in [-1, 1] units: the
                   model's own spread there, not calibrated; None where no estimator ran
    error_std      a calibrated standard deviation of the error, where a calibration exists, else None
    trace          per image id the visits
    ledger         what was asked of the network
    """

    images: Tensor
    posterior_std: Tensor | None
    error_std: Tensor | None
    trace: dict[int, list[Visit]]
    ledger: Ledger
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
