"""load_prior: loads any kind of prior by name or path."""

import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from leader.by_name import REFERENCE, Registry, accept_class
from leader.errors import LeaderError, UsageError, unknown_name
from leader.files import sha256_once
from leader.priors import catalogue, diffusers_folder
from leader.priors.adapters import HeadedPrior, LabelledNetwork, NetworkPrior
from leader.priors.base import Prior
from leader.priors.checkpoints import SUFFIXES, Options, open_checkpoint, read_side_car
from leader.priors.diffusers_folder import HUB
from leader.priors.fast_half import has_fast
from leader.priors.int8 import is_exact
from leader.priors.json_files import check_word
from leader.priors.mixed import INT8, MIXTURES, find_rounding, has_int8, mix_precisions, round_to_half
from leader.priors.networks import ADM, DDPM
from leader.priors.pyramid import PyramidPrior, embedded_file
from leader.priors.spectrum import find_spectrum
from leader.priors.tiling import any_size
from leader.priors.variance_head import SUFFIX, VarianceHead, head_file

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
AUTO = "auto"
PRECISIONS = (*DTYPES, *MIXTURES, AUTO)
EMBEDDED = "embedded"
PRIORS: Registry[type[Prior]] = Registry("prior", "leader.priors", {}, accept_class(Prior))
"""User-defined priors: classes without constructor arguments, from installed packages or as `module:Class`."""


def load_prior(
    name_or_path: str | Path | Prior | Any = EMBEDDED,
    *,
    dtype: torch.dtype | str = torch.float32,
    compile: bool | str = False,
    channels_last: bool = False,
    device: torch.device | str = "cpu",
    tile: int | None = None,
    overlap: int = 64,
    whole: bool = False,
    head: bool = True,
    **options: Any,
) -> Prior:
    """Loads a prior, ready for images of any size.

    name_or_path   "embedded"; a registered name; a .pt, .pth, .ckpt or .safetensors file; a diffusers folder;
                   "hub:OWNER/NAME" for one on the Hugging Face Hub, downloaded unless cached; a
                   folder written by `leader train`; `module:Class` for a prior in a file of your own; or an object: a
                   prior, such as a `DenoiserPrior` of your own network, a DDPM or DDIM pipeline of diffusers, or its
                   UNet2DModel with the option `scheduler`
    dtype          of the network: float32, float16 or bfloat16; states and predictions stay in float32. "mixed": half
                   precision at the times where its rounding is far below Sigma_t, for priors whose rounding was measured;
                   "mixed-int8" and "mixed-int8-half": integers of eight bits too; "auto": what is fast and measured
    compile        torch.compile the network; a string names the backend
    channels_last  the memory format that convolutions on GPUs prefer
    tile, overlap  tiles for networks of a fixed size (and, given `tile`, for any network)
    whole          the bare prior, without tiles or padding
    head           use the variance head beside the checkpoint, if there is one
    options        settings that a checkpoint's tensors do not determine; see `leader.priors.checkpoints`

    >>> leader.load_prior("embedded").name
    'embedded'
    """
    prior: Prior
    own_head = None
    if diffusers_folder.is_object(name_or_path):
        prior = diffusers_folder.open_object(name_or_path, options)
    elif isinstance(name_or_path, Prior):
        _refuse_options(options, "a prior given as an object")
        prior = name_or_path
    elif isinstance(name_or_path, nn.Module):
        raise LeaderError(
            f"A {type(name_or_path).__name__} is a network, not a prior: wrap it in leader.priors.NetworkPrior "
            "(noise, v or the clean image at a time) or leader.DenoiserPrior (the clean image at a noise level)."
        )
    else:
        try:
            prior, prior.home = _find_prior(name_or_path, options)
            own_head = find_head(prior.home) if head and prior.home is not None else None
        except LeaderError:
            raise
        except (OSError, ValueError) as error:  # too long names, null bytes, folders without permission
            reason = error.strerror if isinstance(error, OSError) else error
            raise LeaderError(f"The prior '{str(name_or_path)[:60]}' cannot be opened ({reason}): check its name.") from error
    place = device_named(device)
    prior = _set_precision(prior, check_word(str(dtype).removeprefix("torch."), "dtype", PRECISIONS), place)
    if own_head is not None:
        prior = HeadedPrior(prior, VarianceHead.load(own_head))
        prior.spectrum = prior.spectrum or (None if prior.home is None else find_spectrum(prior.home))
    prior = prior.to(place)
    if channels_last:
        for parameter in prior.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    if compile:
        _find_network(prior).compile(**({"backend": compile} if isinstance(compile, str) else {}))
    return prior if whole else any_size(prior, tile, overlap)


