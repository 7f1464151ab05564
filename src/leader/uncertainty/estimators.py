"""Estimators of Sigma_t = diag Cov[x_0 | x_t], the local uncertainty. Second-order Tweedie:

Sigma_t = (1 - abar) / sqrt(abar)  d x0 / d x_t.

The paper writes it with the observed Fisher information, F_t = -grad^2 log p_t(x_t): Sigma_t = s_t^2 (I - (1 - abar) F_t), the
same matrix. Its diagonal is what `exact` computes and `hutchinson` estimates: these two are the paper's Sigma_t. `head`
and `learned` are variances that a network was fitted to predict, `noise-energy` and `difference` are cheap stand-ins.

Only the diagonal is used. Estimates are clamped to [0, 1]: x_0 in [-1, 1] has variance at most 1 (the bound s_t^2 of the paper
holds for log-concave p_t alone). The word "epistemic" is the paper's: Sigma_t is the posterior spread under the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from leader.by_name import Registry, build, check_count, check_settings, show_value
from leader.by_name import present_name as find_present_name
from leader.errors import LeaderError, UsageError, unknown_name
from leader.priors.ask import Ask
from leader.priors.base import Prediction, Prior
from leader.priors.ledger import Counts


class Estimator(Protocol):
    """estimator(ask, x, t, prediction, ids) -> Sigma [B, C, H, W], not clamped.

    One with a memory also has `fresh()`, itself with an empty memory: every run works with one of its own.
    """

    def __call__(self, ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor: ...


def local_mean(values: Tensor, window: int = 7) -> Tensor:
    """G: the mean over a window x window neighbourhood, over what lies inside the image."""
    return F.avg_pool2d(values, window, 1, window // 2, count_include_pad=False)


def predicted(ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
    """`head` and `learned`: the variance the network itself predicts. No extra work."""
    if prediction.variance is None:
        raise LeaderError(
            f"The prior '{ask.prior.name}' predicts no variance; fit a head with 'leader fit-variance' or use another "
            "estimator."
        )
    return prediction.variance


def noise_energy(ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
    """`noise-energy`: s_t^2 (1 - G * eps^2). A fair mean at low noise, no map. No extra work.

    The local mean of the score's square stands for minus the score's derivative: equal in expectation over x_t, not at one x_t.
    """
    level = ask.prior.schedule.level(t, x)
    return level.sigma**2 * (1 - local_mean(prediction.eps**2))


@dataclass
class Difference:
    """`difference`: local mean of the squared change of x0 since the last visit, with the past fading by `memory`."""

    memory: float = 0.5
    _last: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(self, "estimator", "difference")
        if not 0 <= self.memory < 1:
            raise LeaderError(f"The memory of the estimator 'difference' must lie in [0, 1); found {self.memory}.")

    def fresh(self) -> Difference:
        return Difference(self.memory)

    def __call__(self, ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
        rows = []
        for image, x0 in zip(ids, prediction.x0):
            if image in self._last:
                before, past = self._last[image]
                now = self.memory * past + local_mean((x0 - before)[None] ** 2)[0]
            else:
                now = torch.ones_like(x0)  # nothing is known before the second visit: the largest variance there is
            self._last[image] = (x0, now)
            rows.append(now)
        return torch.stack(rows)


@dataclass(frozen=True)
class _Found:
    """An estimate of one image [C, H, W], the s_t^2 of its time, and the visits that it still serves."""

    sigma: Tensor
    noise: Tensor
    left: int

    def at(self, noise: Tensor) -> Tensor:
        """The estimate at another s_t^2."""
        prior = (1 / self.sigma.clamp_min(LEAST_VARIANCE) - 1 / self.noise).clamp_min(0)
        return 1 / (prior + 1 / noise)


@dataclass
class Hutchinson:
    """`hutchinson`: mean over probes z = +-1 of (1 - abar)/sqrt(abar) z * (J z), then G, the mean over `window` pixels.

    every    of the visits of an image one in so many takes probes. In between what was found follows the noise, as it does
             for independent Gaussian pixels: 1/Sigma_t - 1/s_t^2 stays
    memory   the share of the last estimate, brought to the mean of the new one, that a new one keeps: the mean over a
             picture is known from one probe, its map from many
    reverse  z * (J^T z), which has the same mean: one call and a backward pass a probe. On CPUs, which have no fast
             convolutions in forward mode, several times as fast; it keeps the network's activations in memory

    >>> Hutchinson(1, every=2, memory=0.75, reverse=True).window
    7
    """

    probes: int = 1
    window: int = 7
    seed: int = 0
    every: int = 1
    memory: float = 0.0
    reverse: bool = False
    _last: dict[int, _Found] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count("The number of Hutchinson's probes", self.probes, 1, MOST_PROBES)
        check_count("Hutchinson's window", self.window, 1, 1001)
        check_count("The visits from one of Hutchinson's estimates to the next", self.every, 1, MOST_PROBES)
        check_settings(self, "estimator", "hutchinson")
        if self.window % 2 == 0:
            raise LeaderError(f"Hutchinson's window must be odd, so that it has a centre; found {self.window}.")
        if not 0 <= self.memory < 1:
            raise LeaderError(f"The memory of the estimator 'hutchinson' must lie in [0, 1); found {self.memory}.")

    def fresh(self) -> Hutchinson:
        return replace(self)

    def __call__(self, ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
        if self.every == 1 and not self.memory:
            return self._probe(ask, x, t, ids)
        noise = ask.prior.schedule.level(t, x).sigma ** 2
        last = [self._last.get(image) for image in ids]
        if all(found is not None and found.left for found in last):
            known = [found for found in last if found is not None]
            self._last.update((image, replace(found, left=found.left - 1)) for image, found in zip(ids, known))
            return torch.stack([found.at(level) for found, level in zip(known, noise)])
        sigma = torch.stack(
            [one if old is None else self._blend(old.sigma, one) for old, one in zip(last, self._probe(ask, x, t, ids))]
        )
        self._last.update((image, _Found(one, level, self.every - 1)) for image, one, level in zip(ids, sigma, noise))
        return sigma

    def _blend(self, old: Tensor, new: Tensor) -> Tensor:
        """`new`, with the memory's share of `old` at the mean of `new`; where few probes gave no positive mean, `new` alone."""
        if float(old.mean()) <= 0 or float(new.mean()) <= 0:
            return new
        return self.memory * old * (new.mean() / old.mean()) + (1 - self.memory) * new

    def _probe(self, ask: Ask, x: Tensor, t: Tensor, ids: Sequence[int]) -> Tensor:
        level = ask.prior.schedule.level(t, x)
        scale = level.cast((1 - level.abar) / level.abar.sqrt())
        signs = [
            torch.stack([self._signs(image, int(time), probe, x.shape[1:]) for image, time in zip(ids, t.tolist())]).to(x)
            for probe in range(self.probes)
        ]
        products = ask.transposed_products(x, t, signs) if self.reverse else [ask.jvp(x, t, one) for one in signs]
        total = torch.zeros_like(x)
        for one, product in zip(signs, products):
            total = total + one * product
        diagonal = scale * total / self.probes
        return local_mean(diagonal, self.window) if self.window > 1 else diagonal

    def _signs(self, image: int, time: int, probe: int, shape: torch.Size) -> Tensor:
        seed = ((self.seed * 1_000_003 + image) * 1_009 + time) * 4_093 + probe
        generator = torch.Generator().manual_seed(seed % 2**63)
        return torch.randint(0, 2, shape, generator=generator, dtype=torch.float32) * 2 - 1


