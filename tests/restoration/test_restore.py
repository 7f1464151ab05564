"""leader.restore, leader degrade and containers, with a prior that costs nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.operators import gaussian_kernel, motion_kernel
from leader.pictures import Picture, read_picture, write_picture
from leader.pictures.container import Measurement, read_container, write_container
from leader.restoration.borders import blurred_by_camera, extend, extended_blur
from leader.restoration.restore import restore
from leader.restoration.restored import Restoration
from tests.cheap_prior import CheapPrior, photograph


def run(image: Any, task: str | None, **options: Any) -> Restoration:
    return restore(image, task, prior=CheapPrior(), steps=3, **{"sigma": 0.02, **options})


def write_photograph(path: Path, **size: int) -> Path:
    write_picture(path, Picture(photograph(**size).permute(1, 2, 0).numpy()))
    return path


@pytest.mark.parametrize("channels", [1, 3])
def test_path_image_array_and_tensor_agree(tmp_path: Path, channels: int) -> None:
    path = write_photograph(tmp_path / "a.png", channels=channels)
    with Image.open(path) as image:
        array = np.asarray(image)
        results = [run(source, "denoise").array for source in (path, str(path), image, array, array / 255)]
    tensor = torch.from_numpy(array / 255)
    tensor = tensor.permute(2, 0, 1) if channels == 3 else tensor
    results.append(run(tensor, "denoise").array)
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], atol=1e-6)


@pytest.mark.parametrize(("height", "width"), [(21, 33), (40, 17)])
@pytest.mark.parametrize("task", ["sr", "deblur-gaussian", "deblur-motion", "deblur", "inpaint", "colourise", "denoise"])
def test_every_task_on_odd_sizes(task: str, height: int, width: int) -> None:
    choices: dict[str, dict[str, Any]] = {
        "sr": {"factor": 3},
        "deblur-gaussian": {"kernel": "gaussian:1"},
        "deblur-motion": {"kernel": np.eye(5)},
        "deblur": {"kernel": np.ones((3, 4))},
        "inpaint": {"mask": np.eye(height, width) < 1},
    }
    options = choices.get(task, {})
    grey = task == "colourise"
    restored = run(photograph(height, width, 1 if grey else 3), task, **options)
    scale = 3 if task == "sr" else 1
    assert restored.array.shape == (height * scale, width * scale, 3)
    assert restored.uncertainty is not None and restored.uncertainty.shape == (height * scale, width * scale)
    assert restored.result.images.shape[-2:] == restored.array.shape[:2]
    assert np.isfinite(restored.array).all() and restored.array.min() >= 0 and restored.array.max() <= 1
    assert restored.verdict is not None and restored.verdict.numbers["residual"] is not None
    assert all(value is None or np.isfinite(value) for value in restored.verdict.numbers.values())


def test_noise_free_restorations_keep_the_data() -> None:
    """DDNM without noise: the restored picture, degraded again, is the picture given."""
    small = 0.25 + 0.5 * photograph(16, 20)
    restored = restore(small, "sr", sigma=0.0, prior=CheapPrior(), steps=3, factor=2, down="average", plugins=())
    unclamped = (restored.result.images + 1) / 2
    again = unclamped.reshape(3, 16, 2, 20, 2).mean((2, 4))
    assert float((again - small).abs().max()) <= 1e-5
    mask = np.ones((16, 20))
    mask[4:8, 5:9] = 0
    filled = restore(small, "inpaint", sigma=0.0, prior=CheapPrior(), steps=3, mask=mask).array
    known = np.abs(filled - small.permute(1, 2, 0).numpy())[mask > 0]
    assert known.max() <= 1e-5


def test_alpha_bits_and_profile_survive(tmp_path: Path) -> None:
    alpha = np.linspace(0, 1, 24 * 32, dtype=np.float32).reshape(24, 32)
    picture = Picture(photograph(24, 32).permute(1, 2, 0).numpy(), alpha, 16)
    write_picture(tmp_path / "in.png", picture)
    restored = run(tmp_path / "in.png", "sr", factor=2)
    restored.save(tmp_path / "out.png")
    back = read_picture(tmp_path / "out.png")
    assert back.bits == 16 and back.alpha is not None and back.alpha.shape == (48, 64)
    assert np.abs(back.pixels - restored.array).max() <= 0.51 / 65535
    assert restored.image.mode == "RGBA"


def test_holes_of_a_transparent_picture_are_filled() -> None:
    alpha = np.ones((24, 32), np.float32)
    alpha[5:9, 6:12] = 0
    picture = Picture(photograph(24, 32).permute(1, 2, 0).numpy(), alpha)
    restored = run(picture, "inpaint")
    assert restored.picture.alpha is None
    assert np.abs(restored.given.pixels[5:9, 6:12]).max() == 0


@pytest.mark.parametrize("seed", [0, 3])
def test_blur_is_modelled_exactly_inside_the_frame(seed: int) -> None:
    """The extended operator, cropped, is the plain convolution of what lies in the frame and around it."""
    from scipy.signal import convolve2d

    kernel = motion_kernel(seed, 15, 0.5)
    operator, window = extended_blur((1, 40, 50), kernel, "deblur")
    x = torch.rand(1, *operator.image_shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    full = convolve2d(x[0, 0].numpy(), kernel.numpy(), mode="same")
    np.testing.assert_allclose(
        window.crop(operator.A(x))[0, 0].numpy(), window.crop(torch.from_numpy(full)).numpy(), atol=1e-12
    )


def test_extension_is_consistent_and_smooth() -> None:
    """Beyond the frame y goes on: no seam at the border nor where the circle closes."""
    kernel = gaussian_kernel(2.0)
    y = blurred_by_camera(photograph(60, 70)[None], kernel, "deblur")
    operator, window = extended_blur((3, 60, 70), kernel, "deblur")
    extended = extend(y, operator, window)
    torch.testing.assert_close(window.crop(extended), y)
    circular = torch.cat([extended, extended[..., :1, :]], dim=-2)
    inside = float(y.diff(dim=-2).abs().max())
    assert float(circular.diff(dim=-2).abs().max()) <= 1.5 * inside


@pytest.mark.parametrize(
    ("image", "options", "says"),
    [
        *((np.full((16, 16, 3), np.nan), {}, "NaN"), (np.zeros((1, 1, 3)), {}, "1 x 1 pixels")),
        *((np.full((16, 16, 3), 255.0), {}, r"expected \[0, 1\]"), (np.zeros((16, 16, 7)), {}, "shape")),
        (np.zeros((16, 16), np.int64), {}, "uint8, uint16 or decimal"),
        (np.zeros((16, 16, 3)), {"task": "srr"}, "did you mean 'sr'"),
        (np.zeros((16, 16, 3)), {"method": "ddnn"}, "did you mean 'ddnm'"),
        (np.zeros((16, 16, 3)), {"plugins": ("ucmp",)}, "did you mean 'ucpm'"),
        (np.zeros((16, 16, 3)), {"prior": "embeded"}, "did you mean 'embedded'"),
        (np.zeros((16, 16, 3)), {"task": "deblur", "kernel": np.ones((17, 3))}, "smaller kernel"),
        (np.zeros((16, 16, 3)), {"task": "deblur"}, "needs the kernel"),
        (np.zeros((16, 16, 3)), {"task": "inpaint"}, "needs a mask"),
        (np.zeros((16, 16, 3)), {"task": "inpaint", "mask": np.ones((16, 15))}, "same size"),
        (np.zeros((16, 16, 3)), {"task": "inpaint", "mask": np.ones((16, 16))}, "Nothing is to be filled in"),
        (Image.new("RGBA", (16, 16), (9, 9, 9, 255)), {"task": "inpaint"}, "Nothing is to be filled in"),
        (np.zeros((16, 16, 3)), {"task": "sr", "mask": np.ones((16, 16))}, "no use for a mask"),
        (np.zeros((16, 16, 3)), {"task": "cs"}, "not a picture"),
        (np.zeros((16, 16, 3)), {"settings": {"nonsense": 1}}, "no setting 'nonsense'"),
    ],
)
def test_wrong_requests_in_one_sentence(image: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(LeaderError, match=says):
        restore(image, **{"task": "sr", "sigma": 0.1, "prior": CheapPrior(), "steps": 2, **options})


def test_containers_are_data_only(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", y=np.zeros(3))
    with pytest.raises(LeaderError, match="not a 'leader-measurement"):
        read_container(tmp_path / "other.npz")
    np.savez(tmp_path / "pickle.npz", format=np.array([{"a": 1}], dtype=object))
    with pytest.raises(LeaderError, match="not a container"):
        read_container(tmp_path / "pickle.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(LeaderError, match="not a container"):
        read_container(tmp_path / "text.npz")
    write_container(tmp_path / "m.npz", Measurement("denoise", torch.zeros(1, 3, 9, 9), (3, 8, 8), 0.1))
    with pytest.raises(LeaderError, match="its operator makes"):
        restore(tmp_path / "m.npz", prior=CheapPrior())
    write_container(tmp_path / "m.npz", Measurement("denoise", torch.zeros(1, 3, 8, 8), (3, 8, 8)))
    with pytest.raises(LeaderError, match="does not say how noisy"):
        restore(tmp_path / "m.npz", prior=CheapPrior())
    with pytest.raises(UsageError, match="task 'denoise'"):
        restore((tmp_path / "m.npz").rename(tmp_path / "M.NPZ"), "sr", prior=CheapPrior())