def _find_prior(name_or_path: str | Path, options: Options) -> tuple[Prior, Path | None]:
    """The bare prior and its location on disk."""
    if not isinstance(name_or_path, (str, Path)):
        raise UsageError(f"A prior must be an object, a name or a path; found {type(name_or_path).__name__}.")
    name = str(name_or_path)
    path = Path(os.path.expanduser(name))  # leaves names it cannot expand unchanged
    if not name:
        raise LeaderError("The name of the prior is empty: give a name of `leader priors`, or a path.")
    if name == EMBEDDED:
        prior = _open_pyramid(None, options)
        prior.name = EMBEDDED
        return prior, embedded_file()
    if name.startswith(HUB):
        folder = diffusers_folder.fetch(name)
        return diffusers_folder.open_folder(folder, options, name), folder
    if name in catalogue.ENTRIES:
        entry = catalogue.ENTRIES[name]
        if not entry.on_disk:
            raise LeaderError(f"'{name}' is not at {entry.path} yet: run `leader priors get {name}` first.")
        catalogue.check_hash(entry, entry.path)
        prior = open_checkpoint(entry.path, {"like": name, **options})
        prior.name = name
        return prior, entry.path
    if path.is_dir():
        return _open_folder(path, options)
    if path.is_file():
        return _open_file(path, options), path
    if path.exists():
        raise LeaderError(f"{path} is neither a file nor a folder: give the path of a checkpoint.")
    if name in PRIORS:
        prior = _make_prior(name, options)
        return prior, prior.home or _find_home(name)
    if path.suffix in SUFFIXES:
        raise LeaderError(f"{path} does not exist: give the path of a checkpoint or a registered name.")
    if diffusers_folder.looks_like_an_id(name):
        raise UsageError(f"There is no file or folder {name}; to download it from the Hugging Face Hub, use {HUB}{name}.")
    raise unknown_name("prior", name, [EMBEDDED, *catalogue.ENTRIES, *PRIORS])


def _make_prior(name: str, options: Options) -> Prior:
    try:
        prior = PRIORS[name](**options)
    except TypeError as error:
        raise LeaderError(f"The prior '{name}' cannot be created ({error}): give its arguments as options.") from error
    prior.name = name
    return prior


def _find_home(name: str) -> Path | None:
    """The location of files fitted to `module:Class`: beside the module, under the name of the class."""
    if not REFERENCE.fullmatch(name):
        return None
    file = getattr(sys.modules.get(PRIORS[name].__module__), "__file__", None)
    return None if file is None else Path(file).with_name(name.partition(":")[2])


def _open_file(path: Path, options: Options) -> Prior:
    if path.suffix not in SUFFIXES:
        raise LeaderError(f"{path} is not a checkpoint: expected a file ending in {', '.join(SUFFIXES)}.")
    return _open_pyramid(path, options) if is_pyramid(path) else open_checkpoint(path, options)


def is_pyramid(path: Path) -> bool:
    """Whether the .json beside a file describes a prior of `leader train`'s kind."""
    return {"net", "coarse"} <= read_side_car(path).keys()


def _open_folder(folder: Path, options: Options) -> tuple[Prior, Path]:
    if diffusers_folder.is_folder(folder):
        return diffusers_folder.open_folder(folder, options), folder
    trained = folder / "pyramid.safetensors"
    if trained.is_file():
        return _open_pyramid(trained, options), trained
    files = [f for f in sorted(folder.iterdir()) if f.suffix in SUFFIXES and not f.name.endswith(SUFFIX)]
    if len(files) != 1:
        raise LeaderError(f"{folder} holds {len(files)} checkpoints and no diffusers configuration: give the path of one.")
    return _open_file(files[0], options), files[0]


def _open_pyramid(path: Path | None, options: Options) -> Prior:
    _refuse_options(options, "the embedded prior")
    return PyramidPrior.load(path)


def _refuse_options(options: Options, what: str) -> None:
    for key in options:
        raise LeaderError(f"The option '{key}' is for checkpoints; {what} takes none.")


