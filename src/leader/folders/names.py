"""The names of results: those of the pictures, always inside the output folder."""

from collections.abc import Iterable
from pathlib import Path

from leader.errors import LeaderError, UsageError
from leader.files import printable
from leader.pictures.container import SUFFIX
from leader.pictures.formats import FORMATS, is_picture_name

HOME = ".leader"
"""The folder inside an output folder for files that are not results; hidden, so no walk enters it."""
MANIFEST = "leader-manifest.jsonl"
REPORT = "leader-report.html"
MAPS = (".png", ".npy", ".pdf", ".svg", ".jpg")


def is_source_name(name: str) -> bool:
    """Whether a file should be restored: a picture or a container, neither hidden nor in a hidden folder."""
    parts = name.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    path = Path(parts[-1])
    return path.suffix.lower() == SUFFIX or is_picture_name(path)


def check_name(name: str) -> None:
    """Rejects a name that could escape the output folder, or that is not a valid file name."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts):
        raise LeaderError(f"The name '{printable(name)}' points outside its folder; rename it.")
    if "\0" in name or "\\" in name or name[1:2] == ":":
        raise LeaderError(
            f"The name '{printable(name)}' has a character that separates folders or drives on other systems; rename it."
        )
    if parts[0] == HOME or name in (MANIFEST, REPORT):
        raise LeaderError(f"The name '{printable(name)}' is reserved for leader's own files; rename it.")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise LeaderError(f"The file name '{printable(name)}' is not valid UTF-8; rename it.") from error


def name_results(name: str, maps: str | None) -> dict[str, str]:
    """The files written for a source: kind ("picture", "map") -> name; `maps` is a suffix or None.

    Containers, and pictures of formats that cannot be written, give PNG.
    """
    picture = name if Path(name).suffix.lower() in FORMATS else f"{name}.png"
    return {"picture": picture} | ({} if maps is None else {"map": f"{name}.map{maps}"})


def order_files(kinds: Iterable[str]) -> list[str]:
    """The order in which the files of a result are moved into place: once the picture is there, the result is complete."""
    return sorted(kinds, key=lambda kind: kind == "picture")


def name_strip(name: str) -> str:
    """Where the thumbnails of a source are kept."""
    return f"{HOME}/strips/{name}.webp"


def read_map_suffix(word: str | None) -> str | None:
    """The file suffix for the value of --maps."""
    if word is None:
        return None
    suffix = "." + word.lower().lstrip(".")
    if suffix not in MAPS:
        raise UsageError(f"Maps are written as {', '.join(item[1:] for item in MAPS)}; found '{printable(word)}'.")
    return suffix


def find_clashes(names: Iterable[str], maps: str | None) -> dict[str, str]:
    """Sources whose result would have the same name as an earlier one's, with the error message."""
    owner: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for name in names:
        results = name_results(name, maps).values()
        taken = next((owner[result] for result in results if result in owner), None)
        if taken is None:
            owner.update(dict.fromkeys(results, name))
        else:
            wrong[name] = f"Its result would have the same name as that of {printable(taken)}; rename one of them."
    return wrong
