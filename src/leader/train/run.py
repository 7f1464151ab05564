"""The training run of the embedded prior: a loop that can stop at any time and continue exactly where it was, and its log."""

import importlib.util
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from leader.errors import LeaderError
from leader.files import claim, replacing
from leader.pictures import list_pictures
from leader.priors.json_files import check_keys, check_number, check_whole
from leader.priors.loading import device_named
from leader.priors.pyramid import embedded_file
from leader.priors.pyramid_net import PyramidConfig, PyramidNet, plan
from leader.priors.tensor_files import check_weights, read_checkpoint, read_safetensors
from leader.train import defaults
from leader.train.data import Photographs, central_crops, open_photographs
from leader.train.objective import Task, draw_examples, fit_task, loss

SIGMAS = (10, 25, 50, 75, 100, 149, 200, 255, 400, 600)
VALIDATION = 16
"""Pictures to validate with, at most."""


@torch.no_grad()
def validate(net: PyramidNet, clean: Tensor, sigmas: tuple[float, ...] = SIGMAS) -> dict[str, list[float]]:
    """Mean PSNR [dB] and squared error over predicted variance per noise level (of 255); fixed noise."""
    generator = torch.Generator().manual_seed(0)
    table: dict[str, list[float]] = {"sigma": list(sigmas), "psnr": [], "ratio": []}
    device = next(net.parameters()).device
    for value in sigmas:
        sigma = value / 255
        where = plan(sigma, clean.shape[2], clean.shape[3], net.config)
        noisy = clean + sigma * torch.randn(clean.shape, generator=generator)
        errors, variances = [], []
        for image, target in zip(torch.split(noisy, 4), torch.split(clean, 4), strict=True):
            estimate, variance = net(image.to(device), torch.full((len(image),), sigma, device=device), where)
            errors.append((estimate.clamp(0, 1).cpu() - target).square())
            variances.append(variance.cpu())
        error, predicted = torch.cat(errors), torch.cat(variances)
        table["psnr"].append(float((-10 * error.mean((1, 2, 3)).log10()).mean()))
        table["ratio"].append(float(error.mean() / predicted.mean()))
    return table


def main_task() -> Task:
    """The main body: moderate to strong noise, at all levels."""
    return Task(defaults.MAIN_BATCH, 80, 0.9 * 37.5 / 255, 150 / 255, 70 / 255, (0.6, 0.2, 0.12, 0.08))


