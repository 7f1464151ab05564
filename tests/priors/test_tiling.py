"""Tiling and padding: agreement with the whole image, any size, bounded memory, every kind of derivative."""

import weakref
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from leader.priors.base import Prediction, Prior, from_x0
from leader.priors.ledger import Ledger, recording
from leader.priors.tiling import Axis, PaddedPrior, TiledPrior, any_size, reflect_indices
from leader.schedule import Schedule
from tests.sentences import refusal


class Convolutional(Prior):
    """A prior without norms: convolutions of reach `depth`, answering with x0 and a positive variance."""

    channels = 3

    def __init__(self, depth: int = 4, width: int = 4) -> None:
        super().__init__(Schedule.linear())
        generator = torch.Generator().manual_seed(depth)
        sizes = [3] + [width] * (depth - 1) + [6]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(sizes))
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) / 3
            parameter.requires_grad_(False)

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        h = x
        for layer in self.layers:
            h = torch.tanh(layer(h))
        return from_x0(x, t, h[:, :3], self.schedule, h[:, 3:].exp())


def image(height: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(seed))


T = torch.tensor([200])


@pytest.mark.parametrize(
    ("size", "tile"), [((64, 64), 64), ((100, 64), 64), ((65, 130), 64), ((199, 210), 64), ((110, 100), (64, 40))]
)
def test_tiled_and_whole_agree(size: tuple[int, int], tile: int | tuple[int, int]) -> None:
    prior = Convolutional()
    x = image(*size)
    whole, tiled = prior.predict(x, T), TiledPrior(prior, tile, 32 if tile == 64 else 20).predict(x, T)
    assert whole.variance is not None and tiled.variance is not None
    assert float((whole.x0 - tiled.x0).abs().max()) < 1e-4
    assert float((whole.variance - tiled.variance).abs().max()) < 1e-4
    level = prior.schedule.level(T)
    assert torch.allclose(level.signal * tiled.x0 + level.noise * tiled.eps, x, atol=1e-5)


