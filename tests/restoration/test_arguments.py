"""Absurd arguments: one sentence each, without a hang and without taking memory for them."""

import io
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.operators import disk_kernel, gaussian_kernel, line_kernel, motion_kernel, random_mask
from leader.restoration.arguments import Exactly, as_kernel, as_mask, as_picture, as_seed, as_sigma, gaussian_std


@pytest.mark.parametrize(
    ("sigma", "says"),
    [
        *((25, r"25/255 = 0\.098"), ("100", r"100/255 = 0\.392"), (1.0001, "at most 1"), (-1e-9, ">= 0")),
        *(("nan", "finite"), (float("inf"), "finite"), ("", "must be a number"), (None, "must be a number")),
        *((10**400, "must be a number"), (True, "must be a number; found .True.")),
    ],
)
def test_absurd_noise_levels(sigma: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        as_sigma(sigma)


def test_noise_levels_and_seeds_that_are_fine() -> None:
    assert as_seed(2**63 - 1) == 2**63 - 1 and as_seed(np.int64(3)) == 3
    assert as_sigma("0.05") == 0.05 and as_sigma(0) == 0 and as_sigma(1) == 1
    assert f"{as_sigma(-0.0):.1f}" == "0.0"


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "3", None])
def test_absurd_seeds(seed: Any) -> None:
    with pytest.raises(UsageError, match="integer from 0"):
        as_seed(seed)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        *(("gaussian:1e9", "pixels wide"), ("gaussian:129", "at most 128"), ("gaussian:-1", "positive")),
        *(("gaussian:nan", "number was expected"), ("gaussian:", "number was expected"), ("motion:-1", "integer from 0")),
        *(("motion:1e30", "integer from 0"), ("motion:" + "9" * 5000, "integer from 0"), ("motion:x", "integer from 0")),
        *((np.ones((1026, 1)), "at most 1025 x 1025"), (np.array([["a"]]), "must hold numbers")),
        *((np.array([[{}]], dtype=object), "must hold numbers"), (np.ones(3), "table of numbers")),
        *((words, "pixels|number was expected") for words in ("disk:", "disk:0", "disk:-1", "disk:1e9", "line:x", "line:9:")),
        *((words, "pixels|number was expected") for words in ("line:9:up", "line:1e6:0")),
        *((np.array([[np.inf]]), "NaN or infinite"), ("gausian:2.5", "Unknown kernel .* gaussian:STD"), ("", "Unknown kernel")),
    ],
)
def test_absurd_kernels(kernel: Any, says: str) -> None:
    with pytest.raises(LeaderError, match=says):
        as_kernel(kernel)


@pytest.mark.parametrize("image", [None, b"P5", 3, Path(__file__).open, {"a": 1}, [Path("a.png"), "b.png"]])
def test_what_is_no_picture_is_named(image: Any) -> None:
    with pytest.raises(UsageError, match="list of 2" if isinstance(image, list) else f"tensor; found {type(image).__name__}"):
        as_picture(image)


@pytest.mark.parametrize("image", [torch.zeros(9, 8, device="meta"), torch.eye(9).to_sparse()])
def test_a_tensor_without_its_values_is_no_picture(image: torch.Tensor) -> None:
    with pytest.raises(UsageError, match="sparse"):
        as_picture(image)


def test_tensors_of_a_dtype_unknown_to_numpy_are_read() -> None:
    x = torch.rand(3, 9, 8).bfloat16()
    assert np.array_equal(as_picture(x[None]).pixels, x.permute(1, 2, 0).float().numpy())
    with pytest.raises(LeaderError, match=r"found \[2, 3, 9, 8\]"):
        as_picture(torch.rand(2, 3, 9, 8))


def test_kernels_by_words() -> None:
    for words, kernel in (
        *(("gaussian:2.5", gaussian_kernel(2.5)), ("motion:3", motion_kernel(3)), ("disk:2.5", disk_kernel(2.5))),
        *(("line:9:30", line_kernel(9, 30)), ("line:9", line_kernel(9, 0))),
    ):
        assert torch.equal(as_kernel(words), kernel)
    assert as_kernel("gaussian:128").shape == (1025, 1025)
    assert gaussian_std("gaussian:2.5") == 2.5
    with pytest.raises(UsageError, match="gaussian:STD"):
        gaussian_std("motion:3")


def test_a_stored_kernel_is_not_scaled_again() -> None:
    kernel = torch.rand(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    once = as_kernel(kernel)
    assert torch.equal(as_kernel(Exactly(once)), once)
    with pytest.raises(LeaderError, match="sum to 1"):
        as_kernel(Exactly(2 * once))


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ("random:0.5:1e30", "integer from 0"),
        ("random:0.5:-1", "integer from 0"),
        ("random:1", r"\[0, 1\)"),
        ("random:-0.1", r"\[0, 1\)"),
        ("random:inf", "number was expected"),
        (np.full((8, 9), "a"), "must hold numbers"),
        (np.full((8, 9), None, dtype=object), "must hold numbers"),
        (np.full((8, 9), np.nan), "NaN or infinite"),
        (np.ones((9, 8)), "same size"),
    ],
)
def test_absurd_masks(mask: Any, says: str) -> None:
    with pytest.raises(LeaderError, match=says):
        as_mask(mask, (9, 8))


