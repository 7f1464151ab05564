"""Presets: which entry wins, at which noise level, who has the last word, and that every entry can be built."""

from pathlib import Path
from typing import Any

import pytest
import torch

from leader import Problem, Sampler, operators, presets
from leader.methods import METHODS, make_method
from leader.operators import TASKS
from leader.plugins import BUNDLES, PLUGINS, make_plugin
from leader.presets.stored import add_stored, stored_file
from tests.cheap_prior import CheapPrior
from tests.sentences import refusal

SHAPE = (1, 16, 16)


def entry(prior: str, method: str, task: str, noise: str | float, **settings: Any) -> dict[str, Any]:
    return {"prior": prior, "method": method, "task": task, "noise": noise, "settings": settings, "source": "test"}


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """An empty shelf of presets in place of the package's."""
    kept: list[dict[str, Any]] = []
    monkeypatch.setattr(presets, "entries", lambda: tuple(kept))
    return kept


def prior(name: str) -> CheapPrior:
    made = CheapPrior()
    made.name = name
    return made


def blurred(sigma: float, batch: int = 1) -> Problem:
    """A problem of the task deblur-gaussian, sigma quoted for [0, 1]."""
    operator = operators.SeparableBlur(SHAPE, operators.paper_gaussian_taps())
    return Problem(operator.A(torch.full((batch, *SHAPE), 0.5)), operator, sigma)


# The published DDPG settings of CelebA-HQ deblurring at 0.01, 0.05 and 0.1, from the authors' table: gamma, zeta, eta_tilde.
DDPG = {0.01: (11.0, 0.6, 1.0), 0.05: (8.0, 0.5, 0.7), 0.1: (5.0, 0.6, 0.7)}


@pytest.mark.parametrize(
    ("sigma", "row"), [(0.005, 0.01), (0.019, 0.01), (0.026, 0.05), (0.05, 0.05), (0.06, 0.05), (0.5, 0.1)]
)
def test_the_sampler_looks_up_the_quoted_level(sigma: float, row: float) -> None:
    """At the doubled level 0.05 would be served with the settings of 0.1; the nearest row wins, in proportion."""
    method: Any = Sampler(prior("celebahq-256"), "ddpg", ()).plan(blurred(sigma)).method
    assert (method.gamma, method.zeta, method.eta_tilde) == DDPG[row]


def test_the_noisiest_image_of_a_batch_decides() -> None:
    problem = Problem.internal(blurred(0.05, 2).y, blurred(0.05).operator, torch.tensor([0.02, 0.2]))
    method: Any = Sampler(prior("celebahq-256"), "ddpg", ()).plan(problem).method
    assert (method.gamma, method.zeta, method.eta_tilde) == DDPG[0.1]


def test_published_rows() -> None:
    """One number of every kind of row, against the methods' description."""
    find = presets.find
    assert find("celebahq-256", "ddpg", "sr-bicubic", 0.05)["gamma"] == 10.0
    assert find("celebahq-256", "ddpg", "sr-bicubic", 0.0)["zeta"] == 0.7
    assert find("imagenet-256", "ddpg", "deblur-motion", 0.1)["eta_tilde"] == 0.4
    assert find("imagenet-256", "idpg", "sr-bicubic", 0.05)["gamma"] == 30.0
    assert find("celebahq-256-repaint", "projdiff", "sr-average", 0.0)["step"] == 0.7
    assert find("imagenet-256", "projdiff", "inpaint", 0.2)["step"] == 1.0
    assert find("ffhq-256", "dps", "inpaint", 0.05)["scale"] == 0.5
    assert find("ffhq-256", "sitcom", "sr-bicubic", 0.05)["inner"] == 20
    assert find("ffhq-256", "daps", "deblur-motion", 0.025)["rate"] == 5e-5
    assert find("imagenet-256", "daps", "cs", 0.05)["tau"] == pytest.approx(0.01 / 2**0.5, rel=1e-3)
    assert find("ffhq-256", "dcdp", "inpaint", 0.0)["first"] == 700
    assert find("celebahq-256", "pirp", "sr-bicubic", 0.0)["lam"] == 0.25
    assert find("celebahq-256", "pirp", "deblur-motion", 0.05)["gamma"] == 5.0, "as DDPG"
    assert find("celebahq-256", "ddnm", "cs", 0.1)["eta"] == 0.85
    assert find("embedded", "ddnm", "sr-bicubic", 0.0)["eta"] == 0.985
    assert find("embedded", "ddnm", "sr-bicubic", 0.05)["eta"] == 0.646
    satp = {"budget": 0.01, "eta": 2.0}
    common = {"ucpm": {"phi": "tv", "lam": 0.2}, "satp": satp, "ucpm-paper": {"lam": 0.2}, "satp-paper": satp}
    assert find("unheard-of", "ddnm", "cs", 0.1) == common
    assert find("embedded", "ddnm", "cs", 0.05)["satp-paper"] == {"budget": 0.01, "eta": 0.7}
    assert find("embedded", "ddnm", "cs", 0.05)["ucpm"]["lam"] == 0.155
    assert find("embedded", "ddnm", "cs", 0.05)["satp"] == {"budget": 0.003, "eta": 0.7}, "entries fill what others leave open"