MOST_EXACT = 3 * 128 * 128
"""Values of an image that `exact` serves at most: it takes a derivative of the network for each, hours for a photograph."""


def count_derivatives(given: str | Estimator | None, prior: Prior, values: int, visits: int, probes: int = 1) -> Counts:
    """What an estimator asks of the network for an image of so many values and visits, at most."""
    if given == "exact" or given is exact:
        return Counts(jvps=values * visits)
    if isinstance(given, Hutchinson):
        times = math.ceil(visits / given.every)
        return Counts(calls=times, backwards=times * given.probes) if given.reverse else Counts(jvps=times * given.probes)
    return Counts(jvps=probes * visits if given == "hutchinson" or (given == "auto" and prior.source is None) else 0)


def check_cost(given: str | Estimator | None, values: int) -> None:
    """Refuses the estimator `exact` for an image of so many values that it would not end."""
    if (given == "exact" or given is exact) and values > MOST_EXACT:
        raise LeaderError(
            f"The estimator 'exact' takes {values} derivatives of the network at every step of this picture, which would take "
            f"days; it serves {MOST_EXACT} at most (128 x 128 pixels in colour), so use 'hutchinson' or a part of the picture."
        )


def exact(ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
    """The diagonal of the full Jacobian: one JVP per pixel and channel. For tests and small images."""
    level = ask.prior.schedule.level(t, x)
    scale = level.cast((1 - level.abar) / level.abar.sqrt())
    diagonal = torch.zeros_like(x)
    flat = diagonal.view(x.shape[0], -1)
    for i in range(flat.shape[1]):
        unit = torch.zeros_like(flat)
        unit[:, i] = 1
        flat[:, i] = ask.jvp(x, t, unit.view_as(x)).reshape(flat.shape)[:, i]
    return scale * diagonal


REVISION = 1
"""Raised by one whenever an estimator gives other numbers; part of the keys of benchmark records."""


@dataclass(frozen=True)
class Entry:
    """An estimator that has a name.

    summary         where its variance comes from, in a line
    make            the estimator, with an empty memory, for a number of probes
    needs_variance  whether the prior itself must predict a variance
    """

    summary: str
    make: Callable[[int], Estimator]
    needs_variance: bool = False


_OWN: dict[str, Entry] = {
    "head": Entry("the variance that a fitted head of the prior predicts; no extra work", lambda probes: predicted, True),
    "learned": Entry(
        "the variance that the network itself was trained to predict; no extra work", lambda probes: predicted, True
    ),
    "noise-energy": Entry(
        "from the size of the predicted noise: a fair mean at low noise, hardly a map; no extra work",
        lambda probes: noise_energy,
    ),
    "difference": Entry(
        "from how much the estimate has changed since the last step; no extra work", lambda probes: Difference()
    ),
    "hutchinson": Entry(
        "the paper's: the network's derivative along random signs; one derivative a probe and step", Hutchinson
    ),
    "exact": Entry(
        "the paper's: the whole derivative of the network, pixel by pixel; for tests and tiny pictures", lambda probes: exact
    ),
}


def _adapt(found: Any, name: str) -> Entry:
    """The entry of a class of one's own: it is made without arguments, and its summary is the first line of its docstring."""
    if not (isinstance(found, type) and any("__call__" in vars(kind) for kind in found.__mro__)):
        raise TypeError(
            f"expected a class whose objects are called as leader.uncertainty.Estimator says, found {show_value(found)}"
        )
    summary = getattr(found, "summary", None) or (found.__doc__ or name).strip().splitlines()[0]
    return Entry(summary, lambda probes: found(), getattr(found, "needs_variance", False))


ESTIMATORS: Registry[Entry] = Registry("estimator", "leader.estimators", _OWN, _adapt)
"""The estimators by name. Whatever lists, checks or builds one looks here."""
FORMER_NAMES = {"fisher": "noise-energy"}
"""Names that kept runs and settings files may still use."""
MOST_PROBES = 1000
LEAST_VARIANCE = 1e-8
"""What an estimate of 0 or less, which few probes may give, counts as where it is kept."""
_WITH_SETTINGS: dict[str, type[Difference | Hutchinson]] = {"difference": Difference, "hutchinson": Hutchinson}


def read_estimator(given: str | Estimator | Mapping[str, Any] | None) -> str | Estimator | None:
    """An estimator from a table as `describe` writes it, {"name": "hutchinson", "probes": 8}; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    return build("estimator", _WITH_SETTINGS, given.get("name", ""), {key: given[key] for key in given if key != "name"})


def present_name(given: str | Estimator | None) -> str | Estimator | None:
    """An estimator as it is called today; anything but a former name is itself."""
    return find_present_name(given, FORMER_NAMES, "estimator")


def check_estimator(given: str | Estimator | None, probes: int = 1) -> None:
    """Refuses what is no estimator, by name or as an object, and probes for one that takes none."""
    if isinstance(given, str) and given not in (*FORMER_NAMES, "auto") and given not in ESTIMATORS:
        raise unknown_name("estimator", given, [*ESTIMATORS, "auto"])
    if given is not None and not isinstance(given, str) and (isinstance(given, type) or not callable(given)):
        raise UsageError(f"An estimator is given by its name or as an object such as Hutchinson(4); found {given!r}.")
    check_count("The number of probes", probes, 1, MOST_PROBES)
    if probes != 1 and given != "hutchinson":
        raise UsageError(f"Probes belong to the estimator 'hutchinson'; found {probes} of them with {describe(given)!r}.")


def describe(given: str | Estimator | None) -> Any:
    """An estimator for the settings of a run: its name, or a dict with its settings, ready for JSON."""
    if given is None or isinstance(given, str):
        return given
    name = getattr(given, "__name__", type(given).__name__).lower()
    if not is_dataclass(given):
        return name
    return {"name": name, **{item.name: getattr(given, item.name) for item in fields(given) if item.init}}


def make_estimator(given: str | Estimator, prior: Prior, probes: int = 1) -> Estimator:
    """An estimator by name or object, with a fresh memory. `auto`: the prior's own variance, or one Hutchinson probe."""
    check_estimator(given, probes)
    given = present_name(given) or given
    if not isinstance(given, str):
        fresh = getattr(given, "fresh", None)
        made: Estimator = given if fresh is None else fresh()
        return made
    if given == "auto":
        given = "head" if prior.source is not None else "hutchinson"
    entry = ESTIMATORS[given]
    if entry.needs_variance and prior.source is None:
        raise LeaderError(
            f"The prior '{prior.name}' predicts no variance; fit a head with 'leader fit-variance' or use the "
            "estimator hutchinson or noise-energy."
        )
    return entry.make(probes)