def test_masks_by_words() -> None:
    assert torch.equal(as_mask("random:0.4:5", (9, 8)), random_mask(8, 9, 0.4, 5))
    assert torch.equal(as_mask("random:0", (9, 8)), torch.ones(8, 9))


def npy(shape: str, descr: str = "'<f8'", body: bytes = b"") -> bytes:
    """A .npy file whose header says whatever it likes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        npy("(100000000000, 100000000000)"),
        npy("(30000, 30000)", body=b"\0" * 64),
        npy("(3, 3"),  # the tokenizer of NumPy stumbles over it
        npy("(3, 3)", "'O'", b"\0" * 72),
        npy("(-3, 3)"),
        npy("((((", body=b"\0" * 72),
        npy("(3, 3)", "[('a', '<f8')]", b"\0" * 72),
        npy("(3, 3)", "'<M8[s]'", b"\0" * 72),
        pickled(),
        b"",
        b"\x93NUMPY\x09\x00garbage",
        b"PK\x03\x04 no archive",
    ],
)
@pytest.mark.parametrize("what", ["kernel", "mask"])
def test_damaged_numpy_files(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(LeaderError, match=r"table of numbers|not hold numbers") as caught:
        as_kernel(tmp_path / "a.npy") if what == "kernel" else as_mask(str(tmp_path / "a.npy"), (9, 8))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("name", "content"), [("a.txt", b"1 2\n3 x\n"), ("a.csv", b"1,2\n3\n"), ("a.txt", b"1 2 \xe4\n")])
def test_text_that_is_no_table(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LeaderError, match="table of numbers"):
        as_kernel(tmp_path / name)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(LeaderError):
        as_kernel(tmp_path / name)
    os.mkfifo(tmp_path / "b.txt")
    with pytest.raises(LeaderError, match="pipe"):
        as_kernel(tmp_path / "b.txt")


def test_huge_files_are_refused_by_their_size(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(200_000_000)  # sparse: 10^7 numbers and more
    with pytest.raises(LeaderError, match="too many for a kernel"):
        as_kernel(tmp_path / "a.txt")
    np.save(tmp_path / "b.npy", np.zeros((1100, 1100), np.float32))
    with pytest.raises(LeaderError, match="1100 x 1100 numbers, too many"):
        as_kernel(tmp_path / "b.npy")


def test_tables_are_read_as_they_are(tmp_path: Path) -> None:
    table = np.random.default_rng(0).random((3, 4))
    np.save(tmp_path / "a.npy", table)
    np.savetxt(tmp_path / "a.txt", table, delimiter=" \t ")
    np.savetxt(tmp_path / "a.csv", table, delimiter=",")
    expected = as_kernel(table)
    assert torch.equal(as_kernel(tmp_path / "a.npy"), expected)
    for suffix in ("txt", "csv"):
        torch.testing.assert_close(as_kernel(tmp_path / f"a.{suffix}"), expected)


def test_decimal_numbers_of_a_file_are_taken_as_they_are_and_may_be_written_to(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    Image.fromarray(values).save(tmp_path / "floats.tif")
    picture = as_picture(tmp_path / "floats.tif")
    assert np.array_equal(picture.pixels[..., 0], values) and picture.bits == 16
    assert picture.pixels.flags.writeable  # torch warns of others, at the terminal


def test_a_mask_may_have_channels_first_or_last() -> None:
    mask = np.zeros((6, 9), np.float32)
    mask[1:4, 2:8] = 1
    for given in (mask, mask[None], np.stack([mask] * 3), mask[..., None], np.stack([mask] * 3, -1)):
        assert np.array_equal(as_mask(given, (9, 6)).numpy(), mask)
    for top in (1, 255):  # grey goes to the nearer end
        grey = np.array([[0, 100, 200, 255]] * 3) * (top / 255)
        assert as_mask(grey.astype(np.uint8) if top > 1 else grey, (4, 3)).tolist() == [[0, 0, 1, 1]] * 3
    cyan = np.array([[[0.0, 1.0, 1.0]] * 8] * 4 + [[[0.0] * 3] * 8] * 4)  # bright, though it has no red
    assert as_mask(cyan, (8, 8))[:, 0].tolist() == [1] * 4 + [0] * 4


def test_a_mask_or_kernel_that_is_partly_transparent_is_refused(tmp_path: Path) -> None:
    """Erased parts of a white layer: they would count as known."""
    erased = np.full((8, 9, 4), 255, np.uint8)
    erased[2:4, 3:6, 3] = 0
    Image.fromarray(erased).save(tmp_path / "a.png")
    with pytest.raises(LeaderError, match="partly transparent, which means nothing in a mask"):
        as_mask(tmp_path / "a.png", (9, 8))
    with pytest.raises(LeaderError, match="partly transparent, which means nothing in a kernel"):
        as_kernel(tmp_path / "a.png")
    Image.fromarray(erased | 255).save(tmp_path / "a.png")
    assert as_mask(tmp_path / "a.png", (9, 8)).all()
