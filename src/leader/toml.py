"""Tables in files, TOML or JSON: one may be huge, endlessly nested or in another encoding; each error is one sentence."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from leader.errors import LeaderError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_FILE = 4 << 20
"""Bytes; files written by hand take kilobytes, and a table of 100,000 betas two megabytes."""


def parse_toml_text(text: str) -> dict[str, Any]:
    """The tables of a TOML document; a ValueError says where it is not one."""
    return tomllib.loads(text)


def read_table(path: Path, what: str, remedy: str, most: int = LARGEST_FILE) -> dict[str, Any]:
    """The names and values in a file, JSON if its name says so, else TOML. Errors name it as `path` with `what`, and end in the
    advice `remedy`; `most`: its largest size in bytes.
    """
    form = "JSON" if path.suffix.lower() == ".json" else "TOML"
    try:
        if not path.is_file():
            found = "is not a regular file" if path.exists() else "does not exist"
            raise LeaderError(f"{path} with {what} {found}: {remedy}.")
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise LeaderError(f"{path} with {what} is over {most >> 20} MB, where kilobytes were expected: {remedy}.")
        text = data.decode("utf-8")
        content = json.loads(text, parse_constant=_refuse_constant) if form == "JSON" else parse_toml_text(text)
    except OSError as error:
        raise LeaderError(f"{path} with {what} cannot be read ({error.strerror}): {remedy}.") from error
    except UnicodeDecodeError as error:
        raise LeaderError(f"{path} is not UTF-8 text (byte {error.start}): {remedy}.") from error
    except RecursionError as error:
        raise LeaderError(f"{path} is nested too deeply for settings: {remedy}.") from error
    except LeaderError:
        raise
    except ValueError as error:
        raise LeaderError(f"{path} is not valid {form} ({str(error).rstrip('.')}): {remedy}.") from error
    if not isinstance(content, dict):
        raise LeaderError(f"{path} must hold names and values; found a {type(content).__name__}: {remedy}.")
    return content


def join_rows(tables: Iterable[Any]) -> Iterator[Any]:
    """The tables, one with `rows` (which may have rows of their own) replaced by these with the keys that they share."""
    for table in tables:
        if isinstance(table, dict) and isinstance(rows := table.get("rows"), list):
            shared = {key: value for key, value in table.items() if key != "rows"}
            yield from join_rows({**shared, **row} if isinstance(row, dict) else row for row in rows)
        else:
            yield table


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")
