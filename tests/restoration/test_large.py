"""Large pictures: the answer of a whole run from pieces; twelve megapixels in four gigabytes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.priors import load_prior
from leader.priors.pieces import PiecewisePrior
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidConfig, PyramidNet
from leader.restoration.restore import prepare
from tests.cheap_prior import photograph

TASKS: dict[str, dict[str, Any]] = {"sr": {"factor": 2}, "denoise": {}, "deblur": {"kernel": "gaussian:1.5"}}
SIGMA = {"sr": 0.0, "denoise": 0.1, "deblur": 0.02}


@pytest.mark.parametrize("task", TASKS)
def test_a_large_picture_gives_what_it_gives_whole(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To 1e-3 of the range in every pixel after ten steps; a picture that is not large gives the same bits as ever."""
    import torch

    torch.manual_seed(0)
    shipped = load_prior("embedded")
    assert isinstance(shipped, PyramidPrior)
    net = PyramidNet(PyramidConfig(width=6, depth=3, head_width=4)).eval().requires_grad_(False)
    prior = PyramidPrior(net, shipped.coarse, shipped.schedule, shipped.scale)
    size = (60, 71) if task == "sr" else (120, 142)

    def restored() -> Any:
        ready = prepare(photograph(*size), task, prior=prior, steps=10, sigma=SIGMA[task], threads=1, **TASKS[task])
        assert isinstance(ready.sampler.prior, PiecewisePrior) is large
        return ready.run()

    large = False
    whole = restored()
    large = True
    monkeypatch.setattr("leader.restoration.restore.cut_into_pieces", lambda prior, *_: PiecewisePrior(prior, prior, 70 * 70))
    for room in ("strips", "referee", "evidence"):
        monkeypatch.setattr(f"leader.trust.{room}.LARGE", 100)
    monkeypatch.setattr("leader.trust.strips.STRIP", 1000)
    pieces = restored()
    assert np.abs(pieces.array - whole.array).max() < 1e-3
    assert pieces.verdict.level == whole.verdict.level
    for name, value in whole.verdict.numbers.items():
        if value is not None:
            assert pieces.verdict.numbers[name] == pytest.approx(value, rel=0.01, abs=1e-4), name


MEASURE = """
import resource, sys
from leader.cli import main
sys.argv = ["leader", *sys.argv[1:]]
code = 0
try:
    main()
except SystemExit as end:
    code = end.code
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "exit", code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("task", ["sr", "denoise", "deblur", "inpaint", "jpeg"])
def test_twelve_megapixels_take_less_than_four_gigabytes(task: str, tmp_path: Path) -> None:
    """Three quarters of a megapixel enlarged four times, or twelve restored; two steps."""
    draw = np.random.default_rng(0)
    width, height = (1000, 750) if task == "sr" else (4000, 3000)
    coarse = Image.fromarray(draw.integers(0, 256, (height // 16, width // 16, 3)).astype(np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    noise = draw.normal(0, 25 if task == "denoise" else 1, smooth.shape)
    given = tmp_path / ("in.jpg" if task == "jpeg" else "in.png")
    Image.fromarray((smooth + noise).clip(0, 255).astype(np.uint8)).save(given, quality=60)
    words = ["restore", str(given), str(tmp_path / "out.png"), "--task", task, "--quality", "draft"]
    words += ["--steps", "2", "--keep-failed", "--map", str(tmp_path / "map.npy"), "--json", str(tmp_path / "run.json")]
    words += ["--kernel", "gaussian:2"] if task == "deblur" else []
    if task == "inpaint":
        known = np.full((height, width), 255, np.uint8)
        known[1000:1400, 1500:2100] = 0
        Image.fromarray(known).save(tmp_path / "mask.png")
        words += ["--mask", str(tmp_path / "mask.png")]
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True)
    _, peak, _, code = done.stdout.split()[-4:]
    print(task, peak, "MB")
    assert code == "0" and int(peak) < 4000, done.stdout + done.stderr
    with Image.open(tmp_path / "out.png") as image:
        assert image.size == (4000, 3000)
