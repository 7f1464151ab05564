"""The examples in docstrings: every public class and function has one, and it does what it says."""

import doctest
import inspect
from importlib import import_module
from typing import Any

import pytest
import torch

import leader

ROOMS = ("leader", "leader.methods", "leader.plugins", "leader.operators", "leader.priors")


def public(room: str) -> dict[str, Any]:
    module = import_module(room)
    return {name: getattr(module, name) for name in module.__all__}


CASES = [
    (room, name)
    for room in ROOMS
    for name, item in public(room).items()
    if (inspect.isclass(item) or inspect.isfunction(item)) and item.__module__.startswith("leader.")
]


@pytest.mark.parametrize(("room", "name"), CASES)
def test_the_example_does_what_it_says(room: str, name: str) -> None:
    names = {**public(room), "leader": leader, "torch": torch}
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(public(room)[name]) or "", names, f"{room}.{name}", None, 0)
    assert found.examples, f"{room}.{name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=said.append)
    assert result.failed == 0, "".join(said)


def test_only_public_names_are_shown() -> None:
    assert set(dir(leader)) == set(leader.__all__) and "import_module" not in dir(leader)