def test_every_key_must_fit(shelf: list[dict[str, Any]]) -> None:
    shelf.append(entry("mine", "ddnm", "cs", 0.05, eta=0.5))
    assert presets.find("mine", "ddnm", "cs", 0.05) == {"eta": 0.5}
    assert presets.find("yours", "ddnm", "cs", 0.05) == {}
    assert presets.find("mine", "ddrm", "cs", 0.05) == {}
    assert presets.find("mine", "ddnm", "denoise", 0.05) == {}
    assert presets.find("mine", "ddnm", "cs", 0.0) == {}, "a noisy entry does not serve clean data"


def test_kinds_of_noise(shelf: list[dict[str, Any]]) -> None:
    shelf += [entry("any", "any", "any", noise, **{f"on_{noise}": 1}) for noise in ("none", "noisy", "any")]
    shelf.append({"settings": {"bare": 1}})
    assert set(presets.find("p", "m", "t", 0.0)) == {"on_none", "on_any", "bare"}
    assert set(presets.find("p", "m", "t", 0.001)) == {"on_noisy", "on_any", "bare"}


def test_a_level_beats_noisy_beats_any(shelf: list[dict[str, Any]]) -> None:
    shelf += [entry("p", "m", "t", noise, value=noise) for noise in (0.2, "noisy", 0.05, "any", 0.01)]
    assert presets.find("p", "m", "t", 0.05)["value"] == 0.05
    assert presets.find("p", "m", "t", 0.04)["value"] == 0.05
    assert presets.find("p", "m", "t", 0.015)["value"] == 0.01
    assert presets.find("p", "m", "t", 0.15)["value"] == 0.2
    assert presets.find("p", "m", "t", 0.0)["value"] == "any"
    del shelf[0], shelf[1], shelf[2]
    assert [item["noise"] for item in shelf] == ["noisy", "any"]
    assert presets.find("p", "m", "t", 0.05)["value"] == "noisy"


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (("celebahq-256", "any", "any", "any"), ("celebahq", "m", "t", 0.05)),
        (("celebahq", "any", "any", "any"), ("any", "m", "t", 0.05)),
        (("any", "m", "any", "any"), ("any", "any", "t", 0.05)),
        (("any", "any", "t", "any"), ("any", "any", "any", 0.05)),
        (("any", "any", "any", "noisy"), ("any", "any", "any", "any")),
    ],
)
def test_precedence(shelf: list[dict[str, Any]], better: tuple[Any, ...], worse: tuple[Any, ...], swap: bool) -> None:
    """Prior before data set before any; then method, task, noise; whatever the order of the file."""
    shelf += [
        entry(*better, value="better", ucpm={"lam": 1.0}),
        entry(*worse, value="worse", other=3, ucpm={"lam": 2.0, "phi": "tv"}),
    ]
    if swap:
        shelf.reverse()
    found = presets.find("celebahq-256", "m", "t", 0.05)
    assert found == {"value": "better", "other": 3, "ucpm": {"lam": 1.0, "phi": "tv"}}


