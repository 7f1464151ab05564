"""Searches settings on development photographs: every host first, then LEADer on the tuned host with as many trials.

    python experiments/search.py --images FOLDER --trials 12 --methods ddnm,ddpg --tasks sr,deblur-gaussian
    --out found.toml

Trial 0 of each search is what the presets say, so a search never ends worse than it began on its own photographs; the others
are drawn from the ranges of search.toml with a fixed seed. The score is PSNR - 10 LPIPS. LEADer must save at least --save of
the host's calls, or as many as trial 0 does. Every run is a record, so an interrupted search goes on where it was. Prints
preset entries; the log has one line per trial.
"""

import hashlib
import math
import random
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.experiment import Task, merge_settings
from leader.bench.experiment_file import load_experiment, load_tasks
from leader.bench.images import list_images
from leader.bench.keys import identify
from leader.bench.priors import stand_in
from leader.bench.records import Record, Store, canonical
from leader.bench.running import run_cell
from leader.bench.schema import parse_toml
from leader.bench.setup import operator_of
from leader.engines import Engine, make_engine
from leader.errors import LeaderError, unknown_name
from leader.plugins import BUNDLES
from leader.presets.stored import format_entry

HERE = Path(__file__).parent
Settings = dict[str, Any]
WEIGHT = 10.0
"""Decibels that a whole unit of LPIPS is worth."""
KINDS = {"choices", "each", "low"}
"""What bounds of a setting have, one of them."""


@dataclass(frozen=True)
class Trial:
    """Settings with their mean scores over the photographs; `score` is minus infinity where a run failed."""

    settings: Settings
    psnr: float
    lpips: float
    calls: float
    score: float


