"""The priors of experiments: opened once per process, and identified by the content of their files."""

from functools import lru_cache

from leader.bench.images import file_hash
from leader.by_name import revision_of
from leader.errors import LeaderError
from leader.priors.adapters import NetworkPrior
from leader.priors.base import Prior
from leader.priors.catalogue import ENTRIES, check_hash
from leader.priors.gaussian import GaussianPrior, stationary
from leader.priors.loading import PRIORS, find_head, list_files, load_prior
from leader.schedule import Schedule

GAUSSIAN = "gaussian"
"""A photo-like Gaussian in closed form: no network, for tests of the benchmark code itself."""
_GAUSSIAN_STD = 0.5


@lru_cache(maxsize=2)
def open_prior(name: str, size: int, device: str = "cpu", precision: str = "float32") -> Prior:
    if name == GAUSSIAN:
        return GaussianPrior(stationary((3, size, size), _GAUSSIAN_STD))
    return load_prior(name, device=device, dtype=precision)


def check_present(name: str) -> None:
    """Rejects a published prior whose file is not on this machine, or differs from the published one."""
    if name not in ENTRIES:
        return
    entry = ENTRIES[name]
    if not entry.on_disk:
        raise LeaderError(f"The weights of '{name}' are not at {entry.path}; run `leader priors get {name}` first.")
    check_hash(entry, entry.path)


def fingerprint(name: str, size: int) -> str:
    """The identity of a prior's weights: hashes of its files; "absent" if they are not on this machine."""
    if name == GAUSSIAN:
        return f"closed form, std {_GAUSSIAN_STD}"
    if name in PRIORS:
        home, revision = open_prior(name, size).home, f"{revision_of(PRIORS[name]):x}"
        return "+".join([revision, *(file_hash(path) for path in ([] if home is None else list_files(home)))])
    return "+".join(file_hash(path) for path in list_files(name)) or "absent"


def referee_fingerprint(name: str, size: int) -> str:
    """The identity of a prior's referee and its factors: hashes of their files; "absent" if there is none."""
    from leader.trust import calibration, referee

    file = referee.file_of(stand_in(name, size))
    if file is None or not file.is_file():
        return "absent"
    return "+".join(file_hash(path) for path in (file, calibration.beside(file)) if path.is_file())


def priors_within(name: str, prior: Prior) -> list[type[Prior]]:
    """The classes of a prior and of the priors inside it; `prior` may be a stand-in."""
    if name in ENTRIES:
        return [NetworkPrior]
    return list(dict.fromkeys(type(part) for part in prior.modules() if isinstance(part, Prior)))


def stand_in(name: str, size: int) -> Prior:
    """A prior for planning: a stand-in without weights for a published prior, whose weights are large or absent; else
    itself.
    """
    if name in ENTRIES:
        entry, prior = ENTRIES[name], Prior(Schedule.linear())
        prior.name, prior.home = name, entry.path
        prior.source = "head" if find_head(entry.path) else "learned" if entry.config.out_channels > 3 else None
        return prior
    if name != GAUSSIAN and name not in PRIORS and not list_files(name):
        raise LeaderError(f"There is no prior '{name}': give a registered name or the path of a checkpoint.")
    return open_prior(name, size)
