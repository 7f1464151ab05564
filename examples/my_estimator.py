"""An estimator of the uncertainty of one's own: `leader restore noisy.png clean.png --estimator my_estimator:Contrast`."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from leader.priors import Prediction
from leader.priors.ask import Ask
from leader.uncertainty import local_mean


@dataclass(frozen=True)
class Contrast:
    """Where the estimate has contrast it may be wrong; no extra work."""

    window: int = 5

    def __call__(self, ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
        share = ask.prior.schedule.level(t, x).sigma.clamp_max(1)
        return share * local_mean((prediction.x0 - local_mean(prediction.x0, self.window)) ** 2, self.window)
