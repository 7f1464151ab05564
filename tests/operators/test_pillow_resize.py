"""Pillow's kernels against Pillow itself, and against dense matrices."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from leader.operators import SpectralOperator, build_task
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING, MixedSR, pillow_matrix, read_mixture
from tests.operators.cases import dense

KINDS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "pillow-bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@pytest.mark.parametrize("down", KINDS)
def test_planes_of_decimals_equal_pillows(down: str) -> None:
    """Every factor from 1 to 16, sides that it divides and sides that it does not."""
    rng = np.random.default_rng(0)
    for factor in range(1, 17):
        for height, width in ((4 * factor, 5 * factor), (33, 50), (97, 16 + factor)):
            plane = rng.random((height, width), dtype=np.float32)
            small = (-(-width // factor), -(-height // factor))
            expected = np.asarray(Image.fromarray(plane).resize(small, KINDS[down]))
            found = build_task("sr", (1, height, width), factor=factor, down=down).A(torch.from_numpy(plane)[None, None])
            assert np.abs(found[0, 0].numpy() - expected).max() <= 1e-5, (factor, height, width)


@pytest.mark.parametrize("down", sorted(PILLOW_DOWNSAMPLING))
def test_image_inverse_and_spectrum_equal_dense_algebra(down: str) -> None:
    operator = build_task("sr", (1, 12, 9), factor=3, down=down)
    matrix = dense(operator)
    name = down.removeprefix("pillow-")
    assert torch.allclose(matrix, torch.kron(pillow_matrix(12, 4, name), pillow_matrix(9, 3, name)), atol=1e-14)
    y = torch.randn(1, 1, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(operator.pinv(y).flatten(), torch.linalg.pinv(matrix) @ y.flatten(), atol=1e-12)
    assert isinstance(operator, SpectralOperator)
    assert torch.allclose(
        operator.spectrum.flatten().sort(descending=True).values[:12], torch.linalg.svdvals(matrix), atol=1e-12
    )


def test_nearest_takes_the_middle_of_the_cell_and_softly_its_surroundings() -> None:
    """Half a cell, but for small cells, where that would be one pixel."""
    assert pillow_matrix(8, 2, "nearest").nonzero().tolist() == [[0, 2], [1, 6]]
    assert pillow_matrix(9, 3, "nearest").nonzero()[:, 1].tolist() == [1, 4, 7]
    for kernel in ("nearest", "lanczos", "opencv-bicubic", "soft-centred", "box:40+nearest:60"):
        assert torch.equal(pillow_matrix(40, 27, kernel, slice(5, 20)), pillow_matrix(40, 27, kernel)[5:20])
    assert pillow_matrix(8, 2, "soft-nearest")[1].tolist() == [0, 0, 0, 0, 0, 0.25, 0.5, 0.25]
    for size, rows, taps in (
        (18, 6, [1 / 3, 1, 1 / 3]),
        (8, 4, [1 / 3, 1, 1 / 3]),
        (12, 8, [1 / 9, 1, 1 / 9]),
        (7, 7, [0, 1, 0]),
    ):
        soft, taken = pillow_matrix(size, rows, "soft-nearest")[2], int(pillow_matrix(size, rows, "nearest")[2].argmax())
        expected = torch.zeros(size, dtype=torch.float64)
        expected[taken - 1 : taken + 2] = torch.tensor(taps, dtype=torch.float64) / sum(taps)
        assert torch.allclose(soft, expected, atol=1e-14), (size, rows)


@pytest.mark.parametrize("size", [(60, 100), (45, 44), (30, 26), (23, 33), (89, 50)])
def test_bilinear_without_antialiasing_equals_torchs(size: tuple[int, int]) -> None:
    plane = torch.rand(1, 1, 90, 131, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = functional.interpolate(plane, size, mode="bilinear", align_corners=False, antialias=False)
    operator = build_task("sr", (1, 90, 131), small=size, down="opencv-bilinear")
    assert torch.allclose(operator.A(plane), expected, atol=1e-12)


@pytest.mark.parametrize("size", [(60, 100), (45, 44), (30, 26), (23, 33), (89, 50)])
def test_bicubic_without_antialiasing_equals_torchs(size: tuple[int, int]) -> None:
    """Torch has OpenCV's sharpness and border."""
    plane = torch.rand(1, 1, 90, 131, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = functional.interpolate(plane, size, mode="bicubic", align_corners=False, antialias=False)
    assert torch.allclose(build_task("sr", (1, 90, 131), small=size, down="opencv-bicubic").A(plane), expected, atol=1e-12)
    assert torch.allclose(pillow_matrix(15, 5, "opencv-bicubic"), pillow_matrix(15, 5, "nearest"), atol=1e-14)


def test_bilinear_without_antialiasing_is_box_or_nearest_at_whole_factors() -> None:
    """And softly the pixels around the middle of a cell, within half a cell."""
    assert torch.equal(pillow_matrix(12, 6, "opencv-bilinear"), pillow_matrix(12, 6, "box"))
    assert torch.equal(pillow_matrix(12, 6, "soft-centred"), pillow_matrix(12, 6, "box"))
    for kernel, nearest in (("opencv-bilinear", "nearest"), ("soft-centred", "soft-nearest")):
        for factor in (3, 5):
            assert torch.allclose(pillow_matrix(6 * factor, 6, kernel), pillow_matrix(6 * factor, 6, nearest), atol=1e-14)
    assert pillow_matrix(8, 2, "opencv-bilinear")[1].tolist() == [0, 0, 0, 0, 0, 0.5, 0.5, 0]
    assert pillow_matrix(8, 2, "soft-centred")[1].tolist() == [0, 0, 0, 0, 0.125, 0.375, 0.375, 0.125]


@pytest.mark.parametrize("down", KINDS)
def test_any_size_equals_pillows(down: str) -> None:
    """Ratios that are no integers, another one along each side."""
    plane = np.random.default_rng(1).random((90, 131), dtype=np.float32)
    for rows, columns in ((60, 100), (37, 131), (89, 50), (61, 87)):
        expected = np.asarray(Image.fromarray(plane).resize((columns, rows), KINDS[down]))
        found = build_task("sr", (1, 90, 131), down=down, small=(rows, columns)).A(torch.from_numpy(plane)[None, None])
        assert found.shape[2:] == (rows, columns) and np.abs(found[0, 0].numpy() - expected).max() <= 1e-5


SHARES = {"soft-nearest": 0.17, "pillow-bicubic": 0.22, "lanczos": 0.61}
MIXTURE = "soft-nearest:17+pillow-bicubic:22+lanczos:61"


def test_a_mixture_equals_dense_algebra() -> None:
    """Sides that differ, and a factor that is no whole number: A and its inverses are those of the mean factors."""
    operator = build_task("sr", (1, 12, 10), small=(8, 4), down=MIXTURE)
    vertical, horizontal = (
        sum(share * pillow_matrix(*size, down.removeprefix("pillow-")) for down, share in SHARES.items())
        for size in ((12, 8), (10, 4))
    )
    matrix = torch.kron(torch.as_tensor(vertical), torch.as_tensor(horizontal))
    assert isinstance(operator, MixedSR) and torch.allclose(dense(operator), matrix, atol=1e-14)
    y = torch.randn(1, 1, 8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(operator.pinv(y).flatten(), torch.linalg.pinv(matrix) @ y.flatten(), atol=1e-12)
    ridge = torch.linalg.solve(matrix @ matrix.mT + 0.3 * torch.eye(32, dtype=torch.float64), y.flatten())
    assert torch.allclose(operator.regularised_pinv(y, 0.3).flatten(), matrix.mT @ ridge, atol=1e-12)


def test_what_a_mixture_leaves_out_of_the_mean_of_operators() -> None:
    """Only the products of what the factors differ by: sum p B x B = M x M + sum p (B - M) x (B - M)."""
    matrices = {down: dense(build_task("sr", (1, 12, 10), small=(8, 4), down=down)) for down in SHARES}
    mean = sum(share * matrices[down] for down, share in SHARES.items())
    left_out = torch.zeros(32, 120, dtype=torch.float64)
    for down, share in SHARES.items():
        off = [pillow_matrix(*s, down.removeprefix("pillow-")) - pillow_matrix(*s, MIXTURE) for s in ((12, 8), (10, 4))]
        left_out = left_out + share * torch.kron(*off)
    assert torch.allclose(mean - dense(build_task("sr", (1, 12, 10), small=(8, 4), down=MIXTURE)), left_out, atol=1e-14)


def test_the_shares_of_a_mixture() -> None:
    assert read_mixture(MIXTURE) == SHARES and read_mixture("box:100") == {"box": 1.0} and read_mixture("box") is None
