"""An operator of one's own, and so a task: `leader restore foggy.png clear.png --task my_operator:Fog`.

In Python: `leader.restore("foggy.png", "my_operator:Fog", options={"density": 0.3})`. The adjoint comes from autograd.
"""

import torch
from torch import Tensor

from leader.operators import LinearOperator


class Fog(LinearOperator):
    """Fog that thickens from the bottom to the top of the picture and dims what is behind it."""

    def __init__(self, image_shape: tuple[int, int, int], density: float = 0.5) -> None:
        super().__init__(image_shape)
        self.seen = 1 - density * torch.linspace(1, 0, image_shape[1])[:, None]

    def A(self, x: Tensor) -> Tensor:
        return self.seen.to(x) * x