def plan(shelf: list[dict[str, Any]], **given: Any) -> tuple[Any, Any, Any]:
    """Method, UCPM and SATP as planned with a preset for everything."""
    del shelf[:]
    settings = {"eta": 0.5, "ucpm": {"lam": 0.7, "sharpen": 2.0}, "satp": {"budget": 0.4, "eta": 9.0}}
    shelf.append(entry("any", "ddnm", "any", "any", **settings))
    made = Sampler(CheapPrior(), "ddnm", **{"plugins": ("ucpm", "satp"), **given}).plan(blurred(0.05))
    ucpm, satp = made.plugins
    return made.method, ucpm, satp


def test_what_the_caller_gives_wins(shelf: list[dict[str, Any]]) -> None:
    method, ucpm, satp = plan(shelf)
    assert (method.eta, ucpm.lam, ucpm.sharpen, satp.budget, satp.eta) == (0.5, 0.7, 2.0, 0.4, 9.0)
    method, ucpm, satp = plan(shelf, eta=0.9, ucpm={"lam": 0.0}, satp={"eta": 3.0})
    assert (method.eta, ucpm.lam, ucpm.sharpen, satp.budget, satp.eta) == (0.9, 0.0, 2.0, 0.4, 3.0)


def test_settings_of_a_bundle_hold_where_it_is_asked_for(shelf: list[dict[str, Any]]) -> None:
    settings = {"satp": {"budget": 0.4, "eta": 9.0}, "leader": {"satp": {"budget": 0.1}, "ucdc": {"scatter": 0.7}}}
    shelf.append(entry("any", "ddnm", "any", "any", **settings))

    def planned(*plugins: str, **given: Any) -> Any:
        made = Sampler(CheapPrior(), "ddnm", plugins, **given).plan(blurred(0.05))
        for item, told in zip(made.plugins, made.settings["plugins"]):
            assert type(item)(**{key: value for key, value in told.items() if key != "name"}) == item, "what is told is enough"
        return made.plugins

    ucdc, satp = planned("leader")
    assert (ucdc.scatter, satp.budget, satp.eta) == (0.7, 0.1, 9.0)
    ucdc, satp = planned("leader", satp={"budget": 0.2})
    assert (ucdc.scatter, satp.budget, satp.eta) == (0.7, 0.2, 9.0)
    ucdc, satp = planned("ucdc", "satp")
    assert (ucdc.scatter, satp.budget, satp.eta) == (0.0, 0.4, 9.0)


def test_presets_can_be_switched_off(shelf: list[dict[str, Any]]) -> None:
    method, ucpm, satp = plan(shelf, use_presets=False)
    assert (method, ucpm, satp) == (make_method("ddnm", {}), make_plugin("ucpm", {}), make_plugin("satp", {}))
    method, ucpm, _ = plan(shelf, use_presets=False, eta=0.9, ucpm={"lam": 0.1})
    assert (method.eta, ucpm.lam, ucpm.sharpen) == (0.9, 0.1, 0.0)


def test_objects_keep_their_settings(shelf: list[dict[str, Any]]) -> None:
    """A method or plug-in that comes as an object is taken as it is."""
    objects = (make_plugin("ucpm", {"lam": 0.33}), make_plugin("satp", {}))
    _, ucpm, satp = plan(shelf, plugins=objects)
    assert (ucpm, satp) == objects
    made = Sampler(CheapPrior(), make_method("ddnm", {"eta": 0.1}), ("ucpm",)).plan(blurred(0.05))
    assert made.method == make_method("ddnm", {"eta": 0.1})