@given(
    length=st.integers(1, 700),
    tile=st.sampled_from([16, 64, 96]),
    share=st.integers(1, 8),
    multiple=st.sampled_from([1, 4, 16]),
)
@settings(max_examples=60, deadline=None)
def test_tiles_cover_everything_and_weights_add_up_to_one(length: int, tile: int, share: int, multiple: int) -> None:
    overlap = max(1, tile * share // 16)
    axis = Axis(length, tile, overlap, multiple)
    total = torch.zeros(axis.length, dtype=torch.float64)
    for start, row in zip(axis.starts, axis.weights(torch.device("cpu"))):
        assert start % (multiple if tile > multiple else 1) == 0 and bool((row >= 0).all())
        total[start : start + tile] += row
    assert axis.length >= length
    assert torch.allclose(total, torch.ones_like(total))
    for left, right in zip(axis.starts, axis.starts[1:]):
        assert left < right and left + tile - right >= overlap


@pytest.mark.parametrize("size", [(1, 1), (2, 7), (20, 40), (33, 90)])
def test_images_smaller_than_a_tile(size: tuple[int, int]) -> None:
    prior = TiledPrior(Convolutional(), 64, 16)
    answer = prior.predict(image(*size), T)
    assert answer.x0.shape == (1, 3, *size) and answer.variance is not None
    assert answer.variance.shape == (1, 3, *size) and bool(torch.isfinite(answer.x0).all())


def test_reflection_continues_as_often_as_needed() -> None:
    assert reflect_indices(3, 9, torch.device("cpu")).tolist() == [0, 1, 2, 1, 0, 1, 2, 1, 0]
    assert reflect_indices(1, 3, torch.device("cpu")).tolist() == [0, 0, 0]


class Strict(Convolutional):
    """Refuses sizes that are no multiples of 8; counts the pixels it saw."""

    multiple = 8
    seen = 0

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        assert x.shape[-1] % 8 == 0 and x.shape[-2] % 8 == 0
        self.seen += x.shape[-1] * x.shape[-2]
        return super()._predict(x, t)


def test_padding_to_multiples_leaves_the_inside_alone_and_counts_the_padding() -> None:
    base = Strict()
    prior = any_size(base)
    assert isinstance(prior, PaddedPrior)
    x = image(21, 37)
    with recording(Ledger()) as ledger:
        answer, bare = prior.predict(x, T), Convolutional._predict(base, x, T)
    inner = (..., slice(21 - 4), slice(37 - 4))  # the reach from the padded sides
    assert answer.variance is not None and bare.variance is not None
    for found, expected in ((answer.x0, bare.x0), (answer.eps, bare.eps), (answer.variance, bare.variance)):
        assert found.shape == x.shape and torch.allclose(found[inner], expected[inner], atol=1e-5)
    assert ledger.total.pixels == base.seen == 24 * 40


def test_the_ledger_counts_one_call_and_all_tiles() -> None:
    base = Strict()
    prior = TiledPrior(base, 32, 8)
    with recording(Ledger()) as ledger:
        prior.predict(image(70, 50), T)
    assert ledger.total.calls == 1 and ledger.total.pixels == base.seen == 3 * 2 * 32 * 32


def test_any_size_chooses() -> None:
    free, tied = Convolutional(), Convolutional()
    tied.size = (64, 32)
    assert any_size(free) is free
    tiled = any_size(tied)
    assert isinstance(tiled, TiledPrior) and tiled.tile == (64, 32) and tiled.overlap == 16
    assert tiled.size is None and tiled.multiple == 1
    asked = any_size(free, tile=48, overlap=8)
    assert isinstance(asked, TiledPrior) and asked.tile == (48, 48) and asked.overlap == 8
    assert "takes only 64 x 32" in refusal(TiledPrior, tied, 64)
    assert "overlap by 1 to 32" in refusal(TiledPrior, free, 64, 40)
    assert "multiples of 8" in refusal(TiledPrior, Strict(), (32, 36), 8)


def test_gradients_and_tangents_agree_with_the_whole() -> None:
    prior, x, z = Convolutional(), image(80, 70), image(80, 70, seed=1)
    tiled = TiledPrior(prior, 64, 32)

    def gradient(p: Prior) -> Tensor:
        v = x.clone().requires_grad_()
        return torch.autograd.grad((p.predict(v, T).x0 * z).sum(), v)[0]

    def tangent(p: Prior) -> Tensor:
        found: Tensor = torch.func.jvp(lambda v: p.predict(v, T).x0, (x,), (z,))[1]
        return found

    assert torch.allclose(gradient(prior), gradient(tiled), atol=1e-4)
    assert torch.allclose(tangent(prior), tangent(tiled), atol=1e-4)


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of live tensors that were made while it was on, and their peak."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = 0
        self.known: set[int] = set()

    def _free(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.live -= size

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {arg.untyped_storage()._cdata for arg in args if isinstance(arg, Tensor)}
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.known | given:  # views of what was there are not memory
                    self.known.add(storage._cdata)
                    self.live += storage.nbytes()
                    self.peak = max(self.peak, self.live)
                    weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        return out


class Metered(Convolutional):
    """Meters what its network makes, however long that lives."""

    def __init__(self) -> None:
        super().__init__(depth=3, width=4)
        self.meter = Meter()

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        with self.meter:
            return super()._predict(x, t)


def network_memory(side: int, differentiate: bool, tiled: bool = True) -> int:
    base = Metered()
    prior = TiledPrior(base, 256, 64) if tiled else base
    x = image(side, side).requires_grad_(differentiate)
    answer = prior.predict(x, T)
    if differentiate:
        torch.autograd.grad(answer.x0.square().sum(), x)
    return base.meter.peak


@pytest.mark.parametrize("differentiate", [False, True])
def test_network_memory_does_not_grow_with_the_image(differentiate: bool) -> None:
    small, large = (network_memory(side, differentiate) for side in (512, 1024))
    assert small > 256 * 256 * 4 * 4  # at least one layer of one tile was metered
    assert large <= 1.3 * small
    assert network_memory(1024, differentiate, tiled=False) > 4 * large
