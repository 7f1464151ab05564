"""Executes the notebooks of the documentation, each in a fresh kernel and an empty folder.

python -m tools.notebooks            executes them and keeps the new outputs in notebooks/
python -m tools.notebooks --check    executes them and changes nothing; an error in a cell fails
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def execute_notebook(path: Path, keep: bool) -> None:
    """Runs every cell; `keep` writes the notebook with its outputs, without the times at which cells ran."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        options = {"timeout": 300, "startup_timeout": 120, "record_timing": False}
        NotebookClient(notebook, resources={"metadata": {"path": folder}}, **options).execute()
    if keep:
        for cell in notebook.cells:
            cell.id = f"cell-{notebook.cells.index(cell)}"
        notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        nbformat.write(notebook, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="keep the outputs that are there")
    given = parser.parse_args(arguments)
    os.environ.setdefault("PYTHONWARNINGS", "ignore")  # what libraries say of themselves is no output of ours
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        execute_notebook(path, keep=not given.check)
        print(f"{path.name}: executed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
