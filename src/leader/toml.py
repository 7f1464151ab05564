"""TOML text as Python's values: the standard library's parser, or its twin where Python has none yet (before 3.11)."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse_toml_text(text: str) -> dict[str, Any]:
    """The tables of a TOML document; a ValueError says where it is not one."""
    return tomllib.loads(text)
