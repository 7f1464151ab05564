"""A plug-in of one's own: `leader restore small.png large.png --task sr --method ddnm --plugin my_plugin:Calm`.

Where the network is uncertain its estimate moves towards the mean of its neighbours.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import avg_pool2d

from leader.plugins import Plugin, StepInfo
from leader.problem import Problem


@dataclass(frozen=True)
class Calm(Plugin):
    name: ClassVar[str] = "calm"
    label: ClassVar[str] = "Calm"
    summary: ClassVar[str] = "smooths what is uncertain"
    needs_sigma: ClassVar[bool] = True  # so that the loop estimates Sigma

    strength: float = 0.5

    def modulate(self, x0: Tensor, sigma: Tensor, info: StepInfo, problem: Problem) -> Tensor:
        smooth = avg_pool2d(x0, 3, 1, 1, count_include_pad=False)
        return x0 + self.strength * sigma.clamp(0, 1) * (smooth - x0)
