"""Sentences of the other rooms as a page says them: they advise options of the command line, which a visitor does not have."""

from __future__ import annotations

import re

from leader.web.choices import KINDS, kind_of

_TASK = re.compile(r"--task ([a-z-]+)")
_OPTION = re.compile(r"--[a-z]")
_SIGMA = "give sigma"
_ASIDE = re.compile(r",? --[a-z-]+ \S+(?=[.,;:]( |$))")


def for_page(text: str) -> str:
    """A sentence whose repairs are those of the page, and without what it says of other options."""
    text = text.replace(_SIGMA, 'give the noise level under "Expert settings"')
    if not _OPTION.search(text):
        return text
    said = _ASIDE.sub("", _TASK.sub(_kind, text))
    kept = "; ".join(part for part in said.split("; ") if not _OPTION.search(part))
    return kept if kept.endswith((".", "?", "!")) or not kept else f"{kept}."


def _kind(found: re.Match[str]) -> str:
    kind = kind_of(found[1])
    return found[0] if kind is None else f'"{KINDS[kind][0]}"'