def find_head(checkpoint: Path) -> Path | None:
    """The file of a variance head fitted to a checkpoint (a file or a folder), or None."""
    candidates = [head_file(checkpoint)]
    if not checkpoint.is_dir():
        candidates.append(checkpoint.with_name(checkpoint.stem + SUFFIX))
    return next((file for file in candidates if file.is_file()), None)


def device_named(device: torch.device | str) -> torch.device:
    """The device, if it is valid and available."""
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise LeaderError(f"Unknown device '{device}': use cpu, cuda, cuda:0 or mps.") from error
    try:
        torch.zeros(1, device=chosen).item()  # torch knows devices that are not here, and one whose tensors have no numbers
    except (RuntimeError, AssertionError, ImportError) as error:
        raise LeaderError(f"The device '{device}' is not available here: use cpu.") from error
    return chosen


def _set_precision(prior: Prior, precision: str, device: torch.device) -> Prior:
    """The prior with its network in a precision of `PRECISIONS`, on `device`."""
    if precision == AUTO or precision in MIXTURES:
        return _mix(prior, precision, device)
    if precision == "float32":
        return prior
    prior = _round_network(prior, DTYPES[precision])
    prior.precision = precision
    return prior


def _mix(prior: Prior, precision: str, device: torch.device) -> Prior:
    """The prior in a mixture by name; "auto": in the precisions that were measured and are faster on this machine."""
    rounding = find_rounding(prior.home)
    kinds = MIXTURES.get(precision, MIXTURES["mixed-int8-half"])
    if precision == AUTO:
        if rounding is None:
            return prior
        kinds = tuple(kind for kind in kinds if (kind != INT8 or has_int8(prior, rounding)) and has_fast(kind, device))
    elif rounding is None:
        raise LeaderError(
            f"The rounding of the prior '{prior.name}' was never measured: run `leader fit-variance`, or use float32."
        )
    elif INT8 in kinds and not has_int8(prior, rounding):
        raise LeaderError(
            f"The prior '{prior.name}' has no integers of eight bits beside its weights, which `leader publish` fits to the "
            "embedded prior's kind of network: use auto."
        )
    elif INT8 in kinds and not (device.type == "cpu" and is_exact()):
        raise LeaderError(f"torch cannot compute in integers of eight bits here ({device}), as '{precision}' does: use auto.")
    return mix_precisions(prior, rounding, device, kinds)


def _round_network(prior: Prior, dtype: torch.dtype) -> Prior:
    """The prior with its network in half precision throughout."""
    if not isinstance(prior, NetworkPrior):
        return round_to_half(prior, dtype)
    network = prior.network.network if isinstance(prior.network, LabelledNetwork) else prior.network
    if isinstance(network, (ADM, DDPM)):
        network.set_precision(dtype)
    else:
        network.to(dtype)
        prior.dtype = dtype
    return prior


def _find_network(prior: Prior) -> nn.Module:
    for name in ("base", "network", "net"):
        inner = getattr(prior, name, None)
        if isinstance(inner, nn.Module):
            return _find_network(inner) if isinstance(inner, Prior) else inner
    raise LeaderError(f"The prior '{prior.name}' has no network to compile.")


ABSENT = "absent"
DIGITS = 16


def fingerprint(name_or_path: str | Path) -> str:
    """The identity of a prior: the first 16 digits of the SHA-256 of each of its files, joined by "+"; "absent" without any.

    Names and paths may change, but not the bytes.
    """
    return "+".join(sha256_once(path)[:DIGITS] for path in list_files(name_or_path)) or ABSENT


def list_files(name_or_path: str | Path) -> tuple[Path, ...]:
    """The files that determine a prior's predictions: weights, their settings, variance head; empty if they are absent."""
    name = str(name_or_path)
    if name == EMBEDDED:
        return embedded_file(), embedded_file().with_suffix(".json")
    if name.startswith(diffusers_folder.HUB):
        try:
            path = diffusers_folder.fetch(name, offline=True)
        except LeaderError:
            return ()
    else:
        path = catalogue.ENTRIES[name].path if name in catalogue.ENTRIES else Path(os.path.expanduser(name))
    if os.path.isdir(path):  # unlike Path's, False for invalid file names
        return tuple(sorted(item for item in path.rglob("*") if item.is_file()))
    if not os.path.isfile(path):
        return ()
    beside = (path.with_suffix(".json"), find_head(path))
    return (path, *(item for item in beside if item is not None and item.is_file()))