def draw(ranges: Settings, seed: str, turn: int = 1) -> Settings:
    """One random point of the ranges; tables inside are plug-ins' settings. Equal seeds give equal points.

    turn: the number of the trial, from 1 on; where the ranges say `each`, the trials take those values in turn.
    """
    generator = random.Random(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little"))

    def value(bounds: Settings) -> Any:
        if "each" in bounds:
            return bounds["each"][(turn - 1) % len(bounds["each"])]
        if "choices" in bounds:
            return generator.choice(bounds["choices"])
        low, high = bounds["low"], bounds["high"]
        if bounds.get("log"):
            low, high = math.log(low), math.log(high)
        number = generator.uniform(low, high)
        return float(f"{math.exp(number) if bounds.get('log') else number:.3g}")

    return {
        key: value(item) if KINDS & set(item) else {name: value(part) for name, part in item.items()}
        for key, item in ranges.items()
    }


def ranges_of(ranges: Settings, host: str, plugins: str) -> Settings:
    """The ranges of a set of plug-ins with a host: those for all hosts, and its own in their place."""
    return merge_settings(ranges[plugins], ranges["with"].get(host, {}).get(plugins, {}))


def search(
    cells: Sequence[Cell],
    ranges: Settings,
    trials: int,
    store: Store,
    engine: Engine,
    *,
    calls_limit: float = math.inf,
    seed: int = 0,
) -> tuple[Trial, list[Trial]]:
    """The best trial and all of them, for `cells` (one per photograph, equal otherwise).

    Trials with more calls than `calls_limit`, and more than trial 0 has, are not eligible.
    """
    first = cells[0]
    name = f"{seed}/{first.recipe.method}/{'+'.join(first.recipe.plugins)}/{first.title}"
    proposals: list[Settings] = [{}, *(draw(ranges, f"{name}/{number}", number) for number in range(1, trials))]
    wanted = [[_with(cell, point) for cell in cells] for point in proposals]
    records = _run([cell for group in wanted for cell in group], store, engine)
    groups = (records[at : at + len(cells)] for at in range(0, len(records), len(cells)))
    done = [_scored(point, rows) for point, rows in zip(proposals, groups, strict=True)]
    limit = max(calls_limit, done[0].calls if math.isfinite(done[0].calls) else 0.0)
    eligible = [trial for trial in done if trial.calls <= limit and math.isfinite(trial.score)]
    return max(eligible, key=lambda trial: trial.score, default=done[0]), done


def _with(cell: Cell, point: Settings) -> Cell:
    return cell.altered(settings=Frozen(merge_settings(cell.recipe.settings.plain(), point)))


def _scored(point: Settings, rows: Sequence[Record]) -> Trial:
    if any("error" in row for row in rows):
        return Trial(point, math.nan, math.nan, math.inf, -math.inf)
    psnr, lpips, calls = (sum(float(row[key]) for row in rows) / len(rows) for key in ("psnr", "lpips", "calls"))
    return Trial(point, psnr, lpips, calls, psnr - WEIGHT * lpips)


def _run(cells: Sequence[Cell], store: Store, engine: Engine) -> list[Record]:
    keys = [identify(cell).key for cell in cells]
    missing = [cell for cell, key in zip(cells, keys, strict=True) if store.find(key) is None]
    with store.writing():
        for _, answer in engine.map(run_cell, missing):
            store.append(answer.record)
    found = [store.find(key) for key in keys]
    return [record for record in found if record is not None]


def make_cells(photos: Sequence[Path], task: Task, method: str, prior: str, fit: str, size: int) -> list[Cell]:
    own = load_experiment(HERE / "table1.toml").form.methods.get(method, {})
    recipe = Recipe(
        fit=fit,
        size=size,
        prior=prior,
        task=task.name,
        options=Frozen(task.options),
        sigma=task.sigma,
        method=method,
        settings=Frozen(own.get("settings", {})),
        steps=own.get("steps", 100),
        timing=False,
    )
    return [Cell(method, task.label, photo, index, recipe) for index, photo in enumerate(photos)]


def main(
    images: Annotated[str, typer.Option(help="A folder of development photographs.")],
    out: Annotated[Path, typer.Option(help="Where the preset entries go.")] = Path("found.toml"),
    records: Annotated[Path, typer.Option(help="Folder of the records and the log.")] = Path("out/search"),
    trials: Annotated[int, typer.Option(min=1, help="Trials per host and task, and again for LEADer.")] = 12,
    count: Annotated[int, typer.Option(min=1, help="Photographs.")] = 8,
    size: int = 128,
    fit: str = "half",
    prior: str = "embedded",
    methods: Annotated[str, typer.Option(help="Comma-separated; by default all.")] = "",
    tasks: Annotated[str, typer.Option(help="Comma-separated names of tasks.toml; by default all.")] = "",
    save: Annotated[float, typer.Option(help="Share of the host's calls that LEADer must save.")] = 0.03,
    hosts_only: Annotated[bool, typer.Option("--hosts-only", help="Leave LEADer for later.")] = False,
    host_trials: Annotated[int, typer.Option(min=0, help="Trials per host; 0: as many as --trials, 1: its presets.")] = 0,
    plugins: Annotated[str, typer.Option(help="leader or leader-paper: whose settings follow the host's.")] = "leader",
    seed: int = 0,
    workers: int = 2,
) -> None:
    """Search settings for hosts, then for LEADer on top of them."""
    ranges = parse_toml(HERE / "search.toml")
    if plugins not in BUNDLES or plugins not in ranges:
        raise unknown_name("set of plug-ins with ranges in search.toml", plugins, [name for name in ranges if name in BUNDLES])
    known = [name for name in ranges if name not in (*BUNDLES, "with")]
    hosts = methods.split(",") if methods else known
    for host in hosts:
        if host not in known:
            raise unknown_name("host with ranges in search.toml", host, known)
    photos = list_images(images)[:count]
    store = Store(records / "records", "search")
    records.mkdir(parents=True, exist_ok=True)
    log = records / "log.jsonl"
    log.write_text("")  # an interrupted search finds its records and writes its log anew
    entries: list[str] = []
    source = f"settings search, {trials} trials, {len(photos)} photographs"
    with closing(make_engine(workers)) as engine:
        for task in load_tasks(tasks.split(",") if tasks else None):
            for host in hosts:
                cells = make_cells(photos, task, host, prior, fit, size)
                best, tried = search(cells, ranges[host], host_trials or trials, store, engine, seed=seed)
                _log(log, task, host, (), tried, best)
                top = best
                if not hosts_only:
                    tuned = [_with(cell, best.settings).altered(plugins=(plugins,)) for cell in cells]
                    limit = (1 - save) * best.calls
                    bounds = ranges_of(ranges, host, plugins)
                    top, more = search(tuned, bounds, trials, store, engine, calls_limit=limit, seed=seed)
                    _log(log, task, host, (plugins,), more, top)
                found = merge_settings(best.settings, top.settings)
                if found:
                    name = stand_in(prior, size).name
                    entry: Settings = {"prior": name, "method": host, "task": operator_of(cells[0].recipe, 0).task}
                    entry |= {"noise": task.sigma or "none", "settings": found, "source": source}
                    entries.append(format_entry(entry))
                out.write_text("\n".join(entries), encoding="utf-8")
                _tell(f"{host}, {task.label}", tried[0], best, top)


def _log(path: Path, task: Task, host: str, plugins: tuple[str, ...], tried: list[Trial], best: Trial) -> None:
    with path.open("a", encoding="utf-8") as file:
        for number, trial in enumerate(tried):
            numbers = {
                key: value if math.isfinite(value := getattr(trial, key)) else None
                for key in ("psnr", "lpips", "calls", "score")
            }
            what = {"task": task.label, "method": host, "plugins": "+".join(plugins), "trial": number}
            file.write(canonical({**what, **numbers, "settings": trial.settings, "best": trial is best}) + "\n")


def _tell(name: str, start: Trial, host: Trial, top: Trial) -> None:
    def text(trial: Trial) -> str:
        return f"{trial.psnr:.2f} dB, LPIPS {trial.lpips:.4f}, {trial.calls:.1f} calls {trial.settings}"

    typer.echo(f"{name}\n  presets  {text(start)}\n  tuned    {text(host)}\n  + LEADer {text(top)}", err=True)


if __name__ == "__main__":
    try:
        typer.run(main)
    except LeaderError as error:
        sys.exit(str(error))
