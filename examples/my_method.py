"""A method of one's own: `leader restore small.png large.png --task sr --method my_method:Blend`.

Every step pulls the network's estimate towards the data by a share `pull` of the way and adds fresh noise of its own.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from leader.methods import Context, Estimate, Method, State


@dataclass(frozen=True)
class Blend(Method):
    name: ClassVar[str] = "blend"
    label: ClassVar[str] = "Blend"  # in tables
    summary: ClassVar[str] = "a share of the way to the data in every step"
    needs: ClassVar[str] = "the pseudo-inverse of A"
    draws: ClassVar[tuple[str, ...]] = ("swirl",)  # noise under a name of its own

    pull: float = 0.9  # a setting: checked, shown by `leader methods my_method:Blend`, kept in every record

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        # images are in [-1, 1] in here; A x - y is what the data say against x0
        return x0 - self.pull * context.problem.operator.pinv(context.problem.residual(x0))

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        after = context.level(u)
        return State(after.signal * x0_hat + after.noise * context.noise("swirl"))