def expert_task() -> Task:
    """The expert: little noise, low levels drawn more often."""
    return Task(defaults.EXPERT_BATCH, 64, 0.0, 1.15 * 37.5 / 255, 0.0, (0.8, 0.12, 0.08), sigma_power=1.3)


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a run. It ends after `steps` or `seconds`, whichever comes first."""

    images: Path
    state: Path
    validation: Path | None = None
    start_pyramid: Path | None = None
    start_ffdnet: Path | None = None
    net: PyramidConfig = field(default_factory=PyramidConfig)
    parts: tuple[str, ...] = defaults.PARTS
    main: Task = field(default_factory=main_task)
    expert: Task = field(default_factory=expert_task)
    steps: int = 10**9
    seconds: float = math.inf
    rate: float = defaults.RATE
    expert_rate: float = defaults.EXPERT_RATE
    head_factor: float = defaults.HEAD_FACTOR
    share_rate: float = defaults.SHARE_RATE
    weight_decay: float = 1e-4
    warm_up: int = 50
    final_rate: float = 0.02
    clip: float = 1.0
    ema: float = 0.999
    seed: int = defaults.SEED
    checkpoint_seconds: float = 180.0
    validation_seconds: float = 300.0
    log_every: int = 20
    device: str = defaults.DEVICE
    autocast: bool = False
    compile: bool = False

    def __post_init__(self) -> None:
        check_keys(self.parts, defaults.PARTS, "part of the network")
        if not self.parts:
            raise LeaderError(f"Nothing to train: name some of {', '.join(defaults.PARTS)}.")
        if not self.seconds > 0 or self.steps < 1:
            raise LeaderError(
                f"Training needs a time above 0 and at least one step; found {self.seconds} s, {self.steps} steps."
            )
        check_whole(self.seed, "The seed", 0, 2**63)
        for name in ("rate", "expert_rate", "share_rate"):
            check_number(getattr(self, name), f"The {name.replace('_', ' ')}", 0, 1)


class Trainer:
    """Network, averaged network, optimiser and counters: the state that a checkpoint holds."""

    def __init__(self, config: TrainConfig) -> None:
        torch.manual_seed(config.seed)
        self.config = config
        self.device = device_named(config.device)
        self.net = PyramidNet(config.net)
        if config.start_pyramid is not None or config.start_ffdnet is not None:
            pyramid = {} if config.start_pyramid is None else load_pyramid(config.start_pyramid)
            initialise(self.net, pyramid, None if config.start_ffdnet is None else load_ffdnet(config.start_ffdnet))
        self.net.to(self.device)
        self.average = PyramidNet(config.net).to(self.device)
        self.average.load_state_dict(self.net.state_dict())
        self.average.requires_grad_(False)
        groups_by_part = group_parameters(self.net)
        self.parts = {name: members for name, members in groups_by_part.items() if name in config.parts}
        if not self.parts:
            raise LeaderError(
                f"This network has no {' or '.join(config.parts)} to train: name some of {', '.join(groups_by_part)}."
            )
        for name, members in groups_by_part.items():
            for parameter in members:
                parameter.requires_grad_(name in self.parts)
        groups = [{"params": members} for members in self.parts.values()]
        self.optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.999), weight_decay=config.weight_decay)
        self.step = 0
        self.elapsed = 0.0

    def progress(self) -> float:
        """Elapsed share of the schedule, 0 to 1."""
        return min(1.0, max(self.step / self.config.steps, self.elapsed / self.config.seconds))

    def rate_factor(self) -> float:
        """Linear warm-up, then half a cosine down to `final_rate`."""
        cosine = 0.5 * (1 + math.cos(math.pi * self.progress()))
        falling = self.config.final_rate + (1 - self.config.final_rate) * cosine
        return falling * min(1.0, (self.step + 1) / self.config.warm_up)

    def advance(self, photos: dict[str, Photographs]) -> dict[str, float]:
        """One step of both bodies; returns means for the log."""
        config, factor = self.config, self.rate_factor()
        for group, part in zip(self.optimiser.param_groups, self.parts, strict=True):
            group["lr"] = _choose_rate(part, config) * factor
        self.optimiser.zero_grad(set_to_none=True)
        record: dict[str, float] = {"rate": factor}
        for name, task in (("main", config.main), ("expert", config.expert)):
            if not any(part.startswith(name) or (part, name) == ("share", "main") for part in self.parts):
                continue
            totals: dict[str, float] = {}
            for examples in draw_examples(self.net, photos, task, config.seed, self.step, name == "expert"):
                with torch.autocast(self.device.type, torch.bfloat16, enabled=config.autocast):
                    value, sums = loss(self.net, examples, self.device)
                torch.autograd.backward([value / task.batch])
                totals = {key: totals.get(key, 0.0) + amount / task.batch for key, amount in sums.items()}
            record |= {f"{name}_{key}": amount for key, amount in totals.items()}
        for part, members in self.parts.items():
            record[f"{part}_norm"] = float(nn.utils.clip_grad_norm_(members, config.clip))
        self.optimiser.step()
        self._average()
        self.step += 1
        return record

    @torch.no_grad()
    def _average(self) -> None:
        decay = min(self.config.ema, (1 + self.step) / (10 + self.step))
        pairs = list(zip(self.average.parameters(), self.net.parameters(), strict=True))
        torch._foreach_lerp_([a for a, _ in pairs], [b for _, b in pairs], 1 - decay)

    def save(self) -> None:
        """Write the checkpoint; a crash while writing leaves the previous one whole."""
        path = self.config.state / "checkpoint.pt"
        content = {
            "net": self.net.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "elapsed": self.elapsed,
        }
        with replacing(path, durable=True) as temporary:
            torch.save(content, temporary)
        save_weights(self.average, self.config.state / "pyramid.safetensors")
        write_provisional_settings(self.config.net, self.config.state / "pyramid.json")

    def resume(self) -> bool:
        path = self.config.state / "checkpoint.pt"
        if not path.exists():
            return False
        content: dict[str, Any] = read_checkpoint(path)
        try:
            self.net.load_state_dict(content["net"])
            self.average.load_state_dict(content["average"])
            self.optimiser.load_state_dict(content["optimiser"])
            self.step, self.elapsed = int(content["step"]), float(content["elapsed"])
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise LeaderError(
                f"{path} is not a checkpoint of a run with these parts and this shape: continue with the same ones, or give "
                "another folder as the state."
            ) from error
        return True


def body_from_ffdnet(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """FFDNet colour (Zhang, Zuo, Zhang 2018) numbers its convolutions 0, 2, ...: use `Body`'s names."""
    numbers = sorted({int(name.split(".")[1]) for name in state})
    names = [f"convs.{index}" for index in range(len(numbers) - 1)] + ["out"]
    return {
        f"{name}.{kind}": state[f"model.{number}.{kind}"].float()
        for name, number in zip(names, numbers, strict=True)
        for kind in ("weight", "bias")
    }


