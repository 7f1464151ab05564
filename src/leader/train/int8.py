"""Fits a pyramid's integers of eight bits to what its layers see on noisy photographs.

Layer by layer, on the rounded inputs that the layers before leave: first the float weights that answer these inputs as the
network answers its own (least squares), then those weights rounded one after the other, each error carried over to the weights
whose inputs resemble its own (GPTQ, Frantar et al. 2022), then the bias that leaves no mean error. Rounded to the nearest,
the same weights err twice to four times as much.
"""

from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from leader.files import replacing, sha256_of
from leader.priors.int8 import LARGEST, find_layer, int8_file, list_layers
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import Body, PyramidConfig

SIDE, MOST_CROPS = 96, 16
STRIDE = 5
"""Every fifth position is looked at: neighbours tell nearly the same."""
CONSTANT = 32.0
"""Value of the input whose weight is the bias: about that of a byte."""
DAMPING = 0.01
"""Added to the inputs' mean square, as a share: directions that photographs hardly contain keep their weights."""


def choose_levels(config: PyramidConfig) -> dict[str, tuple[float, ...]]:
    """The noise levels that a body is fitted to: those that it answers where rounding is far below the uncertainty."""
    top, border = config.sigma_max, config.expert_max
    if not config.cascade:
        return {"main": (0.1 * top, 0.3 * top, top)}
    return {"main": (border, (border * top) ** 0.5, top), "expert": (0.4 * border, 0.7 * border, border)}


@torch.no_grad()
def fit_int8(prior: PyramidPrior, clean: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """The tensors of `leader.priors.int8` for a pyramid.

    clean  [N, 3, H, W] in [0, 1], of which at most 16, evenly spread, are used
    """
    chosen = clean[:: max(1, len(clean) // MOST_CROPS)][:MOST_CROPS]
    found: dict[str, Tensor] = {}
    for part, levels in choose_levels(prior.net.config).items():
        generator = torch.Generator().manual_seed(seed)
        cells: list[Tensor] = []
        for level in levels:
            noisy = F.pixel_unshuffle(chosen + level * torch.randn(chosen.shape, generator=generator), 2)
            cells += torch.split(torch.cat([noisy, torch.full_like(noisy[:, :1], level)], 1), 1)
        found |= {f"{part}.{name}": tensor for name, tensor in _fit_body(getattr(prior.net, part), cells).items()}
    return found


def save_int8(tensors: dict[str, Tensor], weights: Path) -> None:
    with replacing(int8_file(weights)) as temporary:
        save_file(tensors, temporary, metadata={"weights": sha256_of(weights)})


def _fit_body(body: Body, cells: list[Tensor]) -> dict[str, Tensor]:
    """The tensors of a body from its inputs [1, 13, h, w]."""
    names = list_layers(body)
    exact = [F.relu(body.convs[0](one)) for one in cells]
    steps = choose_steps(exact)
    rounded = [_to_bytes(one / _per_channel(steps)) for one in exact]
    found = {"steps": steps}
    for name in names:
        layer, inner = find_layer(body, name), name.isdecimal()
        answers = [_apply(layer, one) for one in exact]
        after = choose_steps([F.relu(one) for one in answers]) if inner else torch.ones(layer.out_channels)
        weight = layer.weight[:, : len(steps)] * _per_channel(steps) / after.view(-1, 1, 1, 1)
        targets = [one / _per_channel(after) for one in answers]
        integers, scale, bias = fit_layer(weight, rounded, targets)
        found |= {f"{name}.weight": integers, f"{name}.scale": scale, f"{name}.bias": bias}
        if inner:  # the two last ones see the same features
            exact, steps = [F.relu(one) for one in answers], after
            dense = integers * scale.view(-1, 1, 1, 1)
            rounded = [_to_bytes(F.conv2d(one, dense, bias, padding=1)) for one in rounded]
    return found


def choose_steps(activations: list[Tensor]) -> Tensor:
    """What a byte of each channel counts, [C]: the geometric mean of the channel's own largest value and that of all.

    A channel's own alone would make the weights of small channels too coarse, the largest of all the small activations.
    """
    most = torch.stack([one.amax((0, 2, 3)) for one in activations]).amax(0)
    top = most.max().clamp_min(1e-6)
    return (most.clamp_min(1e-3 * top) * top).sqrt() / 255


def _per_channel(values: Tensor) -> Tensor:
    return values.view(1, -1, 1, 1)


def _to_bytes(values: Tensor) -> Tensor:
    return values.round().clamp_(0, 255)


def _apply(layer: nn.Conv2d, features: Tensor) -> Tensor:
    """A layer's answer to features; the head's knowledge of noise and level, which has weights of its own, is left out."""
    return F.conv2d(features, layer.weight[:, : features.shape[1]], layer.bias, padding=1)


def fit_layer(weight: Tensor, inputs: list[Tensor], targets: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Integer weights [out, in, 3, 3], scales [out] and biases [out] whose answers to bytes are closest to the targets.

    weight   in float32, from which the integers depart as little as the targets ask
    inputs   [1, in, h, w], whole numbers; targets: [1, out, h, w]
    """
    flat = weight.flatten(1)
    gram, cross = torch.zeros(2 * [flat.shape[1] + 1], dtype=torch.float64), torch.zeros(len(flat), flat.shape[1] + 1)
    for one, target in zip(inputs, targets):
        patches = F.pad(F.unfold(one, 3, padding=1)[0, :, ::STRIDE], (0, 0, 0, 1), value=CONSTANT)
        gram += patches @ patches.T
        cross += (target.flatten(2)[0, :, ::STRIDE] - flat @ patches[:-1]) @ patches.T
    # the bias follows in any case, so what it explains is taken out of both sums: that of the constant last input
    known, answers = gram[:-1, -1] / gram[-1, -1], cross.double()
    free = gram[:-1, :-1] - torch.outer(gram[:-1, -1], known)
    free += DAMPING * gram.diagonal()[:-1].mean() * torch.eye(len(free), dtype=torch.float64)
    better = flat + torch.linalg.solve(free, (answers[:, :-1] - torch.outer(answers[:, -1], known)).T).T
    scale = (better.abs().amax(1) / LARGEST).clamp_min(1e-12)
    integers = carry_errors(better / scale.view(-1, 1), free)
    moved = integers * scale.view(-1, 1) - flat
    bias = CONSTANT * (answers[:, -1] / gram[-1, -1] - moved @ known)
    return integers.to(torch.int8).view(weight.shape), scale.float(), bias.float()


def carry_errors(weight: Tensor, gram: Tensor, block: int = 96) -> Tensor:
    """Whole numbers [out, n] near `weight`, rounded one by one, so that their answers to inputs of this Gram matrix are close.

    The inputs with the largest power come first; the rounding error of each goes to those that are left, in proportion to
    what they have in common with it.
    """
    order = gram.diagonal().argsort(descending=True)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram[order][:, order]))
    upper = torch.linalg.cholesky(inverse, upper=True)
    left, chosen = weight[:, order].clone(), torch.empty_like(weight)
    for begin, end in pairwise([*range(0, len(order), block), len(order)]):
        errors = torch.empty_like(left[:, begin:end])
        for column in range(begin, end):
            whole = left[:, column].round().clamp(-LARGEST, LARGEST)
            errors[:, column - begin] = (left[:, column] - whole) / upper[column, column]
            left[:, column:end] -= errors[:, column - begin, None] * upper[column, column:end]
            chosen[:, order[column]] = whole
        left[:, end:] -= errors @ upper[begin:end, end:]
    return chosen
