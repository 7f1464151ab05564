"""Conjugate gradients for a batch, each image independently: linear systems and damped least squares."""

from collections.abc import Callable

import torch
from torch import Tensor

from leader.operators.caches import per_image


def conjugate_gradients(
    apply: Callable[[Tensor], Tensor],
    right: Tensor,
    tolerance: float = 1e-6,
    iterations: int = 300,
) -> tuple[Tensor, float]:
    """Solves apply(v) = right for a symmetric positive definite `apply`, image by image.

    right [B, ...]. Stops when every image has a relative residual below `tolerance`. Returns the solution and
    the largest relative residual reached.
    """
    rows = tuple(range(1, right.ndim))

    def dot(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum(rows, keepdim=True)

    solution = torch.zeros_like(right)
    residual = right.clone()
    direction = residual
    energy = dot(residual, residual)
    scale = energy.clamp_min(torch.finfo(right.dtype).tiny)
    for _ in range(iterations):
        if bool((energy <= tolerance**2 * scale).all()):
            break
        image = apply(direction)
        curvature = dot(direction, image)
        # An image that has converged exactly has a zero direction: leave it unchanged.
        step = torch.where(curvature > 0, energy / curvature.clamp_min(torch.finfo(right.dtype).tiny), 0)
        solution = solution + step * direction
        residual = residual - step * image
        fresh = dot(residual, residual)
        direction = residual + fresh / energy.clamp_min(torch.finfo(right.dtype).tiny) * direction
        energy = fresh
    return solution, float((energy / scale).max().sqrt())


def damped_least_squares(
    A: Callable[[Tensor], Tensor],
    AT: Callable[[Tensor], Tensor],
    right: Tensor,
    eta: Tensor,
    tolerance: float = 1e-6,
    iterations: int = 300,
) -> tuple[Tensor, float]:
    """Minimises |A x - right|^2 + eta |x|^2 image by image.

    The minimum is x = A^T (A A^T + eta)^{-1} right, A^+ right for eta = 0.

    right [B, ...]; eta broadcastable to x. The residual is kept in the space of the measurement (CGLS), which keeps float32
    usable, while A A^T would square the condition number. Stops when, for every image, the last ten steps lowered the objective
    by less than tolerance^2 of all that was gained: then |A (x - x*)| is about tolerance |A x*|. Returns x and the largest
    relative residual |A^T (right - A x) - eta x| / |A^T right|.
    """
    tiny, unit = torch.finfo(right.dtype).tiny, torch.finfo(right.dtype).eps

    def energy(v: Tensor) -> Tensor:
        return (v * v).flatten(1).sum(1)

    residual = right.clone()
    gradient = AT(residual)
    x = torch.zeros_like(gradient)
    direction = gradient
    slope = start = energy(gradient)
    largest = start / energy(right).clamp_min(tiny)
    total = torch.zeros_like(slope)
    gains: list[Tensor] = []
    for _ in range(iterations):
        # A gradient that consists only of the rounding of A^T residual is useless, and following it diverges.
        active = slope > (4 * unit) ** 2 * largest * energy(residual) + tiny
        settled = torch.stack(gains[-10:]).sum(0) <= tolerance**2 * total if len(gains) >= 10 else ~active
        if bool((~active | settled).all()):
            break
        image = A(direction)
        curvature = energy(image) + energy(eta.sqrt() * direction)
        largest = torch.maximum(largest, energy(image) / energy(direction).clamp_min(tiny))
        step = torch.where(active & (curvature > 0), slope / curvature.clamp_min(tiny), 0)
        x = x + per_image(step, x) * direction
        residual = residual - per_image(step, residual) * image
        gradient = AT(residual) - eta * x
        gains.append(step * slope)
        total = total + gains[-1]
        fresh = energy(gradient)
        bend = torch.where(active, fresh / slope.clamp_min(tiny), 0)
        direction = gradient + per_image(bend, x) * direction
        slope = torch.where(active, fresh, slope)
    return x, float((slope / start.clamp_min(tiny)).max().sqrt())