def load_ffdnet(path: Path) -> dict[str, Tensor]:
    """A body's tensors from FFDNet's colour checkpoint (a tensor-only pickle)."""
    try:
        return body_from_ffdnet(read_checkpoint(path))
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise LeaderError(f"{path} does not hold FFDNet's colour weights: give the path of ffdnet_color.pth.") from error


def load_pyramid(path: Path) -> dict[str, Tensor]:
    """The tensors of a pyramid's weights, in float32."""
    if path.suffix != ".safetensors":
        raise LeaderError(f"{path} is not a .safetensors file: give the weights of a pyramid prior.")
    tensors, _ = read_safetensors(path)
    check_weights(tensors, path)
    return {name: tensor.float() for name, tensor in tensors.items()}


def initialise(net: PyramidNet, pyramid: Mapping[str, Tensor], ffdnet: Mapping[str, Tensor] | None) -> None:
    """Starts from a pyramid's weights or, if there are none, from FFDNet's.

    A pyramid without an expert gets FFDNet as its expert, or else its main body.
    """
    known = net.state_dict()
    fitting = {name: tensor for name, tensor in pyramid.items() if name in known and tensor.shape == known[name].shape}
    if pyramid and not any(name.startswith("main.convs") for name in fitting):
        raise LeaderError("The weights to start from are not those of a pyramid of this shape: give others, or 'scratch'.")
    net.load_state_dict({**known, **fitting})
    if not pyramid and ffdnet is not None:
        net.main.load_state_dict({**net.main.state_dict(), **ffdnet})
    if net.expert is not None and not any(name.startswith("expert.") for name in fitting):
        net.expert.load_state_dict({**net.main.state_dict(), **(ffdnet or {})})


def group_parameters(net: PyramidNet) -> dict[str, list[nn.Parameter]]:
    """The network's parameters by trainable part: main, main_head, expert, expert_head, share."""
    groups: dict[str, list[nn.Parameter]] = {}
    for name, parameter in net.named_parameters():
        module, _, rest = name.partition(".")
        groups.setdefault(f"{module}_head" if rest.startswith("h") else module, []).append(parameter)
    return groups


def _choose_rate(part: str, config: TrainConfig) -> float:
    if part == "share":
        return config.share_rate
    rate = config.expert_rate if part.startswith("expert") else config.rate
    return rate * config.head_factor if part.endswith("_head") else rate


def save_weights(net: PyramidNet, path: Path) -> None:
    """The network as float16 safetensors: the published format."""
    tensors = {name: tensor.detach().half().contiguous().cpu() for name, tensor in net.state_dict().items()}
    with replacing(path) as temporary:
        save_file(tensors, temporary)


def write_provisional_settings(config: PyramidConfig, path: Path) -> None:
    """Settings that make a checkpoint loadable as a prior: the shipped Gaussian prior, no calibration yet."""
    neutral = {"sigma": [1.0], "factor": [1.0]}
    shipped = json.loads(embedded_file().with_suffix(".json").read_text())
    settings = shipped | {"net": asdict(config), "variance_scale": neutral}
    path.write_text(json.dumps(settings, indent=1) + "\n")


