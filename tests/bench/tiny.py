"""A tiny experiment on the closed-form prior, shared by the tests of the harness."""

from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from leader.bench.cell import Cell
from leader.bench.experiment import Experiment
from leader.bench.experiment_file import load_experiment
from leader.bench.setup import operator_of
from leader.problem import Problem

TOML = """
title = "Tiny"
tasks = ["sr", "deblur"]

[task.sr]
label = "SR"
name = "sr"
options = { factor = 4 }

[task.deblur]
label = "Motion"
name = "deblur-motion"
options = { seed = "image" }
sigma = 0.05

[[rows]]
methods = ["ddnm"]
plugins = [[], ["ucpm"], ["satp"]]
settings = { satp = { budget = 0.3, eta = 2.0 } }

[[rows]]
label = "DDNM, uniform"
methods = ["ddnm"]
grid = "linspace"
calls_of = "DDNM + SATP"

[[rows]]
methods = ["ddpg"]

[form.small]
prior = "gaussian"
images = "IMAGES"
fit = "crop"
size = 64
count = 4
steps = 5
timing = false
"""


def photographs(folder: Path, count: int = 4, side: int = 80) -> Path:
    """A folder of smooth random pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for index in range(count):
        coarse = Image.fromarray(generator.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        coarse.resize((side, side), Image.Resampling.BICUBIC).save(folder / f"photo{index}.png")
    return folder


def write_tiny(folder: Path, text: str = TOML) -> Path:
    """The experiment as a file, with its pictures beside it."""
    images = photographs(folder / "images")
    path = folder / "tiny.toml"
    path.write_text(text.replace("IMAGES", images.as_posix()))
    return path


def tiny(folder: Path, text: str = TOML) -> Experiment:
    return load_experiment(write_tiny(folder, text))


def measure(cell: Cell, picture: Tensor) -> Problem:
    """The problem of a cell."""
    operator = operator_of(cell.recipe, cell.index)
    return Problem.simulate(picture, operator, cell.recipe.sigma, cell.recipe.seed, ids=[cell.index])
