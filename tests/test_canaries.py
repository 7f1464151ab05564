"""The canary runs give the numbers of the committed table, and a change of a formula is noticed and attributed."""

from typing import Any

import pytest
from torch import Tensor

from leader.methods.ddnm import DDNM
from tests.canaries import Canary, all_canaries, explain, find_changed, find_suspects, read_table, sampling


def test_the_numbers_are_those_of_the_table() -> None:
    canaries = list(all_canaries())
    changed = find_changed(canaries, {canary.name: canary.measure() for canary in canaries})
    assert not changed, explain(canaries, changed)
    revisions, stored = read_table()
    today = {part: revision for canary in canaries for part, revision in canary.parts.items()}
    assert (revisions, list(stored)) == (today, [canary.name for canary in canaries]), (
        "The table of canary runs has other revisions or other runs: run `python -m tests.canaries --write`."
    )


def test_one_per_cent_of_a_formula_is_noticed_and_its_owner_named(monkeypatch: pytest.MonkeyPatch) -> None:
    canaries = [sampling(method, (), task) for method in ("ddnm", "ddrm") for task in ("sr", "denoise")]
    correct = DDNM.correct

    def a_little_more(self: DDNM, *given: Any) -> Tensor:
        return 1.01 * correct(self, *given)

    monkeypatch.setattr(DDNM, "correct", a_little_more)
    changed = find_changed(canaries, {canary.name: canary.measure() for canary in canaries})
    assert [canary.name for canary in changed] == ["ddnm, sr", "ddnm, denoise"]
    assert find_suspects(canaries, changed) == ["ddnm"] and "'ddnm'" in explain(canaries, changed)


def test_the_part_that_explains_most_is_named() -> None:
    made = [
        Canary(name, dict.fromkeys(name.split(), 1), lambda: None)
        for name in ("loop ddnm sr", "loop ddnm blur", "loop dps sr", "loop dps blur", "sr", "blur")
    ]
    assert find_suspects(made, made[:4]) == ["loop"]
    assert find_suspects(made, [made[0], made[2], made[4]]) == ["sr"]
    assert find_suspects(made, [made[1]]) == ["ddnm"], "a change in one branch of a method"
    assert find_suspects(made, [made[0], made[1], made[5]]) == ["ddnm", "blur"]
