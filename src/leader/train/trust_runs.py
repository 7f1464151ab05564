"""Runs whose truth is known, stored for fitting and calibrating a referee: evidence and error of many restorations.

Photographs are degraded by the tasks and restored with the prior, and the referee's input is stored beside the truth, one small
file per run: a stopped fit continues where it was.
"""

import json
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leader.engines.base import Engine, Lost
from leader.errors import LeaderError
from leader.files import replacing
from leader.operators.base import LinearOperator
from leader.operators.tasks import build_task
from leader.presets.paths import LOOKS, find_path
from leader.priors.base import Prior
from leader.problem import Problem
from leader.restoration.choice import Choice
from leader.restoration.tasks import TASKS
from leader.sampler import Sampler
from leader.train import defaults, trust_files
from leader.train.data import Images, decode, halved, list_images, to_tensor
from leader.trust.calibration import NODES, STRONG, find_level
from leader.trust.error_map import is_in_metric
from leader.trust.evidence import Evidence, Watch, gather

SIDE = 64
"""Side of the crops in pixels."""
LOW_NOISE, HIGH_NOISE = 0.01, 0.1
"""Range of the noise of noisy training runs, for [0, 1] images."""
NOISE_FREE = 0.4
"""Share of the training runs without noise."""
NAMED = ("ddnm", "diffpir")
"""Methods of the runs by name; the others use the method of a quality, which is what people run."""
BY_NAME = 0.25
"""Share of the runs by name among the training runs that are not picture files."""


@dataclass(frozen=True)
class RunCase:
    """One restoration to run.

    task      of `leader.operators.tasks`; options: of its operator; masks drawn by "keep" follow the seed
    noise     for [0, 1] images
    quality   of `leader.presets.paths`, if no method is named; a named method runs the steps of that quality
    picture   number of the photograph in its folder; crop: which part of it
    halvings  how often the photograph is halved first; None: once for every other crop
    file      None: y = A x + noise, unrounded, with a known operator. Otherwise a picture file, restored as by `leader.restore`
              (see `trust_files`): {"given": whether the noise is given, "jpeg": quality of a compression}
    """

    task: str
    noise: float
    picture: int
    crop: int
    options: dict[str, Any] = field(default_factory=dict)
    method: str | None = None
    quality: str = "standard"
    look: str = "natural"
    seed: int = 0
    side: int = SIDE
    halvings: int | None = None
    file: dict[str, Any] | None = None

    def operator(self) -> LinearOperator:
        """A, for RGB crops."""
        drawn = {"seed": self.seed} if "keep" in self.options else {}
        return build_task(self.task, (3, self.side, self.side), **self.options, **drawn)

    def sampler(self, prior: Prior, problem: Problem) -> Sampler:
        if self.method is None:
            return Choice(prior, self.quality, self.look).sampler(problem)
        plain = find_path(prior.name, "denoise", self.noise, self.quality, self.look)
        return Sampler(prior, self.method, (), min(plain.steps, len(prior.schedule)), grid=plain.route())


@dataclass(frozen=True)
class KeptRun:
    """Evidence and truth [C, H, W] in [-1, 1] of one run, and its case.

    level   at which its factors stand (`calibration.find_level`)
    inside  the picture's part of the frame [H, W] bool, if the frame is larger
    metric  whether its data step was in the metric of Sigma
    """

    case: dict[str, Any]
    evidence: Evidence
    truth: Tensor
    level: float
    inside: Tensor | None = None
    metric: bool = False

    @property
    def error(self) -> Tensor:
        """The clamped answer minus the truth, [C, H, W]."""
        return self.evidence.restored - self.truth

    @property
    def open(self) -> Tensor:
        """Open pixels, whose error is unknown, [H, W] bool."""
        return self.evidence.open if self.inside is None else self.evidence.open & self.inside

    @property
    def noise(self) -> float:
        """The given or estimated noise level of the run, for [0, 1] images."""
        return self.evidence.noise / 2


def training_cases(pictures: int, count: int, seed: int = 0, side: int = SIDE) -> list[RunCase]:
    """Cases over all tasks, methods and lengths, of `pictures` photographs in turn."""
    return [_draw_case(np.random.default_rng((seed, number)), number, number % pictures, side) for number in range(count)]


