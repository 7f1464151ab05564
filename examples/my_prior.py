"""A prior of one's own: `leader restore noisy.png clean.png --task denoise --prior my_prior:Smooth`.

Any network fits in here that answers for the clean image in [-1, 1] behind x = sqrt(abar) x0 + sqrt(1 - abar) noise; for
common ones `leader.priors.NetworkPrior` and `DenoiserPrior` do the arithmetic.
"""

from torch import Tensor
from torch.nn.functional import avg_pool2d

from leader import Schedule
from leader.priors import Prediction, Prior


class Smooth(Prior):
    """The mean of a window that grows with the noise."""

    name = "smooth"

    def __init__(self) -> None:
        super().__init__(Schedule.linear())

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        level = self.schedule.level(t, x)
        side = 3 if float(level.sigma.max()) < 0.5 else 7
        x0 = avg_pool2d(x, side, 1, side // 2, count_include_pad=False) / level.signal
        return Prediction(x0, (x - level.signal * x0) / level.noise)
