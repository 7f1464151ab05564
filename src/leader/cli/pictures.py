"""leader restore | degrade | demo: pictures in, pictures out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leader.cli.console import to_stderr, to_stdout
from leader.errors import LeaderError, UsageError

if TYPE_CHECKING:
    from leader.restoration.restore import Restoration

RESTORE_EXAMPLES = """
Examples:

    leader restore small.jpg large.png --task sr --factor 4

    leader restore shaken.jpg steady.png --task deblur --kernel kernel.png --map trust.png

    leader restore blurred.png sharp.png --task deblur-gaussian --kernel gaussian:2.5 --sigma 0.02

    leader restore torn.png whole.png --task inpaint --mask known.png --figure both.png

    leader restore measured.npz picture.png --plugin leader --budget 0.05 --json run.json
"""
DEGRADE_EXAMPLES = """
Examples:

    leader degrade photo.jpg small.png --task sr --factor 4 --sigma 0.02

    leader degrade photo.jpg shaken.png --task deblur-motion --kernel motion:3

    leader degrade photo.png holes.npz --task inpaint --mask random:0.5

    leader degrade square.png measured.npz --task cs --ratio 0.25 --sigma 0.05
"""

In = Annotated[Path, typer.Argument(metavar="IN", help="A picture, or a container (.npz) written by leader degrade.")]
Out = Annotated[Path, typer.Argument(metavar="OUT", help="The picture to write: .png, .jpg, .webp, .tif, .bmp, ...")]
KernelOption = Annotated[
    str | None,
    typer.Option("--kernel", metavar="FILE|gaussian:S|motion:SEED", help="The kernel of the blur."),
]
MaskOption = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="FILE|random:SHARE",
        help="White where the picture is known, black where it is missing.",
    ),
]
FactorOption = Annotated[int | None, typer.Option("--factor", help="How much larger sr makes a picture (default 4).")]
DownOption = Annotated[str | None, typer.Option("--down", help="How it became small: bicubic (default) or average.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another draw.")]


def _task_names() -> list[str]:
    from leader.operators import TASKS

    return list(TASKS)


def _method_names() -> list[str]:
    from leader.methods import METHODS

    return list(METHODS)


def _plugin_names() -> list[str]:
    from leader.plugins import BUNDLES, PLUGINS

    return [*BUNDLES, *PLUGINS, "none"]


def _prior_names() -> list[str]:
    from leader.priors.catalogue import ENTRIES

    return ["embedded", *ENTRIES]


def restore(
    picture: In,
    out: Out,
    task: Annotated[
        str | None,
        typer.Option("--task", "-t", autocompletion=_task_names, help="What happened to it: see leader tasks."),
    ] = None,
    sigma: Annotated[
        str | None,
        typer.Option("--sigma", metavar="NUMBER", help="Noise level, 0.05 = 5 % of the range; estimated if left out."),
    ] = None,
    kernel: KernelOption = None,
    mask: MaskOption = None,
    factor: FactorOption = None,
    down: DownOption = None,
    method: Annotated[str, typer.Option("--method", "-m", autocompletion=_method_names, help="See leader methods.")] = "ddnm",
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            "-p",
            autocompletion=_plugin_names,
            help="May be repeated; leader by default, none for none.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", "-n", help="Network steps; fewer are faster.")] = 100,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="Information loss SATP allows per step: 0 slow, 0.1 fast."),
    ] = None,
    prior: Annotated[
        str,
        typer.Option("--prior", autocompletion=_prior_names, help="See leader priors; or a checkpoint's path."),
    ] = "embedded",
    seed: SeedOption = 0,
    map_file: Annotated[
        Path | None,
        typer.Option("--map", help="Write the uncertainty: a coloured map (.png, .pdf) or numbers (.npy)."),
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Write before, after and uncertainty side by side.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write noise level, settings and trace.")] = None,
    settings: Annotated[Path | None, typer.Option("--settings", help="Settings of method and plug-ins, TOML or JSON.")] = None,
) -> None:
    """Restores a degraded picture."""
    from leader.cli.settings import read_settings, with_budget
    from leader.pictures import check_format
    from leader.restoration.arguments import as_sigma

    check_format(out)
    _check_outputs(picture, [out, map_file, figure, json_file])
    _check_drawn(map_file, figure)
    plugins = _plugins(plugin)
    restored = _run(
        picture,
        task,
        out=out,
        sigma=None if sigma is None else as_sigma(sigma),
        kernel=kernel,
        mask=mask,
        factor=factor,
        down=down,
        method=method,
        plugins=plugins,
        steps=steps,
        prior=prior,
        seed=seed,
        settings=with_budget(read_settings(settings), budget, plugins),
    )
    restored.save(out)
    written = [out]
    written += _write_map(map_file, restored)
    if figure is not None:
        from leader.pictures.figures import draw_side_by_side

        pictures = [("given", restored.given.pixels), ("restored", restored.array)]
        draw_side_by_side(figure, pictures, restored.uncertainty)
        written.append(figure)
    if json_file is not None:
        _write_json(json_file, restored.summary())
        written.append(json_file)
    for path in written:
        to_stdout(str(path))


def _run(source: Any, task: str | None, *, out: Path | None = None, **options: Any) -> Restoration:
    """Prepares, tells what was chosen, and runs behind a progress bar."""
    from leader.cli.progress import progress_bar
    from leader.pictures import check_format
    from leader.restoration.restore import prepare

    ready = prepare(source, task, **options)
    if out is not None:
        check_format(out, ready.given.alpha is not None)
    for note in ready.notes:
        to_stderr(note)
    origin = {
        "estimated": "estimated from the picture",
        "given": "as given",
        "container": "from the container",
    }[ready.sigma_from]
    to_stderr(f"Noise level sigma = {ready.sigma:.4f} ({origin}).")
    with progress_bar(ready, f"Restoring ({ready.task})") as on_step:
        restored = ready.run(on_step)
    calls = restored.result.ledger.total.calls
    to_stderr(
        f"Restored {restored.picture.size[0]} x {restored.picture.size[1]} pixels with {calls} network calls "
        f"in {restored.seconds:.1f} s."
    )
    return restored


def _plugins(names: list[str] | None) -> tuple[str, ...]:
    if not names:
        return ("leader",)
    if names == ["none"]:
        return ()
    if "none" in names:
        raise UsageError("The plug-in 'none' stands alone; leave it out or leave out the others.")
    return tuple(names)


def _check_outputs(source: Path, outputs: list[Path | None]) -> None:
    """Refuses outputs that cannot be written, coincide, or would replace the input."""
    from leader.files import check_writable

    seen = {os.path.realpath(source)}
    for path in outputs:
        if path is None:
            continue
        check_writable(path)
        if os.path.realpath(path) in seen:
            raise UsageError(f"{path} is named twice; every file needs a name of its own.")
        seen.add(os.path.realpath(path))


def _check_drawn(map_file: Path | None, figure: Path | None) -> None:
    from leader.pictures.figures import check_figure

    if map_file is not None and map_file.suffix.lower() != ".npy":
        check_figure(map_file)
    if figure is not None:
        check_figure(figure)


def _write_map(path: Path | None, restored: Restoration) -> list[Path]:
    """The uncertainty as a map or as numbers."""
    if path is None:
        return []
    spread = restored.uncertainty
    if spread is None:
        raise LeaderError("This run estimated no uncertainty, so there is no map; leave out estimator = none or --map.")
    if path.suffix.lower() == ".npy":
        import numpy as np

        from leader.files import replacing

        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, spread, allow_pickle=False)
        return [path]
    from leader.pictures.figures import draw_map

    draw_map(path, spread)
    return [path]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    from leader.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


def degrade(
    picture: Annotated[Path, typer.Argument(metavar="IN", help="A good picture.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A picture, or a container (.npz) that keeps everything.")],
    task: Annotated[
        str,
        typer.Option("--task", "-t", autocompletion=_task_names, help="What to do to it: see leader tasks."),
    ],
    sigma: Annotated[str, typer.Option("--sigma", metavar="NUMBER", help="Noise to add, 0.05 = 5 % of the range.")] = "0",
    seed: SeedOption = 0,
    kernel: KernelOption = None,
    mask: MaskOption = None,
    factor: FactorOption = None,
    down: DownOption = None,
    ratio: Annotated[float | None, typer.Option("--ratio", help="Share of coefficients cs measures (0.25).")] = None,
    order: Annotated[str | None, typer.Option("--order", help="Which ones: random, sequency or published.")] = None,
) -> None:
    """Degrades a good picture, to try a restoration on known ground."""
    from leader.restoration.arguments import as_sigma
    from leader.restoration.degrade import degrade_file as spoil

    _check_outputs(picture, [out])
    notes = spoil(
        picture,
        out,
        task,
        sigma=as_sigma(sigma),
        seed=seed,
        kernel=kernel,
        mask=mask,
        factor=factor,
        down=down,
        ratio=ratio,
        order=order,
    )
    for note in notes:
        to_stderr(note)
    to_stdout(str(out))


def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder to write into; created if missing.")] = Path("out"),
    steps: Annotated[int, typer.Option("--steps", "-n", help="Network steps; fewer are faster.")] = 100,
    seed: SeedOption = 0,
) -> None:
    """Degrades and restores a photograph that comes with the package, and draws every figure."""
    from leader.pictures import figures, read_picture
    from leader.restoration.degrade import degrade_file as spoil
    from leader.samples import demo_photograph

    figures.check_figure(out / "figure.png")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LeaderError(f"The folder {out} cannot be created ({error.strerror}); choose another.") from error
    degraded = out / "degraded.png"
    with demo_photograph() as original:
        truth = read_picture(original)
        spoil(original, degraded, "sr", sigma=0.02, seed=seed)
    restored = _run(degraded, "sr", steps=steps, seed=seed)
    paths = {name: out / f"{name}.png" for name in ("restored", "uncertainty", "figure", "path")}
    restored.save(paths["restored"])
    spread = restored.uncertainty
    if spread is not None:
        figures.draw_map(paths["uncertainty"], spread)
    views = [("degraded", restored.given.pixels), ("restored", restored.array), ("original", truth.pixels)]
    figures.draw_side_by_side(paths["figure"], views, spread)
    figures.draw_path(paths["path"], next(iter(restored.result.trace.values())))
    for path in (degraded, *paths.values()):
        to_stdout(str(path))
