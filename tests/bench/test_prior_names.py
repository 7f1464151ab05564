"""Names of priors in experiments that no file can have are refused in a sentence."""

from __future__ import annotations

import pytest

from leader.bench.priors import stand_in
from leader.errors import LeaderError


@pytest.mark.parametrize("name", ["a" * 5000, "~nobody-of-that-name/prior", "a\0b", "no-such-file"])
def test_names_that_no_file_has(name: str) -> None:
    with pytest.raises(LeaderError, match="There is no prior"):
        stand_in(name, 64)
