"""Ask: the interface to a prior for the loop, methods and estimators, with plug-ins applied and every call counted.

Counts go to the ledger of the current run (`leader.priors.ledger.recording`).
"""

import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leader.priors.base import Prediction, Prior, check_derivative
from leader.priors.ledger import Counts, record, uncounted

_FORWARD_MODE = threading.Lock()
"""Torch has one forward-mode differentiation level per process: threads take turns."""

Predict = Callable[[Tensor, Tensor], Prediction]


class Ask:
    """The prior's prediction as a function, with its derivatives."""

    def __init__(self, prior: Prior, function: Predict | None = None) -> None:
        self.prior = prior
        self.function = function or prior.predict

    def __call__(self, x: Tensor, t: Tensor) -> Prediction:
        found = self.function(x, t)
        check_derivative(found.x0, x, self.prior.name)
        return found

    def gradient(self, values: Tensor, x: Tensor) -> Tensor:
        """d(sum of values)/dx, one backward pass per image; values [B] each depend on their own image only."""
        (gradient,) = torch.autograd.grad(values.sum(), x)
        record([Counts(backwards=1)] * x.shape[0])
        return gradient

    def jvp(self, x: Tensor, t: Tensor, direction: Tensor) -> Tensor:
        """(d x0 / d x) direction, by forward-mode differentiation; counted as a JVP, not as a call."""
        with uncounted(), _FORWARD_MODE:
            tangent: Tensor = torch.func.jvp(lambda v: self(v, t).x0, (x,), (direction,))[1]
        record([Counts(jvps=1)] * x.shape[0])
        return tangent

    def transposed_products(self, x: Tensor, t: Tensor, directions: Sequence[Tensor]) -> list[Tensor]:
        """(d x0 / d x)^T direction for each of them, by reverse mode; counted as a call, and a backward pass each."""
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            x0 = self(point, t).x0
        last = len(directions) - 1
        products = [torch.autograd.grad(x0, point, one, retain_graph=number < last)[0] for number, one in enumerate(directions)]
        record([Counts(backwards=len(directions))] * x.shape[0])
        return products
