"""deepinv in both directions: its linear physics as operators, its denoisers as priors, our methods as its reconstructors.

deepinv's images are in [0, 1], like those of this package's public interface.

    model = leader.interop.deepinv.Reconstructor("ddnm", steps=20)   # in place of one of deepinv's
    x_hat = model(y, physics)
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from leader.errors import LeaderError
from leader.operators import Blur, Denoising, Inpainting, LinearOperator
from leader.priors.adapters import DenoiserPrior
from leader.priors.base import Prior
from leader.priors.loading import load_prior
from leader.problem import Problem
from leader.result import to_unit_range
from leader.sampler import Sampler

if TYPE_CHECKING:
    _Base = nn.Module
else:
    try:
        from deepinv.models import Reconstructor as _Base
    except (ImportError, RuntimeError):  # not installed, or incompatible with this torch; its interface is that of a Module
        _Base = nn.Module


class PhysicsOperator(LinearOperator):
    """A linear physics of deepinv (`A`, `A_adjoint`) as an operator, without its noise.

    image_shape  (C, H, W) of the images it measures
    params       of the physics, such as a mask, passed to both functions
    """

    def __init__(self, physics: Any, image_shape: tuple[int, int, int], **params: Any) -> None:
        super().__init__(image_shape)
        if not (callable(getattr(physics, "A", None)) and callable(getattr(physics, "A_adjoint", None))):
            raise LeaderError(f"A linear physics has A and A_adjoint; found {type(physics).__name__}: use a deepinv physics.")
        self.physics, self.params, self.task = physics, params, type(physics).__name__.lower()

    def A(self, x: Tensor) -> Tensor:
        measured: Tensor = self.physics.A(x, **self.params)
        return measured

    def AT(self, y: Tensor) -> Tensor:
        back: Tensor = self.physics.A_adjoint(y, **self.params)
        return back


def as_operator(physics: Any, image_shape: tuple[int, int, int], **params: Any) -> LinearOperator:
    """A linear physics of deepinv as an operator; rejected if A_adjoint is not the adjoint of A.

    Circular blurs, masks and the identity become operators of this package, whose singular values every method can use; for
    others the inverses are found by conjugate gradients.
    """
    from leader.operators.generic import check_adjoint

    operator = PhysicsOperator(physics, image_shape, **params)
    weights = next(physics.buffers(), None) if isinstance(physics, nn.Module) else None
    like = torch.empty(1, device=None if weights is None else weights.device)
    measured = check_adjoint(operator, like)
    operator.measurement_shape = tuple(measured.shape[1:])
    return operator if params else _find_twin(operator, like) or operator


def _find_twin(operator: PhysicsOperator, like: Tensor) -> LinearOperator | None:
    """The equivalent operator of this package; None if there is none."""
    shape = operator.image_shape
    makers: list[Callable[[], LinearOperator]] = [lambda: Denoising(shape)]
    for name, kind in (("filter", Blur), ("mask", Inpainting)):
        values = getattr(operator.physics, name, None)
        if isinstance(values, Tensor) and values.ndim == 4 and len(values) == 1:
            makers.append(partial(kind, shape, values[0, 0].cpu()))
    x = torch.rand(1, *shape, generator=torch.Generator().manual_seed(0)).to(like)
    wanted = operator.A(x)
    for make in makers:
        try:
            twin = make()
            found = twin.A(x)
        except LeaderError:  # an unsupported filter or mask
            continue
        if found.shape == wanted.shape and torch.allclose(found, wanted, atol=1e-5):
            return twin
    return None


def as_prior(denoiser: nn.Module, **about: Any) -> DenoiserPrior:
    """A denoiser of deepinv, denoiser(x, sigma) for images in [0, 1], as a prior; `about` as in `DenoiserPrior`."""
    return DenoiserPrior(denoiser, unit_range=True, **{"name": type(denoiser).__name__.lower(), **about})


class Reconstructor(_Base):  # type: ignore[misc, unused-ignore]
    """A method of this package with the interface of a deepinv reconstructor: `model(y, physics)` -> images in [0, 1].

    method, choices  as in `leader.Sampler`: plugins, steps, settings
    prior            as in `leader.load_prior`, or a denoiser of deepinv
    sigma            noise level for [0, 1] images; None: that of the physics' noise model, 0 if it has none
    """

    def __init__(
        self, method: Any = "ddnm", *, prior: Any = "embedded", sigma: float | None = None, seed: int = 0, **choices: Any
    ) -> None:
        super().__init__()
        denoises = isinstance(prior, nn.Module) and not isinstance(prior, Prior)
        self.prior = load_prior(as_prior(prior) if denoises else prior)
        self.sampler = Sampler(self.prior, method, **choices)
        self.sigma, self.seed = sigma, seed

    def forward(self, y: Tensor, physics: Any, **kwargs: Any) -> Tensor:
        """y [B, ...] measured by a linear physics -> [B, C, H, W] in [0, 1]; `kwargs` are parameters of the physics."""
        shape = physics.A_adjoint(y, **kwargs).shape[1:]
        operator = as_operator(physics, (int(shape[0]), int(shape[1]), int(shape[2])), **kwargs)
        level = _read_sigma(physics, len(y)) if self.sigma is None else self.sigma
        return to_unit_range(self.sampler.run(Problem(y, operator, level), self.seed).images)


def _read_sigma(physics: Any, batch: int) -> float | Tensor:
    """The noise level of the physics' Gaussian noise; 0 if it has no noise."""
    model = getattr(physics, "noise_model", None)
    sigma = getattr(model, "sigma", None)
    if sigma is None:
        if model is not None and type(model).__name__ != "ZeroNoise":
            raise LeaderError(f"The noise of a {type(model).__name__} is not Gaussian; give the noise level as sigma.")
        return 0.0
    values = torch.as_tensor(sigma, dtype=torch.float64).detach().cpu().reshape(-1)
    return values if len(values) == batch else float(values.max())
