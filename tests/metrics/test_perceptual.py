"""LPIPS against an independent NumPy network, and against distances of the unrounded float32 weights.

The published implementation's own values on five photographs are reproduced by `tools/convert_lpips.py
--calibration` (largest difference 1e-4); they are not here because their archive's licence is non-commercial.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.torch import load_file, save_file

from leader.metrics import METRICS, lpips, perceptual
from tests.metrics.pictures import Array, batch, waves
from tests.sentences import refusal

SHIPPED = Path(perceptual.__file__).parent / "weights" / "lpips_alex.safetensors"

# Written out again, so that a slip in the package's tables shows: (stride, padding, pool window before, tap).
ALEX = [(4, 2, 0, True), (1, 2, 3, True), (1, 1, 3, True), (1, 1, 0, True), (1, 1, 0, True)]
VGG = [(1, 1, 2 if i in (2, 4, 7, 10) else 0, i in (1, 3, 6, 9, 12)) for i in range(13)]


def numpy_lpips(x: Array, y: Array, layers: list[tuple[int, int, int, bool]], weights: dict[str, torch.Tensor]) -> float:
    """LPIPS of two pictures [3, H, W] in float64."""
    values = {name: value.double().numpy() for name, value in weights.items()}
    shift, scale = np.array([-0.030, -0.088, -0.188]), np.array([0.458, 0.448, 0.450])
    pair = [(2 * z - 1 - shift[:, None, None]) / scale[:, None, None] for z in (x, y)]
    total, taps = 0.0, 0
    for index, (stride, padding, pool, tap) in enumerate(layers):
        if pool:
            windows = [sliding_window_view(z, (pool, pool), axis=(1, 2))[:, ::2, ::2] for z in pair]
            pair = [window.max(axis=(3, 4)) for window in windows]
        kernel, bias = values[f"trunk.{index}.weight"], values[f"trunk.{index}.bias"]
        for side, z in enumerate(pair):
            padded = np.pad(z, ((0, 0), (padding, padding), (padding, padding)))
            patches = sliding_window_view(padded, kernel.shape[2:], axis=(1, 2))[:, ::stride, ::stride]
            out = np.tensordot(kernel, patches, axes=((1, 2, 3), (0, 3, 4))) + bias[:, None, None]
            pair[side] = np.maximum(out, 0.0)
        if tap:
            unit = [z / (np.sqrt((z**2).sum(axis=0)) + 1e-10) for z in pair]
            square = ((unit[0] - unit[1]) ** 2).mean(axis=(1, 2))
            total += float((square * values[f"linear.{taps}.weight"]).sum())
            taps += 1
    return total


@pytest.mark.parametrize("size", [(31, 31), (40, 57), (64, 72)])
def test_alexnet_agrees_with_numpy(size: tuple[int, int]) -> None:
    x, y = waves(*size), waves(*size)[::-1] ** 2
    expected = numpy_lpips(x, y, ALEX, load_file(SHIPPED))
    assert expected > 0.05
    # float32 convolutions of up to 3,456 terms: relative error well below 3456 * 2^-24 = 2e-4 at every layer.
    assert float(lpips(batch(x), batch(y))) == pytest.approx(expected, rel=1e-3)


def test_vgg_from_a_file_agrees_with_numpy(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    weights: dict[str, torch.Tensor] = {}
    for name, shape in perceptual.parameter_shapes(perceptual.TRUNKS["vgg"]).items():
        draw = torch.randn(shape, generator=generator)
        # Weights that keep the size of activations, so that the last layers count too.
        gain = (2.0 / draw[0].numel()) ** 0.5
        weights[name] = draw.abs() if name.startswith("linear") else gain * draw
    file = tmp_path / "vgg.safetensors"
    save_file(weights, file)
    x, y = waves(17, 22), waves(17, 22)[::-1] ** 2
    expected = numpy_lpips(x, y, VGG, weights)
    assert float(lpips(batch(x), batch(y), network="vgg", weights=file)) == pytest.approx(expected, rel=1e-3)
    assert "does not hold network 'alex'" in refusal(lpips, batch(waves(32, 32)), batch(waves(32, 32)), weights=file)


def test_grey_pictures_count_as_colour_pictures_of_equal_channels() -> None:
    x, y = waves(40, 40)[:1], waves(40, 40)[1:2]
    assert torch.equal(lpips(batch(x), batch(y)), lpips(batch(x.repeat(3, 0)), batch(y.repeat(3, 0))))


def test_what_cannot_be_served_is_said_in_one_sentence(tmp_path: Path) -> None:
    good = torch.rand(1, 3, 31, 31)
    assert float(lpips(good, good)[0]) == 0
    for height, width in ((30, 64), (64, 30)):
        small = torch.rand(1, 3, height, width)
        assert f"at least 31 x 31 pixels and these are {width} x {height}" in refusal(lpips, small, small)
    assert "not shipped" in refusal(lpips, good, good, network="vgg")
    assert "did you mean 'alex'" in refusal(lpips, good, good, network="alexnet")
    assert "There is no LPIPS weights file" in refusal(lpips, good, good, weights=tmp_path / "none.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not a weights file")
    assert "not a safetensors file" in refusal(lpips, good, good, weights=broken)


@pytest.mark.parametrize("name", ["psnr", "ssim", "lpips"])
def test_more_damage_scores_worse_in_the_declared_direction(name: str) -> None:
    metric = METRICS[name]
    x = waves(48, 48)
    clean = batch(x, x)
    noise = torch.randn(clean[:1].shape, generator=torch.Generator().manual_seed(0))
    mild, strong = metric.function(clean + torch.cat([0.05 * noise, 0.3 * noise]), clean)
    assert bool(mild > strong) == (metric.column.better > 0)
    assert metric.name == name
    assert "[0, 1]" in metric.column.convention
