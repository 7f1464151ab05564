"""The paper's tables at full size: docs/reproduce.md follows it step by step.

    python -m experiments.reproduce weights
    python -m experiments.reproduce pictures celebahq FOLDER --held-out OTHERS
    python -m experiments.reproduce run celebahq --dry-run

What the paper leaves open is calibrated once for a prior, on held-out pictures, and stored beside its weights: SATP's eta, and
the strength lambda of UCPM's image prior for each task.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from PIL import Image

from experiments.search import choose_settings, draw_strengths
from leader import presets
from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.distances import render_distances
from leader.bench.experiment import Experiment, Row, Task, merge_settings
from leader.bench.experiment_file import load_experiment, load_tasks
from leader.bench.images import load_image, to_pixels
from leader.bench.priors import check_present, open_prior, stand_in
from leader.bench.records import Store, write_atomically
from leader.bench.run import dry_run, gather, run_experiment
from leader.bench.schema import parse_toml
from leader.bench.setup import operator_of
from leader.bench.statistics import Numbers
from leader.bench.tables import render_table
from leader.engines import make_engine
from leader.errors import LeaderError, unknown_name
from leader.metrics.inception import find_network_file
from leader.pictures import list_pictures
from leader.plugins import PLUGINS, expand
from leader.presets.stored import add_stored, read_stored
from leader.priors.catalogue import find_entry
from leader.priors.detection import build_network
from leader.priors.download import download
from leader.priors.loading import device_named
from leader.train.pruning import STEPS, calibrate_eta, curves, eta_entry
from leader.uncertainty.estimators import read_estimator

HERE = Path(__file__).parent
FORMS = {"celebahq": "paper", "imagenet": "paper-imagenet"}
TABLES = ("table1", "table2", "table3", "table4", "fid")
HELD_OUT, LAMBDA_TRIALS = 4, 5
REVERSE = Frozen({"name": "hutchinson", "reverse": True})
"""One probe by reverse mode: the CPU has no fast convolutions in forward mode (`pace`)."""
SOURCE = "ours: experiments/reproduce.py, lambda with DDNM on held-out pictures"
OUT = Path("out/reproduce")

app = typer.Typer(add_completion=False, no_args_is_help=True, help="The paper's tables at full size.")
Data = Annotated[str, typer.Argument(help="celebahq or imagenet.")]
Out = Annotated[Path, typer.Option(help="Folder of pictures, records and tables.")]


def say(text: str) -> None:
    typer.echo(text, err=True)


def form_of(data: str) -> str:
    if data not in FORMS:
        raise unknown_name("data set", data, FORMS)
    return FORMS[data]


@app.command()
def weights(
    names: Annotated[list[str] | None, typer.Argument(help="Priors; by default those of the paper's tables.")] = None,
) -> None:
    """Fetches the networks and checks them; ends with code 1 where one is missing."""
    missing = []
    for name in names or ("celebahq-256", "imagenet-256"):
        entry = find_entry(name)
        say(f"{name}: {entry.filename}, {(entry.bytes or 4 * entry.parameters) / 1e6:,.0f} MB, from {entry.page}")
        try:
            typer.echo(f"{name}: {download(name)}")
        except LeaderError as error:
            missing.append(name)
            say(str(error))
    if missing:
        raise typer.Exit(1)


@app.command()
def pictures(
    data: Data,
    folder: Annotated[Path, typer.Argument(help="Where the test pictures are.")],
    held_out: Annotated[
        Path | None, typer.Option(help="A folder of others, to calibrate on; by default the next ones.")
    ] = None,
    names: Annotated[Path | None, typer.Option("--list", help="A text file: a picture's name begins each line.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Test pictures.")] = 1000,
    fit: Annotated[str, typer.Option(help="host: as the hosts' code resizes; square: Lanczos.")] = "host",
    out: Out = OUT,
) -> None:
    """Chooses the test pictures and held-out ones, and brings them to 256 x 256."""
    form_of(data)
    found = list_pictures(folder)
    chosen = found if names is None else _listed(found, names)
    others = [path for path in found if path not in set(chosen[:count])] if held_out is None else list_pictures(held_out)
    for kind, paths, wanted in (("test", chosen, count), ("held-out", others, HELD_OUT)):
        if len(paths) < wanted:
            raise LeaderError(
                f"There are {len(paths)} {kind} pictures of '{data}' and {wanted} are needed; name a fuller folder."
            )
        for number, path in enumerate(paths[:wanted]):
            target = out / data / kind / f"{number:05d}-{path.stem}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(to_pixels(load_image(path, fit, 256)[0])).save(target)
        say(f"{wanted} {kind} pictures in {out / data / kind}")


def _listed(found: Iterable[Path], names: Path) -> list[Path]:
    """The pictures that a list names, in its order."""
    by_name = {path.stem: path for path in found}
    wanted = [Path(line.split()[0]).stem for line in names.read_text(encoding="utf-8").splitlines() if line.strip()]
    absent = [name for name in wanted if name not in by_name]
    if absent:
        raise LeaderError(
            f"{len(absent)} pictures of {names} are not in the folder, such as {absent[0]}; name the right folder."
        )
    return [by_name[name] for name in wanted]


@app.command()
def run(
    data: Data,
    tables: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(TABLES),
    prior: Annotated[str | None, typer.Option(help="Another network than the paper's: a name or a path.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="At most so many pictures.")] = None,
    size: Annotated[
        int | None, typer.Option(min=16, help="Another side of the pictures than 256, for another network.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="A trial: at most so many steps in every row.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Only tasks whose name contains this.")] = None,
    device: Annotated[str, typer.Option(help="cuda, cuda:0 or cpu.")] = "cuda",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each GPU, none on the CPU.")] = None,
    only_cost: Annotated[bool, typer.Option("--dry-run", help="Say what it costs; run nothing.")] = False,
    out: Out = OUT,
) -> None:
    """Calibrates what is open, then runs the paper's rows and writes its tables."""
    asked = [
        _experiment(name, data, out, {"prior": prior, "device": device, "size": size}, count, steps, tasks)
        for name in tables.split(",")
    ]
    chosen = [item for item in asked if item is not None]
    store = {item.name: Store(out / data / "records", item.name) for item in chosen}
    if only_cost:
        for item in chosen:
            say(f"\n{item.title}")
            dry_run(item, store[item.name], typer.echo)
        return
    for item in chosen:
        item.cells()  # pictures first: their absence ends the run before anything is computed
    if any(item.table.kind == "distances" for item in chosen):
        find_network_file()  # of FID: a package of its own
    form = chosen[0].form
    check_present(form.prior)
    place = device_named(device)
    named = {task.label for item in chosen for task in item.tasks}
    trial = _calibrate(form.prior, out / data, form.size, device, [task for task in load_tasks() if task.label in named], steps)
    gpus = torch.cuda.device_count() if place.type == "cuda" else 0  # 0: in this process
    for item in chosen:
        item = replace(item, form=replace(item.form, settings=trial))
        with ExitStack() as stack:
            engine = stack.enter_context(closing(make_engine(workers or gpus, fresh=item.form.memory)))
            alone = None if item.form.memory else stack.enter_context(closing(make_engine(min(1, workers or gpus))))
            outcome = run_experiment(item, store[item.name], engine, alone=alone)
        if outcome.failed:
            raise LeaderError(f"{outcome.failed} cells of {item.name} failed; {store[item.name].path} says why.")
        records = gather(item, store[item.name]).places
        distances = item.table.kind == "distances"
        text = render_distances(item, records, store[item.name]) if distances else render_table(Numbers(item, records))
        target = out / data / f"{item.name}.md"
        write_atomically(target, text.encode())
        say(f"{item.title}: {target}")


