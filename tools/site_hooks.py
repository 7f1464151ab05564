"""Pages of the documentation site that are made while it is built: the notebooks and the reference.

MkDocs calls `on_files` (mkdocs.yml, hooks). Notebooks are shown with the outputs that they were committed with. The reference
of Python is what the public lists (`__all__`) name, that of the command line what the program itself says.
"""

import base64
import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
ROOMS = {
    "leader": ("Python: `leader`", ["leader"]),
    "methods": ("Methods: `leader.methods`", ["leader.methods"]),
    "plugins": ("Plug-ins: `leader.plugins`", ["leader.plugins"]),
    "operators": ("Operators: `leader.operators`", ["leader.operators"]),
    "priors": ("Priors: `leader.priors`", ["leader.priors"]),
    "uncertainty": ("Uncertainty and metrics", ["leader.uncertainty", "leader.metrics"]),
    "interop": ("deepinv: `leader.interop.deepinv`", ["leader.interop.deepinv"]),
}
"""Pages of the reference: title, and the modules whose public names are on it."""
OUTSIDE = re.compile(r"\[[^\]]*\]\((?:\.\./)+((?:src|experiments|tests|examples|benchmarks|tools)(?:/[^)\s]*)?)\)")
Made = tuple[str, str | bytes]


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for name, content in render_notebook(path):
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    described: set[str] = set()
    for name, (title, modules) in ROOMS.items():
        files.append(File.generated(config, f"reference/{name}.md", content=render_room(title, modules, described)))
    files.append(File.generated(config, "reference/command-line.md", content=render_commands()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to files of the repository, which the site does not hold, become the names of these files."""
    return OUTSIDE.sub(lambda found: f"`{found[1].rstrip('/')}`", markdown)


def render_notebook(path: Path) -> Iterator[Made]:
    """A notebook as a Markdown page, after the pictures of its outputs."""
    page: list[str] = []
    pictures = 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            page.append(source)
            continue
        page.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            kind = next((kind for kind in PICTURES if kind in data), None)
            if kind is not None:
                pictures += 1
                name = f"{path.stem}-{pictures}.{PICTURES[kind]}"
                yield name, base64.b64decode("".join(data[kind]))
                page.append(f"![output]({name})")
            elif "text/markdown" in data:
                page.append("".join(data["text/markdown"]))
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                page.append(f"```text\n{text.rstrip()}\n```")
    where = f"*This page is the notebook `notebooks/{path.name}` of the repository, as it was last executed.*"
    yield f"{path.stem}.md", "\n\n".join([*page, where]) + "\n"


def render_room(title: str, modules: list[str], described: set[str]) -> str:
    """The public classes and functions of some modules that no page before has, for mkdocstrings to describe."""
    page = [f"# {title}"]
    for name in modules:
        module = import_module(name)
        found = [getattr(module, item) for item in getattr(module, "__all__", vars(module)) if not item.startswith("_")]
        own = [item for item in found if getattr(item, "__module__", "").startswith(name)]
        functions, classes = ([item for item in own if is_kind(item)] for is_kind in (inspect.isfunction, inspect.isclass))
        names = [f"{item.__module__}.{item.__name__}" for item in (*functions, *classes)]
        page.extend(f"::: {item}" for item in names if item not in described)
        described.update(names)
    return "\n\n".join(page) + "\n"


def render_commands() -> str:
    """Every command of `leader` with its options, from the program itself."""
    from typer.main import get_command

    from leader.cli import app

    command: Any = get_command(app)
    return "\n".join(["# The command line", "", *_describe("leader", command)]) + "\n"


def _describe(path: str, command: Any) -> Iterator[str]:
    if path != "leader":
        yield f"## `{path}`\n"
    yield f"{_escape(command.help or '')}\n"
    options = [item for item in command.params if item.param_type_name == "option" and not getattr(item, "hidden", False)]
    names = [item for item in command.params if item.param_type_name == "argument"]
    if names:
        yield "".join(f"- `{(item.metavar or item.name).upper()}`: {_escape(item.help or '')}\n" for item in names)
    if options:
        yield "| option | meaning |\n| --- | --- |"
        for item in options:
            spelt = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
            yield f"| {spelt} | {_escape(item.help or '')} |"
        yield ""
    for name, inner in getattr(command, "commands", {}).items():
        if not getattr(inner, "hidden", False):
            yield from _describe(f"{path} {name}", inner)


def _escape(text: str) -> str:
    """Help text inside a table: one line, no columns or tags of its own."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
