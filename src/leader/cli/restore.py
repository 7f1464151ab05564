"""leader restore: a degraded picture in; a restored one, its trust map and the run itself out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leader import defaults
from leader.cli import options
from leader.cli.console import to_stderr, to_stdout
from leader.errors import LeaderError, UsageError

if TYPE_CHECKING:
    from leader.restoration.restore import Preparation, Restoration

EXAMPLES = """
Examples:

    leader restore small.jpg large.png --task sr --factor 4

    leader restore shaken.jpg steady.png --task deblur --kernel kernel.png --map trust.png

    leader restore blurred.png sharp.png --task deblur-gaussian --kernel gaussian:2.5 --sigma 0.02

    leader restore torn.png whole.png --task inpaint --mask known.png --figure both.png

    leader restore measured.npz picture.png --plugin leader --budget 0.05 --json run.json

    leader restore measured.npz again.png --settings run.json
"""
CONTEXT = {"allow_extra_args": True}
"""More names than two reach the command, which says what to do with many pictures."""
STDOUT = Path("-")

_BESIDE_A_RUN = ("picture", "out", "map_file", "figure", "json_file", "settings", "force", "check", "keep_failed")


@dataclass(frozen=True)
class Outputs:
    """The files a restoration is written to; None where none was asked for."""

    picture: Path
    map: Path | None
    figure: Path | None
    json: Path | None

    def check(self, inputs: dict[str, Path], force: bool) -> None:
        """Refuses, before any work is done, what could not or must not be written."""
        from leader.cli.outputs import check_outputs
        from leader.pictures import check_format
        from leader.pictures.figures import check_figure

        check_format(self.picture)
        kept = None if self.json == STDOUT else self.json
        files = {"OUT": self.picture, "--map": self.map, "--figure": self.figure, "--json": kept}
        check_outputs(inputs, files, force)
        for path in (self.map, self.figure):
            if path is not None and not (path is self.map and path.suffix.lower() == ".npy"):
                check_figure(path)

    def write(self, restored: Restoration) -> None:
        """Writes all of them, and names each on stdout as soon as it is there."""
        say = self._say
        restored.save(self.picture)
        say(str(self.picture))
        if self.map is not None:
            _write_map(self.map, restored)
            say(str(self.map))
        if self.figure is not None:
            from leader.pictures.figures import draw_side_by_side

            views = [("given", restored.given.pixels), ("restored", restored.array)]
            words = "" if restored.verdict is None else f"Verdict: {restored.verdict.in_words()}"
            draw_side_by_side(self.figure, views, restored.uncertainty, words)
            say(str(self.figure))
        self.write_run(restored)

    def write_run(self, restored: Restoration) -> None:
        """Writes the run alone, where it was asked for."""
        if self.json is None:
            return
        if self.json == STDOUT:
            to_stdout(_run_text(restored))
            return
        write_run(self.json, restored)
        self._say(str(self.json))

    def _say(self, text: str) -> None:
        (to_stderr if self.json == STDOUT else to_stdout)(text)


def restore(
    ctx: typer.Context,
    picture: Annotated[Path, typer.Argument(metavar="IN", help="A picture, or a container (.npz) of leader degrade.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The picture to write: .png, .jpg, .webp, .tif, .bmp, ...")],
    task: options.Task = None,
    sigma: Annotated[
        str | None,
        typer.Option("--sigma", metavar="NUMBER", help="Noise level, 0.05 = 5 % of the range; estimated if left out."),
    ] = None,
    kernel: options.Kernel = None,
    mask: options.Mask = None,
    factor: options.Factor = None,
    down: options.Down = None,
    quality: options.Quality = None,
    look: options.Look = None,
    method: options.Method = defaults.METHOD,
    plugin: options.Plugins = None,
    steps: options.Steps = defaults.STEPS,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="Information loss SATP allows per step: 0 slow, 0.1 fast."),
    ] = None,
    estimator: options.Estimator = None,
    prior: options.Prior = defaults.PRIOR,
    device: options.Device = None,
    dtype: options.Precision = None,
    threads: options.Threads = None,
    seed: options.Seed = defaults.SEED,
    map_file: Annotated[
        Path | None,
        typer.Option("--map", help="Write the uncertainty: a coloured map (.png, .pdf) or numbers (.npy)."),
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Write before, after and uncertainty side by side.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the whole run: --settings repeats it; - for stdout.")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="Settings of method and plug-ins (TOML, JSON), or a run kept by --json."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Judge the result: is it plausible, and explained by the noise?")
    ] = True,
    keep_failed: Annotated[
        bool,
        typer.Option("--keep-failed/--refuse-failed", help="Whether OUT is written where the verdict is failed; else exit 3."),
    ] = True,
    force: options.Force = False,
) -> None:
    """Restores a degraded picture."""
    from leader.cli.errors import NO_ANSWER
    from leader.cli.outputs import existing_files
    from leader.cli.running import run_and_tell
    from leader.cli.settings import is_run, read_settings, with_options
    from leader.files import check_readable, printable
    from leader.pictures import check_format
    from leader.pictures.container import SUFFIX
    from leader.restoration.arguments import as_sigma
    from leader.restoration.restore import prepare

    _refuse_more_names(ctx, picture, out)
    outputs = Outputs(out, map_file, figure, json_file)
    words = {"IN": picture, "--mask": mask, "--kernel": kernel, "--settings": settings, "--prior": prior}
    outputs.check(existing_files(words), force)
    check_readable(picture, "picture")
    content = read_settings(settings)
    if is_run(content):
        ready = _again(ctx, picture, content)
    else:
        if task is None and picture.suffix.lower() != SUFFIX:
            raise _no_task(picture, out)
        plugins = options.plugin_names(plugin)
        if plugins is None and budget is not None:
            plugins = ("leader",)  # whose budget it is
        ready = prepare(
            picture,
            task,
            sigma=None if sigma is None else as_sigma(sigma),
            kernel=kernel,
            mask=mask,
            factor=factor,
            down=down,
            quality=quality,
            look=look,
            method=method,
            plugins=plugins,
            steps=steps,
            prior=prior,
            device=device,
            dtype=dtype,
            threads=threads,
            seed=seed,
            settings=with_options(content, plugins or (), budget=budget, estimator=estimator),
        )
    check_format(out, ready.given.alpha is not None)
    restored = run_and_tell(ready, check)
    if restored.verdict is not None and restored.verdict.level == "failed" and not keep_failed:
        outputs.write_run(restored)
        to_stderr(f"{printable(out)} was not written; see what was said of the picture, or use --keep-failed to look at it.")
        raise typer.Exit(NO_ANSWER)
    outputs.write(restored)


def _again(ctx: typer.Context, picture: Path, run: dict[str, Any]) -> Preparation:
    """The restoration that a run kept by --json describes, of the picture given now."""
    from leader.restoration.repeat import arguments_of
    from leader.restoration.restore import prepare

    arguments = arguments_of(run)
    given = [
        max(item.opts, key=len)
        for item in ctx.command.params
        if item.name is not None and item.name not in _BESIDE_A_RUN and _was_given(ctx, item.name)
    ]
    if given:
        raise UsageError(
            f"The settings file is a kept run, which says everything itself; leave out {', '.join(given)} or the file."
        )
    return prepare(picture, **arguments)


def _was_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_more_names(ctx: typer.Context, picture: Path, out: Path) -> None:
    if not ctx.args:
        return
    count = 2 + len(ctx.args)
    raise UsageError(
        f"restore takes one picture IN and one name OUT; found {count} names ({picture}, {out}, {ctx.args[0]}"
        f"{', ...' if count > 3 else ''}): for many pictures call it once for each, as in "
        '`for f in *.jpg; do leader restore "$f" "restored-$f" --task sr; done`.'
    )


def _no_task(picture: Path, out: Path) -> UsageError:
    from leader.restoration.tasks import TASKS

    return UsageError(
        f"What happened to {picture} must be said with --task, one of {', '.join(TASKS)}; for example: "
        f"leader restore {picture} {out} --task sr"
    )


def _write_map(path: Path, restored: Restoration) -> None:
    """The uncertainty as a coloured map or as numbers."""
    spread = restored.uncertainty
    if spread is None:
        raise LeaderError("This run estimated no uncertainty, so there is no map; leave out --map or the estimator 'none'.")
    if path.suffix.lower() == ".npy":
        import numpy as np

        from leader.files import replacing

        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, spread, allow_pickle=False)
        return
    from leader.pictures.figures import draw_map

    draw_map(path, spread)


def write_run(path: Path, restored: Restoration) -> None:
    """Everything about a run, which --settings repeats."""
    from leader.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(_run_text(restored) + "\n", encoding="utf-8")


def _run_text(restored: Restoration) -> str:
    return json.dumps(restored.summary(), indent=2, default=str)
