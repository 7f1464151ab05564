"""Errors as people read them."""

from collections.abc import Callable
from typing import Any

import pytest

from leader.errors import LeaderError


def refusal(call: Callable[..., object], /, *given: Any, **named: Any) -> str:
    """The text of the error that a call ends in, checked to be one sentence of bearable length."""
    with pytest.raises(LeaderError) as error:
        call(*given, **named)
    text = str(error.value)
    assert text.endswith((".", "?")) and ". " not in text.replace("..", "") and "\n" not in text and len(text) < 600
    return text
