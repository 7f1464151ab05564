"""The image priors Phi that UCPM modulates: energy, gradient, Hessian, and two matrices above it.

All are of the form Phi(x) = sum rho(D x) with D forward differences along rows and columns, so that the gradient is D^T (W D x)
with weights W >= 0 that depend on x. Three matrices serve a step from x, none above the next for the priors here:

  hessian    H, the derivative of the gradient, the change of W with x included
  curvature  D^T W D with W frozen at x, a quadratic majoriser of Phi: equal to H for tikhonov, larger for tv
  majoriser  2 diag(D^T W D), above D^T W D by Gershgorin. With it, not with the Hessian's diagonal, the closed-form step
             decreases the objective for every Sigma >= 0: with the bare diagonal a checkerboard is reflected, not damped
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from leader.errors import unknown_name

Pair = tuple[Tensor, Tensor]


def differences(x: Tensor) -> Pair:
    """D x: forward differences down and right; zero across the last row and column."""
    down, right = torch.zeros_like(x), torch.zeros_like(x)
    down[..., :-1, :] = x[..., 1:, :] - x[..., :-1, :]
    right[..., :, :-1] = x[..., :, 1:] - x[..., :, :-1]
    return down, right


def adjoint(pair: Pair, sign: float = -1.0) -> Tensor:
    """D^T of a pair of difference images; with sign 1 their sums over the differences that touch each pixel."""
    down, right = pair
    out = torch.zeros_like(down)
    out[..., :-1, :] += sign * down[..., :-1, :]
    out[..., 1:, :] += down[..., :-1, :]
    out[..., :, :-1] += sign * right[..., :, :-1]
    out[..., :, 1:] += right[..., :, :-1]
    return out


@dataclass(frozen=True)
class ImagePrior:
    """Phi at strength 1, by its energy per image [B] and its weights W at x; `name` is what settings call it.

    second  the second derivative of rho at D x, applied to a pair of differences; None: found by differentiating the gradient
    """

    energy: Callable[[Tensor], Tensor]
    weights: Callable[[Tensor], Pair]
    name: str = "custom"
    second: Callable[[Tensor], Callable[[Pair], Pair]] | None = None

    def gradient(self, x: Tensor) -> Tensor:
        """grad Phi(x) = D^T (W D x)."""
        return self.slope_and_majoriser(x)[0]

    def slope_and_majoriser(self, x: Tensor) -> Pair:
        """grad Phi(x), and M, elementwise: the quadratic majoriser is below diag(M). The weights are made once for both."""
        (down, right), weights = differences(x), self.weights(x)
        return adjoint((weights[0] * down, weights[1] * right)), 2 * adjoint(weights, 1.0)

    def curvature(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """v -> D^T W D v with the weights at x: the quadratic majoriser of Phi, not its Hessian."""
        w_down, w_right = self.weights(x)

        def apply(v: Tensor) -> Tensor:
            down, right = differences(v)
            return adjoint((w_down * down, w_right * right))

        return apply

    def hessian(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """v -> H v, the derivative of the gradient at x along v: the Hessian of Phi itself, positive for a convex Phi."""
        if self.second is None:
            with torch.enable_grad():
                at = x.detach().requires_grad_()
                slope = self.gradient(at)
            return lambda v: torch.autograd.grad(slope, at, v, retain_graph=True)[0]  # H is its own transpose
        second = self.second(x)
        return lambda v: adjoint(second(differences(v)))


def total_variation(smoothing: float = 0.05) -> ImagePrior:
    """sum sqrt(|D x|^2 + e^2), isotropic per channel; `smoothing` e in [-1, 1] units."""

    def length(x: Tensor) -> Tensor:
        down, right = differences(x)
        return (down**2 + right**2 + smoothing**2).sqrt()

    def weights(x: Tensor) -> Pair:
        weight = 1 / length(x)
        return weight, weight

    def second(x: Tensor) -> Callable[[Pair], Pair]:
        weight = 1 / length(x)
        down, right = (weight * part for part in differences(x))

        def apply(pair: Pair) -> Pair:
            along = down * pair[0] + right * pair[1]  # along the gradient a length hardly bends
            return weight * (pair[0] - down * along), weight * (pair[1] - right * along)

        return apply

    return ImagePrior(lambda x: length(x).sum((1, 2, 3)), weights, "tv", second)


def tikhonov() -> ImagePrior:
    """1/2 |D x|^2."""

    def energy(x: Tensor) -> Tensor:
        down, right = differences(x)
        return 0.5 * (down**2 + right**2).sum((1, 2, 3))

    def weights(x: Tensor) -> Pair:
        one = torch.ones_like(x)
        return one, one

    return ImagePrior(energy, weights, "tikhonov", lambda x: lambda pair: pair)


IMAGE_PRIORS: dict[str, Callable[[], ImagePrior]] = {"tv": total_variation, "tikhonov": tikhonov}


def image_prior(name: str | ImagePrior) -> ImagePrior:
    """An image prior by name; one that is made already is itself."""
    if isinstance(name, ImagePrior):
        return name
    if name not in IMAGE_PRIORS:
        raise unknown_name("image prior", name, [*IMAGE_PRIORS, "pirp"])
    return IMAGE_PRIORS[name]()
