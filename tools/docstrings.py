"""Docstrings of the package as Markdown, for the reference of the site (a Griffe extension, named in mkdocs.yml).

Docstrings are written for `help()`: fields in columns, examples as they are typed. Here columns become lists and examples
become code, so that a browser shows them as they are meant.
"""

import re
from typing import Any

from griffe import Extension

FIELD = re.compile(r"^(\w[\w*., ]*?)  +(\S.*)$")


class ReadableDocstrings(Extension):  # type: ignore[misc]  # Griffe comes with the extra `docs` alone
    """Rewrites the docstring of every object that is described."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = convert_docstring(obj.docstring.value)


def convert_docstring(text: str) -> str:
    """A docstring as Markdown: columns of names and meanings as lists, doctests as code."""
    return "\n\n".join(_convert_paragraph(part.split("\n")) for part in re.split(r"\n\s*\n", text))


def _convert_paragraph(lines: list[str]) -> str:
    example = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    if example is not None:
        before = [_convert_paragraph(lines[:example])] if example else []
        return "\n\n".join([*before, "\n".join(["```pycon", *lines[example:], "```"])])
    if not FIELD.match(lines[0]):
        return "\n".join(lines)
    items: list[str] = []
    for line in lines:
        found = FIELD.match(line)
        if found and not line.startswith(" "):
            items.append(f"- `{found[1].strip()}`: {found[2]}")
        else:
            items.append(f"  {line.strip()}")
    return "\n".join(items)