DRAWS: dict[str, Callable[[np.random.Generator, int], dict[str, Any]]] = {
    "sr": lambda rng, side: {"factor": int(rng.choice([2, 4, 4])), "down": str(rng.choice(["bicubic", "bicubic", "average"]))},
    "deblur-gaussian": lambda rng, side: {} if rng.random() < 0.3 else {"std": float(rng.uniform(0.8, 3.5))},
    "deblur-motion": lambda rng, side: {"seed": int(rng.integers(1000)), "intensity": float(rng.uniform(0.2, 0.8))},
    "inpaint": lambda rng, side: {"keep": float(rng.uniform(0.2, 0.8))},
    "hole": lambda rng, side: {"box": _draw_box(rng, side)},
    "cs": lambda rng, side: {
        "ratio": float(rng.uniform(0.1, 0.5)),
        "seed": int(rng.integers(1000)),
        "order": str(rng.choice(["random", "sequency"])),
    },
    "denoise": lambda rng, side: {},
    "colourise": lambda rng, side: {},
}
"""Options of the operators of training runs; "hole" is inpainting with one large hole."""
TURN = (
    *("cs", "deblur-motion", "sr", "hole", "deblur-gaussian", "inpaint", "cs", "deblur-motion", "colourise"),
    *("sr", "deblur-gaussian", "hole", "inpaint", "deblur-motion"),
)
"""Motion blur, whose operators vary most between runs, occurs more often than the others."""
RARE = ("denoise", "colourise")
FILES = ("jpeg", "denoise", "deblur-gaussian", "denoise", "jpeg", "sr", "inpaint", "deblur-motion")
"""Tasks of picture files, `FILES_A_TURN` after every turn of the others."""
FILES_A_TURN = 4
FILE_TASKS = tuple(dict.fromkeys(FILES))
LARGE = 160
"""Side in pixels of the crops that calibrate JPEG, whose noise is estimated: in small ones it is hardly known."""


def _draw_case(rng: np.random.Generator, number: int, picture: int, side: int) -> RunCase:
    turn, place = divmod(number, len(TURN) + 1 + FILES_A_TURN)
    if place > len(TURN):
        return _draw_file_case(rng, number, picture, side, FILES[(turn * FILES_A_TURN + place - len(TURN) - 1) % len(FILES)])
    name = TURN[place] if place < len(TURN) else RARE[turn % len(RARE)]
    noise = 0.0 if rng.random() < NOISE_FREE and name != "denoise" else _log_uniform(rng, LOW_NOISE, HIGH_NOISE)
    size = _cs_side(side) if name == "cs" else side
    options = DRAWS[name](rng, size)
    method = str(rng.choice(NAMED)) if rng.random() < BY_NAME else None
    quality = "draft" if rng.random() < 0.2 else "standard"
    look = str(rng.choice(["natural", "natural", "faithful"]))
    task = _find_task(name)
    halvings = int(rng.choice([0, 0, 1, 1, 2]))
    return RunCase(task, noise, picture, int(rng.integers(1 << 16)), options, method, quality, look, number, size, halvings)


def _draw_file_case(rng: np.random.Generator, number: int, picture: int, side: int, task: str) -> RunCase:
    """A picture file: half of the noise levels are given, the others estimated; one in four is a JPEG."""
    clean = task == "jpeg" or (task != "denoise" and rng.random() < NOISE_FREE)
    noise = 0.0 if clean else _log_uniform(rng, LOW_NOISE, HIGH_NOISE)
    file: dict[str, Any] = {"given": bool(rng.random() < 0.5)}
    if task != "jpeg" and rng.random() < 0.25:
        file = {"given": False, "jpeg": int(rng.integers(60, 96))}
    look = str(rng.choice(["natural", "faithful"]))
    halvings, crop = int(rng.choice([0, 0, 1, 1, 2])), int(rng.integers(1 << 16))
    options = trust_files.draw_options(task, rng, side)
    if options.get("factor", 1) > 2:
        file = {"given": True}  # too few pixels to estimate the noise
    return RunCase(task, noise, picture, crop, options, None, "standard", look, number, side, halvings, file)


def _find_task(family: str) -> str:
    return next((task.name for task in TASKS.values() if family == task.hole_family), family)


def _cs_side(side: int) -> int:
    """The largest power of two that is not larger, as compressed sensing needs."""
    return 1 << side.bit_length() - 1


