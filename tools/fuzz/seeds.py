"""The files that fuzzing starts from, all of them valid: pictures of forty kinds, containers, kernels, priors."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageCms

from leader.restoration.degrade import degrade_file

SIDE = 16
CHECKPOINT = {"size": SIDE, "schedule": "linear", "head_channels": 16, "attention_order": "legacy"}
"""What the tensors of the small checkpoint do not tell."""
TINY_UNET: dict[str, Any] = {
    "block_out_channels": (8, 8),
    "layers_per_block": 1,
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "norm_num_groups": 4,
    "attention_head_dim": 4,
}
"""The smallest network of diffusers with attention."""


def make_seeds(folder: Path) -> None:
    """Fills the folder: pictures/, containers/, tables/, priors/, trust/ and runs/. The same bytes every time."""
    for name in ("pictures", "containers", "tables", "priors", "trust", "runs"):
        (folder / name).mkdir(parents=True)
    _pictures(folder / "pictures")
    _containers(folder / "containers", folder / "pictures" / "rgb.png")
    _tables(folder / "tables")
    _priors(folder / "priors")
    _trust(folder / "trust")
    _runs(folder / "runs", folder / "pictures" / "rgb.png")


def _sample(width: int = 20, height: int = 12) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A smooth picture with an edge, [height, width, 3]."""
    rows, columns = np.mgrid[0:height, 0:width]
    planes = [128 + 90 * np.sin(0.4 * rows + (0.2 + 0.1 * c) * columns) for c in range(3)]
    pixels = np.stack(planes, 2)
    pixels[height // 3 : height // 2] *= 0.5
    return pixels.astype(np.uint8)


def _pictures(folder: Path) -> None:
    colour = Image.fromarray(_sample())
    grey, alpha = colour.convert("L"), colour.copy()
    alpha.putalpha(Image.fromarray(_sample()[..., 1]))
    deep = Image.fromarray(_sample()[..., 0].astype(np.uint16) * 257)
    palette = colour.quantize(16)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    standards = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    lab = ImageCms.profileToProfile(colour, *standards, outputMode="LAB")
    assert lab is not None
    turned = Image.Exif()
    turned[274] = 6
    saves: dict[str, tuple[Image.Image, dict[str, Any]]] = {
        "rgb.png": (colour, {}),
        "grey.png": (grey, {}),
        "alpha.png": (alpha, {}),
        "grey-alpha.png": (alpha.convert("LA"), {}),
        "deep.png": (deep, {}),
        "bits.png": (colour.convert("1"), {}),
        "palette.png": (palette, {}),
        "palette-hole.png": (palette, {"transparency": 3}),
        "hole.png": (colour, {"transparency": (0, 0, 0)}),
        "profile.png": (colour, {"icc_profile": profile}),
        "turned.png": (colour, {"exif": turned}),
        "text.png": (colour, {"dpi": (72, 72), "compress_level": 0}),
        "420.jpg": (colour, {"subsampling": 2}),
        "444.jpg": (colour, {"subsampling": 0}),
        "progressive.jpg": (colour, {"progressive": True}),
        "cmyk.jpg": (colour.convert("CMYK"), {}),
        "grey.jpg": (grey, {}),
        "turned.jpg": (colour, {"exif": turned}),
        "profile.jpg": (colour, {"icc_profile": profile}),
        "lossy.webp": (colour, {}),
        "lossless.webp": (alpha, {"lossless": True}),
        "rgb.tif": (colour, {}),
        "lzw.tif": (colour, {"compression": "tiff_lzw"}),
        "deflate.tif": (alpha, {"compression": "tiff_deflate"}),
        "packbits.tif": (grey, {"compression": "packbits"}),
        "jpeg.tif": (colour, {"compression": "jpeg"}),
        "deep.tif": (deep, {}),
        "float.tif": (Image.fromarray(_sample()[..., 0].astype(np.float32) / 255), {}),
        "bits.tif": (colour.convert("1"), {"compression": "group4"}),
        "palette.tif": (palette, {}),
        "cmyk.tif": (colour.convert("CMYK"), {}),
        "lab.tif": (lab, {}),
        "rgb.bmp": (colour, {}),
        "palette.bmp": (palette, {}),
        "rgb.ppm": (colour, {}),
        "grey.pgm": (grey, {}),
        "one.gif": (palette, {}),
        "two.gif": (palette, {"save_all": True, "append_images": [palette.rotate(180)]}),
        "rgb.avif": (colour, {"exif": turned}),
        "alpha.avif": (alpha, {"icc_profile": profile}),
        "grey.avif": (grey, {"quality": 90}),
        "rgb.jp2": (colour, {}),
        "lossy.jp2": (colour, {"irreversible": True, "quality_layers": [10]}),
    }
    for name, (image, options) in saves.items():
        image.save(folder / name, **options)
    (folder / "interlaced.png").write_bytes(_interlaced())
    from leader.pictures.deep import write_deep_png, write_tiff

    write_deep_png(folder / "deep-colour.png", _sample().astype(np.uint16) * 257, profile)
    write_tiff(folder / "deep-colour.tif", _sample().astype(np.uint16) * 257, None)
    import pillow_heif

    for name, image in {"rgb.heic": colour, "alpha.heic": alpha, "grey.heic": grey}.items():
        pillow_heif.from_pillow(image).save(folder / name, exif=turned.tobytes())


def _interlaced() -> bytes:
    """An Adam7 PNG, which Pillow does not write: 8 x 8 grey pixels in seven passes."""
    pixels = _sample(8, 8)[..., 0]
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = b"".join(b"\0" + row.tobytes() for top, left, down, right in passes for row in pixels[top::down, left::right])

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _containers(folder: Path, picture: Path) -> None:
    square = Image.open(picture).resize((SIDE, SIDE))
    mask = np.ones((SIDE, SIDE), np.float32)
    mask[3:7, 5:9] = 0
    tasks: dict[str, dict[str, Any]] = {
        "sr": {"sigma": 0.05, "factor": 2},
        "deblur": {"sigma": 0.02, "kernel": np.ones((3, 3)) / 9},
        "deblur-gaussian": {"sigma": 0.02, "kernel": "gaussian:1.5"},
        "inpaint": {"sigma": 0.02, "mask": mask},
        "cs": {"sigma": 0.05, "ratio": 0.5},
        "colourise": {"sigma": 0.02},
    }
    for task, options in tasks.items():
        degrade_file(square, folder / f"{task}.npz", task, **options)
    degrade_file(square, folder / "average.npz", "sr", factor=4, down="average")
    degrade_file(square.convert("RGBA"), folder / "denoise.npz", "denoise", sigma=0.1)


def _tables(folder: Path) -> None:
    kernel = np.outer((1, 2, 1), (1, 3, 1)) / 20
    mask = (np.random.default_rng(0).random((12, 20)) > 0.3).astype(np.uint8)
    for name, table, white in (("kernel", kernel, 800), ("mask", mask, 255)):
        np.save(folder / f"{name}.npy", table)
        np.savetxt(folder / f"{name}.txt", table)
        np.savetxt(folder / f"{name}.csv", table, delimiter=",")
        Image.fromarray((table * white).astype(np.uint8)).save(folder / f"{name}.png")


def _priors(folder: Path) -> None:
    from safetensors.torch import save_file

    from leader.priors.networks import ADM, ADMConfig
    from leader.priors.variance_head import HeadShape, VarianceHead

    torch.manual_seed(0)
    state = ADM(ADMConfig(32, (1, 1), 1, (1,), out_channels=6, head_channels=16)).state_dict()
    torch.save(state, folder / "net.pt")
    save_file(state, folder / "net.safetensors")
    (folder / "net.json").write_text(json.dumps(CHECKPOINT))
    VarianceHead(HeadShape(3, 8, 1)).save(folder / "head.variance.safetensors")
    from diffusers import DDPMScheduler, UNet2DModel

    UNet2DModel(sample_size=SIDE, **TINY_UNET).save_pretrained(folder / "pipeline" / "unet")
    DDPMScheduler().save_pretrained(folder / "pipeline" / "scheduler")


def _trust(folder: Path) -> None:
    from leader.trust.calibration import LEVELS, Calibration, Node
    from leader.trust.referee import Referee

    torch.manual_seed(0)
    Referee().save(folder / "net.referee")
    factors = tuple(1.0 + level for level in LEVELS)
    nodes = (Node(0.0, factors, 10), Node(0.1, factors, 20))
    Calibration({"denoise": nodes, "sr": nodes}).save(folder / "net.referee.json")


def _runs(folder: Path, picture: Path) -> None:
    """Runs as --json keeps them, of the shipped prior, two steps each."""
    from leader.restoration.restore import restore

    plain = restore(picture, "denoise", sigma=0.1, method="ddnm", steps=2, check=False)
    kernel = restore(picture, "deblur-gaussian", kernel="gaussian:1", sigma=0.05, steps=2, check=False, average=2)
    for name, restored in (("plain", plain), ("kernel", kernel)):
        (folder / f"{name}.json").write_text(json.dumps(restored.summary(), default=str))