@app.command()
def pace(name: Annotated[str, typer.Argument(help="A registered prior; random weights do.")] = "celebahq-256") -> None:
    """Times one pass of a network at full size on one core of this machine, and what its derivatives cost in passes."""
    torch.set_num_threads(1)
    network = build_network(find_entry(name).config).eval()
    x, t = torch.randn(1, 3, 256, 256), torch.tensor([500])
    with torch.no_grad():
        network(x, t)  # the first call also allocates
        forward = _time(lambda: network(x, t))
    jvp = _time(lambda: torch.func.jvp(lambda v: network(v, t), (x,), (torch.ones_like(x),)))
    v = x.clone().requires_grad_()
    answer = network(v, t).sum()
    backward = _time(lambda: torch.autograd.grad(answer, v))
    typer.echo(f"{name}: {forward:.1f} s a pass; backward {backward / forward:.1f}, forward-mode {jvp / forward:.1f} passes")


def _time(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _experiment(
    name: str, data: str, out: Path, changes: dict[str, Any], count: int | None, steps: int | None, tasks: str | None
) -> Experiment | None:
    """A table in the form of the paper; None where the paper has it for the other data set alone."""
    if name not in TABLES:
        raise unknown_name("table", name, TABLES)
    path, form = HERE / f"{name}.toml", form_of(data)
    if form not in parse_toml(path)["form"]:
        return None
    whole = load_experiment(path, form, images=str(out / data / "test"), **changes)
    small = replace(whole, form=replace(whole.form, count=min(count or whole.form.count, whole.form.count)))
    small = small.restricted(tasks=tasks)
    small = small if steps is None else small.shortened(steps)
    estimator = _estimator(small.form.prior, small.form.size, small.form.device)
    rows = [replace(row, estimator=estimator) if _reads_sigma(row) else row for row in small.rows]
    return replace(small, rows=tuple(rows))


def _estimator(prior: str, size: int, device: str) -> Frozen | None:
    """How Sigma is estimated, where not as everywhere: on the CPU a network without a variance is differentiated backwards."""
    return REVERSE if device == "cpu" and stand_in(prior, size).source is None else None


def _reads_sigma(row: Row) -> bool:
    return any(PLUGINS[name].needs_sigma for name in expand(row.plugins) if isinstance(name, str))


def _calibrate(prior: str, folder: Path, size: int, device: str, tasks: Sequence[Task], steps: int | None) -> dict[str, Any]:
    """Stores eta and lambda beside the prior where they are not yet; folder: that of the data set.

    A trial of few steps takes one picture, stores nothing and returns what it found as settings for its rows, with the last
    task's lambda.
    """
    home = stand_in(prior, size).home
    if home is None:
        raise LeaderError(f"The prior '{prior}' has no weights file to store a calibration beside; give a checkpoint.")
    stored = read_stored(home)
    if steps is None and any(entry.get("source") == SOURCE for entry in stored):
        say(f"eta and lambda are calibrated for {prior}: {home.name}.presets.toml beside its weights.")
        return {}
    photos = list_pictures(folder / "held-out")[: HELD_OUT if steps is None else 1]
    trials, records = LAMBDA_TRIALS if steps is None else 2, Store(folder / "calibration", "lambda")
    say(f"Calibrating eta and lambda for {prior} on {len(photos)} held-out pictures, once.")
    clean = torch.cat([load_image(path, "host", size) for path in photos]).to(device)
    model = open_prior(prior, size, device)
    estimator = _estimator(prior, size, device)
    sigma = read_estimator(None if estimator is None else estimator.plain()) or "auto"
    eta = eta_entry(calibrate_eta(curves(model, clean, sigma, say=say, steps=steps or STEPS)))
    if steps is None:
        add_stored(home, [eta])
    found: list[dict[str, Any]] = []
    with closing(make_engine(0)) as engine:
        for task in tasks:
            recipe = Recipe(
                fit="host",
                size=size,
                prior=prior,
                task=task.name,
                options=Frozen(task.options),
                sigma=task.sigma,
                method="ddnm",
                plugins=("leader-paper",),
                settings=Frozen({"satp-paper": eta["settings"]["satp-paper"]}),
                steps=steps or STEPS,
                estimator=estimator,
                device=device,
                timing=False,
            )
            cells = [Cell("ddnm", task.label, photo, index, recipe) for index, photo in enumerate(photos)]
            strengths = draw_strengths(f"0/ddnm/leader-paper/{task.label}", trials)
            best = choose_settings(cells, strengths, records, engine)
            operator = operator_of(cells[0].recipe, 0)
            preset = presets.find(model.name, "ddnm", operator.task, task.sigma)["ucpm-paper"]  # what the first trial had
            lam = best or {"ucpm-paper": {"lam": preset["lam"]}}
            found.append({"task": operator.task, "noise": task.sigma or "none", "settings": lam, "source": SOURCE})
            say(f"{task.label}: {lam}")
    if steps is None:
        say(f"Stored in {add_stored(home, found)}.")
        return {}
    say("A trial: what was calibrated in so few steps is used here and not stored.")
    return merge_settings(eta["settings"], found[-1]["settings"])


if __name__ == "__main__":
    try:
        app(standalone_mode=True)
    except LeaderError as error:
        sys.exit(str(error))