def train(config: TrainConfig, say: Callable[[dict[str, Any]], None] | None = None) -> Trainer:
    """Train until the schedule ends; state, log (log.jsonl, log.png) and averaged weights go to `config.state`.

    Levels whose crops are larger than every picture are left out. Called again with the same `state` folder it resumes; it
    fails while another run trains in that folder. `say` is called with every record of the log.
    """
    if not (math.isfinite(config.seconds) or config.steps < 10**9):
        raise LeaderError("The training run would never end: give the steps or the seconds it may take.")
    config.state.mkdir(parents=True, exist_ok=True)
    with (config.state / "log.jsonl").open("a") as log:
        claim(log.fileno(), config.state)  # two runs in one folder would overwrite each other's checkpoints
        photos = open_photographs(config.images, config.state / "cache")
        config = replace(config, main=fit_task(config.main, photos), expert=fit_task(config.expert, photos))
        held_out = None if config.validation is None else central_crops(list_pictures(config.validation)[:VALIDATION], 128)
        trainer = Trainer(config)
        resumed = trainer.resume()
        if config.compile:
            trainer.net.compile()

        def write(kind: str, **values: Any) -> None:
            record = {"kind": kind, "step": trainer.step, "seconds": round(trainer.elapsed, 1), **values}
            log.write(json.dumps(record) + "\n")
            log.flush()
            if say is not None:
                say(record)

        settings = json.dumps(asdict(config), default=lambda path: path.name)
        write("resume" if resumed else "start", settings=json.loads(settings, parse_constant=lambda infinite: None))
        if held_out is not None:
            write("validation", **validate(trainer.average, held_out))
        _loop(trainer, photos, held_out, write)
    return trainer


def _loop(trainer: Trainer, photos: dict[str, Photographs], held_out: Tensor | None, write: Callable[..., None]) -> None:
    config = trainer.config
    saved = checked = trainer.elapsed
    recent: list[dict[str, float]] = []
    while trainer.progress() < 1:
        began = time.monotonic()
        recent.append(trainer.advance(photos))
        if trainer.step % config.log_every == 0:
            write("train", **{key: sum(row[key] for row in recent) / len(recent) for key in recent[0]})
            recent.clear()
        if held_out is not None and trainer.elapsed - checked > config.validation_seconds:
            checked = trainer.elapsed
            write("validation", **validate(trainer.average, held_out))
        trainer.elapsed += time.monotonic() - began
        if trainer.elapsed - saved > config.checkpoint_seconds:
            saved = trainer.elapsed
            trainer.save()
            plot_log(config.state)
    trainer.save()
    if held_out is not None:
        write("validation", **validate(trainer.average, held_out))
    write("end")
    plot_log(config.state)


def read_log(path: Path) -> list[dict[str, Any]]:
    """All records of a log; steps repeated by a resumed run appear once, as they ran last."""
    records: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        record: dict[str, Any] = json.loads(line)
        if record["kind"] == "resume":
            records = [earlier for earlier in records if earlier["step"] <= record["step"]]
        records.append(record)
    return records


def plot_log(state: Path) -> None:
    """Draws a run's losses, validation PSNR against the start, and calibration to log.png, if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return
    from matplotlib.figure import Figure

    records = read_log(state / "log.jsonl")
    training = [record for record in records if record["kind"] == "train"]
    checks = [record for record in records if record["kind"] == "validation"]
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    losses, psnr, ratio = figure.subplots(1, 3)
    for body in ("main", "expert"):
        points = [(r["step"], r[f"{body}_denoising"]) for r in training if f"{body}_denoising" in r]
        if points:
            smooth = list(accumulate((loss for _, loss in points), lambda before, value: 0.9 * before + 0.1 * value))
            losses.plot([step for step, _ in points], smooth, marker=".", label=body)
    losses.set(title="denoising loss (smoothed)", xlabel="step")
    for index, sigma in enumerate(checks[0]["sigma"] if checks else []):
        steps = [check["step"] for check in checks]
        psnr.plot(steps, [c["psnr"][index] - checks[0]["psnr"][index] for c in checks], label=f"{sigma:g}")
        ratio.plot(steps, [c["ratio"][index] for c in checks], label=f"{sigma:g}")
    psnr.set(title="validation PSNR by noise (of 255), change in dB", xlabel="step")
    ratio.axhspan(0.8, 1.25, alpha=0.15)
    ratio.set(title="squared error / predicted variance", xlabel="step")
    for axis in (losses, psnr, ratio):
        if axis.lines:
            axis.legend(fontsize="x-small", ncols=2)
    figure.savefig(state / "log.png", dpi=120)