def _draw_box(rng: np.random.Generator, side: int) -> list[int]:
    height, width = (int(rng.integers(side // 6, side // 2)) for _ in range(2))
    return [int(rng.integers(0, side - height)), int(rng.integers(0, side - width)), height, width]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def standard_options(name: str, number: int, side: int) -> dict[str, Any]:
    """The operator of a family for fitting and testing factors: kernels and masks differ between runs."""
    rng = np.random.default_rng((7, number))
    third = side // 3
    chosen: dict[str, dict[str, Any]] = {
        "sr": {"factor": 4},
        "deblur-gaussian": {} if rng.random() < 0.5 else {"std": float(rng.choice([1.0, 1.5, 2.0, 2.5, 3.0]))},
        "deblur-motion": {"seed": number},
        "inpaint": {"keep": 0.5},
        "hole": {"box": [*(int(v) for v in rng.integers(side // 8, side // 2, 2)), third, third]},
        "cs": {"ratio": 0.25, "seed": number},
        "denoise": {},
        "colourise": {},
    }
    return chosen[name]


FAMILIES = ("sr", "deblur-gaussian", "deblur-motion", "inpaint", "hole", "cs")
SIMPLE = ("denoise", "colourise")
"""Families calibrated on fewer crops, since their operators do not vary."""


def calibration_cases(
    pictures: int,
    crops: int = 4,
    families: Sequence[str] = FAMILIES,
    nodes: Sequence[float] = NODES,
    methods: Sequence[str | None] = (None,),
    side: int = SIDE,
) -> list[RunCase]:
    """Every crop with every family once, the methods in turn; None: the method of the quality.

    The crops of a photograph take the noise levels in turn, so every level covers all photographs.
    """
    cases = []
    for number, crop, picture, place, name, noise in _list_turns(pictures, crops, families, nodes):
        size = _cs_side(side) if name == "cs" else side
        method = methods[(picture // len(nodes) + crop // 2 + place) % len(methods)]
        options = standard_options(name, number, size)
        cases.append(RunCase(_find_task(name), noise, picture, crop, options, method, seed=number, side=size))
    return cases


def _list_turns(
    pictures: int, crops: int, names: Sequence[str], nodes: Sequence[float]
) -> Iterator[tuple[int, int, int, int, str, float]]:
    """Number, crop and picture of a crop, place and name of a family, and the noise level whose turn it is."""
    for number in range(pictures * crops):
        crop, picture = divmod(number, pictures)
        for place, name in enumerate(names):
            # there is nothing to denoise without noise, and much where it is strong
            levels = [*(node for node in nodes if node > 0), STRONG] if name == "denoise" else nodes
            yield number, crop, picture, place, name, 0.0 if name == "jpeg" else levels[(picture + crop + place) % len(levels)]


def file_cases(pictures: int, crops: int = 2, tasks: Sequence[str] = FILE_TASKS, side: int = SIDE) -> list[RunCase]:
    """Every crop as a picture file of every task once, treated as by `leader.restore`, with the noise levels in turn."""
    cases = []
    for number, crop, picture, place, task, noise in _list_turns(pictures, crops, tasks, NODES):
        options = trust_files.draw_options(task, np.random.default_rng((11, number, place)), side)
        look = LOOKS[(picture + crop // 2) % 2] if task == "jpeg" else LOOKS[0]
        told = {"given": options.get("factor", 1) > 2}
        cases.append(RunCase(task, noise, picture, crop, options, look=look, seed=number, side=side, file=told))
    return cases


def every_family(pictures: int, crops: int = 4, side: int = SIDE) -> list[RunCase]:
    """The cases for fitting factors: all families, first crops first, so that any initial part is balanced.

    For most families half of the runs are measurements on the paths of a quality, a quarter such runs of methods by name, and a
    quarter picture files, which is what people have: with unrounded measurements only, errors are underestimated.
    """
    few = max(1, crops // 2)
    others = [task for task in FILE_TASKS if task != "jpeg"]
    cases = (
        calibration_cases(pictures, crops, side=side)
        + calibration_cases(pictures, few, methods=NAMED, side=side)
        + calibration_cases(pictures, few, SIMPLE, side=side)
        + file_cases(pictures, few, others, side=side)
        + file_cases(pictures, 2 * crops, ["jpeg"], side=max(side, LARGE))
    )
    return sorted(cases, key=lambda case: (case.crop, case.picture))


def crop_of(images: Images, case: RunCase) -> Tensor:
    """The crop [3, S, S] in [0, 1] that a case asks for; a photograph is halved only while it stays large enough. A smaller one
    serves JPEG whole: nothing there has a fixed size. Positions follow from the crop's number, spread evenly and far apart.
    """
    path = list_images(images)[case.picture]
    picture = decode(path)
    for _ in range(case.crop % 2 if case.halvings is None else case.halvings):
        if min(picture.size) >= 2 * case.side:
            picture = halved(picture)
    side = min(case.side, max(SIDE, min(picture.size))) if case.task == "jpeg" else case.side
    pixels = np.asarray(picture)
    room = [pixels.shape[axis] - side for axis in (0, 1)]
    if min(room) < 0:
        raise LeaderError(f"{path.name} is smaller than {side} x {side} pixels: leave it out, or give larger pictures.")
    golden = [0.7548776662, 0.5698402910]
    top, left = (int(((case.crop // 2 + 1) * step % 1) * space) for step, space in zip(golden, room))
    return to_tensor(pixels[top : top + side, left : left + side])


def run_case(prior: Prior, case: RunCase, picture: Tensor, name: int = 0) -> KeptRun:
    """Makes one run of a picture [3, S, S] in [0, 1]; `name` determines the noise of the sampler."""
    truth, inside, plan = 2 * picture - 1, None, None
    if case.file is None:
        problem = Problem.simulate(picture[None], case.operator(), case.noise, case.seed)
        sampler = case.sampler(prior, problem)
    else:
        given = trust_files.degrade_picture(picture, case, case.file.get("jpeg"))
        ready = trust_files.prepare_file(prior, given, case, case.noise if case.file["given"] else None, name)
        problem, sampler, plan = ready.problem, ready.sampler, ready.plan
        if (window := ready.posed.window) is not None:
            whole = torch.zeros(3, *problem.operator.image_shape[-2:])
            inside = torch.zeros_like(whole[0], dtype=torch.bool)
            window.crop(inside).fill_(True)
            window.crop(whole).copy_(truth)
            truth = whole
    watch = Watch(prior.schedule)
    result = sampler.run(problem, case.seed, ids=[name], plan=plan, on_step=watch)
    evidence = gather(prior, problem, result.images, watch, name)
    if evidence is None:
        raise LeaderError(f"The prior '{prior.name}' estimated no Sigma, which its referee needs; choose an estimator.")
    return KeptRun(vars(case), evidence, truth, find_level(problem), inside, is_in_metric(result))


WHOLE = ("evidence_restored", "truth")
"""Of a kept run, what is not rounded: errors may be far below the half precision of a picture."""


def write_run(path: Path, run: KeptRun) -> None:
    """Writes a run, with result and truth in full precision; half precision is enough for evidence."""
    evidence = {f"evidence_{k}": v for k, v in vars(run.evidence).items() if isinstance(v, Tensor)}
    maps = {**evidence, "truth": run.truth, **({} if run.inside is None else {"inside": run.inside})}
    arrays: dict[str, Any] = {
        name: value.numpy(force=True) if name in WHOLE or value.dtype == torch.bool else value.half().numpy(force=True)
        for name, value in maps.items()
    }
    numbers = {"noise": run.evidence.noise, "residual": run.evidence.residual, "level": run.level, "metric": run.metric}
    header = json.dumps({"case": run.case, **numbers})
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, said=np.array(header), **arrays)


def read_run(path: Path) -> KeptRun:
    with np.load(path, allow_pickle=False) as content:
        header = json.loads(str(content["said"]))
        read = {name: torch.from_numpy(content[name]) for name in content.files if name != "said"}
    arrays = {name: value if value.dtype == torch.bool else value.float() for name, value in read.items()}
    truth, inside = arrays.pop("truth"), arrays.pop("inside", None)
    maps: dict[str, Any] = {name.removeprefix("evidence_"): value for name, value in arrays.items()}
    evidence = Evidence(**{"known": None, "given": None, **maps}, noise=header["noise"], residual=header["residual"])
    return KeptRun(header["case"], evidence, truth, header["level"], inside, header["metric"])


def make_runs(
    prior: Prior,
    images: Images,
    cases: Sequence[RunCase],
    store: Path,
    say: Callable[[str], None] | None = None,
    workers: Engine | None = None,
    source: str = "embedded",
) -> Generator[Path, None, None]:
    """Makes the runs that are missing from `store`; yields the files that exist, then each other one once it does.

    workers  the engine; None: this process. Workers must have access to the pictures; the runs are stored here
    source   name or path from which workers load the prior, once each
    """
    files = [path.resolve() for path in list_images(images)]
    paths = [store / f"{number:05d}.npz" for number in range(len(cases))]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    jobs = ((cases[number], files[cases[number].picture]) for number in missing)
    yield from (path for path in paths if path.exists())
    made = enumerate(map(partial(_run_job, prior), jobs)) if workers is None else workers.each(partial(_run_job, source), jobs)
    for index, run in made:
        if isinstance(run, Lost):
            raise LeaderError(f"A run failed: {run.reason}.")
        path = paths[missing[index]]
        write_run(path, run)
        if say is not None and missing[index] % 20 == 0:
            say(f"run {missing[index] + 1} of {len(cases)}")
        yield path


def make_timed_runs(runs: Generator[Path, None, None], workers: Engine | None, seconds: float) -> list[Path]:
    """The files of as many of `make_runs` as fit into the time, at least `defaults.FEWEST_RUNS`, in the order of the cases."""
    begin, files = time.monotonic(), []
    with nullcontext() if workers is None else closing(workers), closing(runs):
        for file in runs:
            files.append(file)
            if time.monotonic() - begin > seconds and len(files) >= defaults.FEWEST_RUNS:
                break
    return sorted(files)


@lru_cache(maxsize=1)
def _load_prior(source: str) -> Prior:
    from leader.priors.loading import load_prior

    return load_prior(source)


def _run_job(prior: Prior | str, job: tuple[RunCase, Path]) -> KeptRun:
    case, file = job
    return run_case(_load_prior(prior) if isinstance(prior, str) else prior, case, crop_of([file], replace(case, picture=0)))
