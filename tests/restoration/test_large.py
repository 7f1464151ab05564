"""Large pictures: the answer of a whole run from pieces; twelve megapixels in four gigabytes."""

from __future__ import annotations

import os
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
    monkeypatch.setattr("leader.restoration.restore.in_pieces", lambda prior, *_: PiecewisePrior(prior, prior, 70 * 70))
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


FRAMES = """
import os, sys
import numpy as np, torch
from scipy import ndimage
import leader.operators.blur, leader.trust.error_map, leader.trust.evidence, leader.trust.referee, leader.trust.strips
from leader.restoration import restore as room
from tests.cheap_prior import CheapPrior
torch.set_num_threads(1)
for module in (leader.trust.strips, leader.trust.evidence, leader.trust.referee, leader.trust.error_map):
    module.LARGE = 100_000
leader.operators.blur.LARGE_FRAME = 100_000
height, width = 600, 800
draw = np.random.default_rng(0)
noise = ndimage.gaussian_filter(draw.standard_normal((height, width, 3), dtype=np.float32), (1.5, 1.5, 0))
picture = (0.5 + 0.06 * noise / noise.std()).clip(0, 1).astype(np.float32)
ready = room.prepare(picture, sys.argv[1], prior=CheapPrior(), quality="draft", steps=3, threads=1, **eval(sys.argv[2]))
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
ready.run(check=False)
with open("/proc/self/status") as file:  # the peak of this program; that of getrusage begins with the one that started it
    after = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
print(type(ready.problem.operator).__name__, (after - before) / (12 * height * width))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory in /proc")
@pytest.mark.parametrize(
    ("task", "options", "operator", "most"),
    [
        pytest.param("denoise", "{}", "WhitenedBlur", 33.0, marks=pytest.mark.slow),
        pytest.param("deblur", "{'kernel': 'gaussian:2'}", "WhitenedBlur", 38.0, marks=pytest.mark.slow),
    ],
)
def test_a_large_run_holds_few_copies_of_its_picture(task: str, options: str, operator: str, most: float) -> None:
    """In frames of single precision beyond what was there before it began; large blocks go back to the system at once.

    Measured: 29 and 31, some six of them libraries at work; with whole spectra in float64, 38 and 50.
    """
    surroundings = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "500000", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", FRAMES, task, options]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=surroundings)
    kind, frames = done.stdout.split()[-2:]
    assert kind == operator and 0 < float(frames) < most, done.stdout


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
    assert "This will take about" in done.stderr