def test_presets_change_the_picture(shelf: list[dict[str, Any]]) -> None:
    shelf.append(entry("any", "ddnm", "any", "any", ucpm={"lam": 0.7}))
    runs = [Sampler(CheapPrior(), "ddnm", ("ucpm",), 3, use_presets=use).run(blurred(0.05)).images for use in (True, False)]
    direct = Sampler(CheapPrior(), "ddnm", ("ucpm",), 3, use_presets=False, ucpm={"lam": 0.7}).run(blurred(0.05)).images
    assert torch.equal(runs[0], direct) and not torch.equal(runs[0], runs[1])


PRIORS = {"any", "embedded", *presets.DATA_SETS, *presets.DATA_SETS.values()}
OPERATOR_TASKS = {"any", "sr-bicubic", "sr-average", *TASKS}


@pytest.mark.parametrize("number", range(len(presets.entries())))
def test_every_entry_can_be_built(number: int) -> None:
    item = presets.entries()[number]
    assert set(item) <= {"prior", "method", "task", "noise", "settings", "source"}
    assert item["source"].startswith(("paper: ", "ours: ", "default: ")), item["source"]
    assert item.get("prior", "any") in PRIORS and item.get("task", "any") in OPERATOR_TASKS
    noise = item.get("noise", "any")
    assert noise in ("any", "none", "noisy") if isinstance(noise, str) else 0 < noise < 0.5
    own = {key: value for key, value in item["settings"].items() if key not in PLUGINS and key not in BUNDLES}
    plugins = [(key, value) for key, value in item["settings"].items() if key in PLUGINS]
    for bundle in item["settings"].keys() & BUNDLES.keys():
        assert item["settings"][bundle].keys() <= set(BUNDLES[bundle]), "of its members"
        plugins += item["settings"][bundle].items()
    for name, settings in plugins:
        built = vars(make_plugin(name, settings))
        assert {key: built[key] for key in settings} == settings
    if item["method"] == "any":
        assert not own, "settings of no method in particular"
    else:
        assert item["method"] in METHODS
        made = vars(make_method(item["method"], own))
        assert {key: made[key] for key in own} == own


def test_no_two_entries_fit_equally_well() -> None:
    keys = [tuple(item.get(key, "any") for key in ("prior", "method", "task", "noise")) for item in presets.entries()]
    assert len(keys) == len(set(keys))


def test_what_is_stored_beside_a_prior_wins_for_that_prior_alone(shelf: list[dict[str, Any]], tmp_path: Path) -> None:
    shelf.append(entry("mine", "ddnm", "cs", 0.05, eta=0.5, satp={"eta": 2.0, "budget": 0.01}))
    shelf.append(entry("mine", "ddnm", "any", "any", x=1))
    home = tmp_path / "mine.pt"
    add_stored(home, [{"settings": {"satp": {"eta": 0.7}}, "source": "ours: a"}])
    for noise, lam in ((0.05, 0.3), (0.2, 0.9)):
        add_stored(home, [{"task": "cs", "noise": noise, "settings": {"ucpm": {"lam": lam}}, "source": "ours: b"}])
    wanted = {"eta": 0.5, "satp": {"eta": 0.7, "budget": 0.01}, "x": 1, "ucpm": {"lam": 0.3}}
    assert presets.find("mine", "ddnm", "cs", 0.05, home) == wanted
    add_stored(home, [{"settings": {"satp": {"eta": 0.9}}, "source": "ours: a"}])
    assert presets.find("mine", "ddnm", "cs", 0.05, home)["satp"]["eta"] == 0.9, "calibrated again, and read again"
    assert presets.find("mine", "ddnm", "cs", 0.05, tmp_path / "other.pt")["satp"]["eta"] == 2.0


@pytest.mark.parametrize("text", ["preset = 3", "[[preset]]\nsettings = 1", "[[preset]]\nsettings = {}\nprior = 'x'", "[["])
def test_a_stored_file_that_holds_something_else_is_refused(text: str, tmp_path: Path) -> None:
    home = tmp_path / "mine.pt"
    stored_file(home).write_text(text)
    assert "mine.pt.presets.toml" in refusal(presets.find, "mine", "ddnm", "cs", 0.05, home)
