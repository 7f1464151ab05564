"""How a prior of one's own comes in: a denoiser in a whole run, the size it is tied to, its fingerprint, its imports."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from leader import DenoiserPrior, Problem, Sampler, load_prior, operators
from leader.priors import GaussianPrior, NetworkPrior, adapters
from leader.priors.gaussian import white
from leader.priors.loading import ABSENT, fingerprint, list_files
from leader.priors.pyramid import embedded_file
from leader.priors.tiling import PaddedPrior, TiledPrior
from leader.priors.variance_head import HeadShape, VarianceHead
from leader.schedule import Schedule
from tests.cheap_prior import CheapPrior
from tests.priors.test_checkpoints import OPTIONS, tiny
from tests.sentences import refusal

STD = 0.4


class Wiener(nn.Module):
    """The best denoiser of independent pixels of standard deviation STD, in [-1, 1] or [0, 1]."""

    def __init__(self, unit_range: bool) -> None:
        super().__init__()
        self.centre, self.std = (0.5, STD / 2) if unit_range else (0.0, STD)

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        gain = self.std**2 / (self.std**2 + sigma**2)
        return self.centre + (x - self.centre) * gain.reshape(-1, 1, 1, 1)


class Silent(nn.Module):
    """An eps-network that finds no noise, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        self.calls += 1
        return torch.zeros_like(x)


def problem(side: int = 16) -> Problem:
    y = torch.rand(1, 3, side // 2, side // 2, generator=torch.Generator().manual_seed(0))
    return Problem(y, operators.AveragePoolSR((3, side, side), 2))


@pytest.mark.parametrize("unit_range", [False, True])
def test_a_denoiser_restores_like_the_gaussian_it_belongs_to(unit_range: bool) -> None:
    """The same posterior mean by two roads, through a whole run with noise, plug-ins and an estimator of derivatives."""
    given = load_prior(DenoiserPrior(Wiener(unit_range), unit_range=unit_range))
    exact = GaussianPrior(white((3, 16, 16), STD))
    ours, theirs = (
        Sampler(prior, "ddnm", ("leader",), steps=20, estimator="hutchinson", use_presets=False).run(problem(), seed=3)
        for prior in (given, exact)
    )
    torch.testing.assert_close(ours.images, theirs.images, atol=2e-4, rtol=0)
    assert ours.posterior_std is not None and theirs.posterior_std is not None
    torch.testing.assert_close(ours.posterior_std, theirs.posterior_std, atol=2e-4, rtol=0)


def test_a_bare_network_is_asked_what_it_answers() -> None:
    told = refusal(load_prior, Wiener(False))
    assert "NetworkPrior" in told and "DenoiserPrior" in told
    assert "'size' is for checkpoints" in refusal(load_prior, DenoiserPrior(Wiener(False)), size=16)


@pytest.mark.parametrize("side", [8, 18, 32])
def test_a_bare_prior_of_one_size_refuses_others_in_a_run(side: int) -> None:
    network = Silent()
    prior = NetworkPrior(network, Schedule.linear(), size=(16, 16), name="tied")
    told = refusal(Sampler(load_prior(prior, whole=True), "ddnm", (), steps=4).run, problem(side))
    assert f"takes only 16 x 16 pixels; found {side} x {side}" in told and network.calls == 0
    tiled = load_prior(prior)
    assert isinstance(tiled, TiledPrior)
    assert Sampler(tiled, "ddnm", (), steps=4).run(problem(side)).images.shape == (1, 3, side, side)
    assert Sampler(prior, "ddnm", (), steps=4).run(problem(16)).images.shape == (1, 3, 16, 16)


def test_a_fingerprint_follows_the_bytes_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADER_CACHE", str(tmp_path))
    path = tmp_path / "a.pt"
    path.write_bytes(b"one")
    first = fingerprint(path)
    assert first == "7692c3ad3540bb80"  # sha256 of "one"
    (tmp_path / "b.pt").write_bytes(b"one")
    assert fingerprint(tmp_path / "b.pt") == first
    path.write_bytes(b"two")
    changed = fingerprint(path)
    assert changed != first
    path.with_suffix(".json").write_text("{}")  # settings and head decide as well
    with_settings = fingerprint(path)
    assert with_settings.split("+")[0] == changed and with_settings != changed
    VarianceHead(HeadShape(3, 4, 1)).save(tmp_path / "a.pt.variance.safetensors")
    assert len(fingerprint(path).split("+")) == 3
    assert fingerprint("ffhq-256") == fingerprint(tmp_path / "none.pt") == fingerprint("hub:no/such") == ABSENT
    assert len(list_files(tmp_path)) == 4
    assert [path.suffix for path in list_files("embedded")] == [".safetensors", ".json"], "as keys of records name them"


def test_every_exported_name_is_there_and_the_package_is_light() -> None:
    import leader.priors as package

    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match="nonsense"):
        package.nonsense  # noqa: B018
    light = "import sys, leader.priors, leader.train.defaults; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", light], check=False).returncode == 0


def test_a_head_in_a_folder_is_no_second_checkpoint(tmp_path: Path) -> None:
    assert load_prior().home == embedded_file() and embedded_file().is_file()
    torch.save(tiny(), tmp_path / "net.pt")
    VarianceHead(HeadShape(width=4, depth=1)).save(tmp_path / "net.variance.safetensors")
    prior = load_prior(tmp_path, whole=True, **OPTIONS)
    assert isinstance(prior, adapters.HeadedPrior) and prior.home == tmp_path / "net.pt"


def test_sides_that_are_no_multiples_are_refused_or_padded() -> None:
    prior = DenoiserPrior(Wiener(False), multiple=8)
    x, t = torch.zeros(1, 3, 16, 12), torch.tensor([3])
    assert "multiples of 8 pixels; found 16 x 12" in refusal(prior.predict, x, t)
    padded = load_prior(prior)
    assert isinstance(padded, PaddedPrior) and padded.predict(x, t).x0.shape == x.shape
    assert "takes only 8 x 8" in refusal(GaussianPrior(white((3, 8, 8), 1.0)).predict, x, t)


def test_tiles_share_as_many_pixels_as_they_are_told_to() -> None:
    prior = CheapPrior()
    prior.size = (16, 16)
    for overlap, shared in ((4, 4), (8, 8), (64, 8)):
        tiled = load_prior(prior, overlap=overlap)
        assert isinstance(tiled, TiledPrior) and tiled.overlap == shared
