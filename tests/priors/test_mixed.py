"""Coarser numbers where uncertainty allows it: rounding, the table, the choice by time, and what it says of itself."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler, load_prior, operators
from leader.priors import fast_half, loading, mixed
from leader.priors.adapters import NetworkPrior
from leader.priors.ask import Ask
from leader.priors.mixed import MixedPrior, Rounding, _sort_by_size, round_filters, round_to_half
from leader.priors.pieces import PiecewisePrior, cut_into_pieces
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import Body
from leader.schedule import Schedule
from leader.train.tables import fit_rounding
from tests.cheap_prior import CheapPrior, photograph
from tests.priors.test_int8 import needs_int8
from tests.sentences import refusal

TABLE = Rounding((-9.0, -3.0, 2.0), (4e-3, 2e-3, 1e-3), (0.01, 0.05, 0.2))  # 0.4, 0.04 and 0.005 of the spread


def noisy(prior: PyramidPrior, t: int, height: int = 40, width: int = 56) -> tuple[Tensor, Tensor]:
    times = torch.tensor([t])
    level = prior.schedule.level(times, torch.zeros(1))
    draw = torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(t))
    return level.signal * (2 * photograph(height, width)[None] - 1) + level.noise * draw, times


def test_rounded_filters_keep_their_sums() -> None:
    weight = torch.randn(7, 5, 3, 3, generator=torch.Generator().manual_seed(1))
    rounded = round_filters(weight, torch.bfloat16)
    assert rounded.dtype == torch.bfloat16
    off = (rounded.double().sum((2, 3)) - weight.double().sum((2, 3))).abs().mean()
    plain = (weight.bfloat16().double().sum((2, 3)) - weight.double().sum((2, 3))).abs().mean()
    assert off < plain / 8
    assert float((rounded.float() - weight).abs().max()) < 2**-6 * float(weight.abs().max())


def test_taps_are_sorted_as_a_stable_sort_does() -> None:
    taps = torch.randn(50, 9, generator=torch.Generator().manual_seed(0)).mul(2).round() / 2
    taps[0] = torch.tensor([0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 1.0, -1.0, 1e-38])
    assert torch.equal(_sort_by_size(taps), (-taps.abs()).argsort(stable=True, dim=-1))


@torch.no_grad()
def test_a_rounded_network_does_not_shift_pictures() -> None:
    full = PyramidPrior.load()
    half = round_to_half(full, torch.bfloat16)
    network: Any = half.net
    assert {layer.weight.dtype for layer in network.main.convs[1:]} == {torch.bfloat16}
    both: Any = mixed.round_to_half(full, torch.bfloat16, 500)
    assert both.net.main.convs[1].weight.dtype == torch.bfloat16, "which noise of these times asks, too"
    for t in (30, 180):
        x, times = noisy(full, t)
        expected, found = full.predict(x, times), half.predict(x, times)
        with torch.autocast("cpu", torch.bfloat16):
            plain = full._predict(x, times).x0.float()
        assert found.x0.dtype == torch.float32 and found.variance is not None and found.variance.dtype == torch.float32
        error, shift = found.x0 - expected.x0, (found.x0 - expected.x0).mean((2, 3)).abs().max()
        assert 0 < float(error.std()) < 0.004
        assert shift < (plain - expected.x0).mean((2, 3)).abs().max() / 4 and shift < 4e-4
        assert expected.variance is not None
        assert float((found.variance.mean() / expected.variance.mean()).log().abs()) < 0.01


def test_the_scaled_channels_of_a_rounded_network_cancel() -> None:
    """In a precision finer than that of the weights nothing but the rearrangement is left."""
    full = PyramidPrior.load()
    half = round_to_half(full, torch.float16)
    x, times = noisy(full, 60)
    assert float((half.predict(x, times).x0 - full.predict(x, times).x0).abs().max()) < 3e-3
    body: Body = full.net.main
    assert body.out.weight.dtype == torch.float32 and body.convs[3].weight.dtype == torch.float32  # the original stays


def test_the_first_time_follows_the_table() -> None:
    schedule = Schedule.linear()
    noise = ((1 - schedule.abar_table) / schedule.abar_table).log()
    first = TABLE.first_time(schedule, 0.04)
    assert first is not None and float(noise[first - 1]) < -3.0 <= float(noise[first])
    assert TABLE.first_time(schedule, 0.5) == 0 and TABLE.first_time(schedule, 0.004) is None
    between = TABLE.first_time(schedule, 0.4 ** (1 / 2) * 0.04 ** (1 / 2))
    assert between is not None and float(noise[between - 1]) < -6.0 <= float(noise[between])
    small = Rounding(TABLE.log_noise, TABLE.error, TABLE.spread, (1.0, 1.0, 1e-3))
    last = small.first_time(schedule, 0.04, "int8")
    assert first is not None and last is not None and last > first and TABLE.first_time(schedule, 1.0, "int8") is None
    bumpy = Rounding((-9.0, -3.0, 2.0), (1e-4, 2e-2, 1e-3), (0.01, 0.05, 0.2))  # fine at little noise, not above
    later = bumpy.first_time(schedule, 0.04)
    assert later is not None and later > first


def test_half_precision_serves_below_integers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed, "round_to_int8", lambda prior: prior)
    noise, spread, fine, coarse = (-9.0, -3.0, 2.0), (1.0,) * 3, (1.0, 0.01, 0.01), (1.0, 1.0, 0.01)
    for half, integers, name in ((fine, coarse, "mixed-int8-half"), (coarse, fine, "mixed-int8"), (fine, fine, "mixed-int8")):
        table = Rounding(noise, half, spread, integers)
        made = mixed.mix_precisions(CheapPrior(), table, torch.device("cpu"), ("int8", "half"))
        assert made.precision == name and list(made.rounded_from) == name.split("-")[1:]


def test_a_table_is_kept_and_judged(tmp_path: Path) -> None:
    file = tmp_path / "net.rounding.json"
    for table in (TABLE, Rounding(TABLE.log_noise, TABLE.error, TABLE.spread, TABLE.error)):
        table.save(file)
        assert Rounding.load(file) == table
    good = json.loads(file.read_text())
    bad: list[dict[str, Any]] = [{"error": [1e-3, 1e-3]}, {"error": "x"}, {"int8": [1e-3]}, {"int8": None}]
    for values in (*bad, {"log_noise": [1.0, 0.0, 2.0]}, {"spread": [0.0, 0.1, 0.1]}):
        file.write_text(json.dumps({**good, **values}))
        refusal(Rounding.load, file)


@torch.no_grad()
def test_times_decide_and_nothing_else() -> None:
    full = PyramidPrior.load()
    half = round_to_half(full, torch.bfloat16)
    small = round_to_half(full, torch.float16)
    mixed = MixedPrior(full, [(150, "int8", small), (100, "half", half)])
    for t, expected in ((99, full), (100, half), (149, half), (150, small)):
        x, times = noisy(full, t)
        assert torch.equal(mixed.predict(x, times).x0, expected.predict(x, times).x0)
    x, _ = noisy(full, 100)
    pair = torch.cat([x, x])
    mixed.one_by_one = full.one_by_one = False
    for both, expected in (([100, 99], full), ([160, 100], half)):
        times = torch.tensor(both)
        assert torch.equal(mixed.predict(pair, times).x0, expected._predict(pair, times).x0)


def test_derivatives() -> None:
    full = PyramidPrior.load()
    mixed = MixedPrior(full, [(0, "half", round_to_half(full, torch.bfloat16))])
    x, times = noisy(full, 200)
    start = x.clone().requires_grad_()
    gradient = torch.autograd.grad(mixed.predict(start, times).x0.sum(), start)[0]
    assert torch.equal(gradient, torch.autograd.grad(full.predict(start, times).x0.sum(), start)[0])
    along = torch.randn(x.shape, generator=torch.Generator().manual_seed(3))
    tangent, exact = (Ask(prior).jvp(x, times, along) for prior in (mixed, full))
    assert torch.equal(tangent, exact) and float(exact.norm()) > 0


def test_loading_by_precision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mixed = load_prior(dtype="mixed")
    assert isinstance(mixed, MixedPrior) and mixed.precision == "mixed" and 0 < mixed.rounded_from["half"] < 100
    assert mixed.name == "embedded" and mixed.spectrum is not None and mixed.home == load_prior().home
    chosen = ((("half",), "mixed"), ((), "float32"), (("int8",), "mixed-int8"), (("int8", "half"), "mixed-int8-half"))
    for fast, name in chosen:
        monkeypatch.setattr(loading, "has_fast", lambda kind, device, fast=fast: kind in fast)
        found = load_prior(dtype="auto")
        assert found.precision == name and tuple(found.rounded_from) == fast
    assert found.rounded_from["int8"] > found.rounded_from["half"] == mixed.rounded_from["half"]
    halves: list[Any] = [list(one.rounded)[-1] for one in (found, mixed) if isinstance(one, MixedPrior)]
    kinds = [(half.net.expert.convs[1].weight.dtype, half.net.main.convs[1].weight.dtype) for half in halves]
    assert kinds == [(torch.bfloat16, torch.float32), (torch.bfloat16, torch.bfloat16)], "integers serve where both are asked"
    assert load_prior().precision == "float32" and load_prior(dtype=torch.bfloat16).precision == "bfloat16"
    monkeypatch.setattr(loading, "is_exact", lambda: False)
    assert "eight bits here" in refusal(load_prior, dtype="mixed-int8")
    large = cut_into_pieces(mixed, 64, 48, most=1000)
    assert isinstance(large, PiecewisePrior) and large.rounded_from == mixed.rounded_from
    weights = load_prior().home
    assert weights is not None
    for name in ("pyramid.safetensors", "pyramid.json"):
        (tmp_path / name).write_bytes(weights.with_name(name).read_bytes())
    monkeypatch.setattr(loading, "has_fast", lambda kind, device: True)
    for table, name, told in ((False, "float32", "never measured"), (True, "mixed", "no integers of eight bits")):
        if table:
            (tmp_path / "pyramid.rounding.json").write_bytes(weights.with_name("pyramid.rounding.json").read_bytes())
        assert told in refusal(load_prior, tmp_path, dtype="mixed-int8")  # the integers are in a file of their own
        assert load_prior(tmp_path, dtype="auto").precision == name


@pytest.mark.parametrize(("dtype", "most"), [("mixed", 0.003), pytest.param("mixed-int8", 0.01, marks=needs_int8)])
def test_a_mixed_run_gives_the_same_bits_again(dtype: str, most: float) -> None:
    prior = load_prior(dtype=dtype)
    problem = Problem.simulate(photograph(32, 48)[None], operators.AveragePoolSR((3, 32, 48), 2), 0.02, seed=1)
    runs = [Sampler(prior, "ddnm", (), 6).run(problem, 3).images for _ in range(2)]
    plain = Sampler("embedded", "ddnm", (), 6).run(problem, 3).images
    assert torch.equal(*runs) and runs[0].dtype == torch.float32
    assert 0 < float((runs[0] - plain).abs().mean()) < most


def test_rounding_is_measured_for_any_network_with_a_variance() -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 6, 3, padding=1))

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            answer: Tensor = self.inner(x)
            return answer

    prior = NetworkPrior(Plain().requires_grad_(False), Schedule.linear(), predicts="x0", learned_variance=True)
    found = fit_rounding(prior, 2 * photograph(16, 24)[None] - 1)
    assert len(found.log_noise) > 5 and all(0 < error < 0.02 for error in found.error)
    cheap = CheapPrior()  # whose variance is known
    spread, noise = (
        torch.tensor(getattr(fit_rounding(cheap, torch.zeros(2, 3, 8, 8)), name)) for name in ("spread", "log_noise")
    )
    torch.testing.assert_close(spread**2, 1 / (4 + 1 / noise.exp()), rtol=1e-4, atol=0)
    bare = NetworkPrior(Plain(), Schedule.linear(), predicts="x0", learned_variance=False)
    network[2] = torch.nn.Conv2d(8, 3, 3, padding=1)
    assert "variance" in refusal(fit_rounding, bare, 2 * photograph(16, 24)[None] - 1)


class TestFastHalf:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        fast_half._ask.cache_clear()

    def ask(self, monkeypatch: pytest.MonkeyPatch, ratio: float, kind: str = "half") -> tuple[bool, int]:
        """The answer of a new process on a machine with this ratio, and how often it was timed."""
        timed: list[torch.device] = []

        def time_once(device: torch.device, kind: str) -> float:
            timed.append(device)
            return ratio

        monkeypatch.setattr(fast_half, "_time", time_once)
        fast_half._ask.cache_clear()
        return fast_half.has_fast(kind, torch.device("cpu")), len(timed)

    def test_the_first_answer_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.ask(monkeypatch, 0.5) == (True, 1)
        assert self.ask(monkeypatch, 2.0) == (True, 0)
        monkeypatch.setattr(torch, "__version__", "99.0")
        assert self.ask(monkeypatch, 2.0) == (False, 1)
        assert self.ask(monkeypatch, 0.5) == (False, 0)
        assert len(json.loads(fast_half.cache_file().read_text())) == 2

    @pytest.mark.parametrize("content", [b"", b"[1]", b'{"cpu": 3}', b"\xff\xfe", b"[" * 100_000])
    def test_a_broken_file_is_made_again(self, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_half.cache_file().parent.mkdir(parents=True)
        fast_half.cache_file().write_bytes(content)
        assert self.ask(monkeypatch, 0.5) == (True, 1)
        assert self.ask(monkeypatch, 2.0) == (True, 0)

    def test_a_folder_that_takes_no_files_is_no_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("a file where the folder should be")
        assert self.ask(monkeypatch, 0.5) == (True, 1)
        assert self.ask(monkeypatch, 2.0) == (False, 1)

    def test_wrong_integers_are_never_fast(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fast_half, "is_exact", lambda: False)
        assert self.ask(monkeypatch, 0.1, "int8") == (False, 0) and self.ask(monkeypatch, 0.1) == (True, 1)

    @pytest.mark.parametrize("kind", ["half", pytest.param("int8", marks=needs_int8)])
    def test_precisions_are_timed(self, kind: str) -> None:
        assert 0.01 < fast_half._time(torch.device("cpu"), kind) < 100
