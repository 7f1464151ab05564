"""The page itself: what stands where, and what happens on each click. Gradio draws it and carries the events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib import resources
from typing import Any

import anyio
import gradio as gr

from leader import defaults
from leader.errors import LeaderError
from leader.presets.paths import QUALITIES
from leader.progress import format_duration
from leader.restoration.request import NONE, RestoreRequest
from leader.web import views, work
from leader.web.choices import FACTORS, KINDS, WIDEST_BLUR, Wish, found_blur, parse_choice
from leader.web.expert import make_expert_settings, make_menu
from leader.web.gate import client_of
from leader.web.jobs import Job
from leader.web.site import Site

TITLE = "leader: restore a picture"
QUALITY_WORDS = {"draft": "Draft", "standard": "Standard", "best": "Best"}
PAUSE = 0.2
"""Seconds between two looks at a job."""
NO_PICTURE = "Drop a picture in first, or try a sample."
NO_CLIENT = "This browser keeps no cookie of the page; allow cookies and load the page again."


def static(name: str) -> str:
    return (resources.files("leader.web") / "static" / name).read_text(encoding="utf-8")


def theme() -> Any:
    """Fonts of the machine itself, and colours with enough contrast in the light and in the dark."""
    return gr.themes.Default(
        primary_hue="indigo", neutral_hue="slate", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
    ).set(
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_text_color="white",
        button_primary_text_color_dark="white",
        button_transition="none",  # a change of state is seen at once: half-way it would be too faint to read
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        block_label_text_color="*neutral_700",
        block_label_text_color_dark="*neutral_200",
    )


def build(site: Site) -> Any:
    """The page of a site."""
    with gr.Blocks(title=TITLE, analytics_enabled=False) as page:
        gr.HTML('<h1>leader</h1><p class="lead">Gives a bad photograph back its detail, and says how far to trust it.</p>')
        token = gr.Textbox(label="picture", elem_id="token", elem_classes="unseen")
        painted = gr.Textbox(label="painted", elem_id="painted", elem_classes="unseen", max_lines=1)
        with gr.Tabs():
            with gr.Tab("Restore"), gr.Row(equal_height=False):
                with gr.Column(scale=5, min_width=320):
                    gr.HTML(views.drop_zone(site.limits.upload_bytes / 2**20), elem_id="in", js_on_load=None)
                    seen = gr.HTML("", elem_id="seen", js_on_load=None)
                    form = _Form()
                with gr.Column(scale=7, min_width=320):
                    out = gr.HTML(_rest(), elem_id="out", js_on_load=None)
            with gr.Tab("Compare"):
                sides, compare, halt, both = _compare_tab()
        wish = [*form.inputs, *form.expert]
        _events(site, token, painted, seen, form, out)
        _compare_events(site, form, [token, painted, *wish], sides, compare, halt, both)
    return page


def _rest() -> str:
    return '<p class="rest">The picture will come back here.</p>'


class _Form:
    """What a visitor can choose."""

    def __init__(self) -> None:
        kinds = [(words, kind) for kind, (words, _) in KINDS.items()]
        self.kind = gr.Radio(kinds, value="small", label="What is wrong with it?", elem_id="kind")
        self.factor = gr.Radio([(f"{n} times", n) for n in FACTORS], value=4, label="How much larger?", elem_id="factor")
        self.blur = gr.Slider(
            0,
            WIDEST_BLUR,
            2,
            step=0.1,
            label="How wide is the blur, in pixels? (0: as found)",
            visible="hidden",
            elem_id="blur",
        )
        self.canvas = gr.HTML("", elem_id="canvas", js_on_load=None)
        words = [(QUALITY_WORDS[name], name) for name in QUALITIES]
        self.quality = gr.Radio(words, value=defaults.QUALITY, label="How good, and how long?", elem_id="quality")
        with gr.Row():
            self.start = gr.Button("Restore", variant="primary", elem_id="start")
            self.cancel = gr.Button("Cancel", interactive=False, elem_id="cancel")
        self.inputs = [self.kind, self.factor, self.blur, self.quality]
        self.names, self.expert = make_expert_settings()


def _compare_tab() -> tuple[list[Any], Any, Any, Any]:
    gr.HTML('<p class="lead">Two ways for the picture of the other tab, with the same seed, beside each other.</p>')
    sides = []
    with gr.Row():
        for side, quality in (("A", "draft"), ("B", "standard")):
            with gr.Column(min_width=280), gr.Group():
                words = [(QUALITY_WORDS[name], name) for name in QUALITIES]
                sides.append(gr.Radio(words, value=quality, label=f"{side}: quality", elem_id=f"quality-{side}"))
                sides.append(make_menu("method", label=f"{side}: method", elem_id=f"method-{side}"))
                sides.append(make_menu("plugins", label=f"{side}: plug-ins", elem_id=f"plugins-{side}"))
    with gr.Row():
        compare = gr.Button("Compare", variant="primary", elem_id="compare")
        halt = gr.Button("Cancel", interactive=False, elem_id="halt")
    return sides, compare, halt, gr.HTML("", elem_id="both", js_on_load=None)


def make_wish(names: Sequence[str], painted: Any, kind: Any, factor: Any, blur: Any, quality: Any, *expert: Any) -> Wish:
    """A wish from the values of the form, in its order; `names` are the choices that the expert settings make."""
    chosen = {name: parse_choice(name, value) for name, value in zip(names, expert, strict=True)}
    given = {name: value for name, value in chosen.items() if value is not None}
    return Wish(
        kind=str(kind),
        factor=parse_choice("factor", factor) or 4,
        blur=float(blur) if blur else None,
        painted=str(painted or ""),
        request=RestoreRequest(quality=str(quality), **given),
    )


def _form_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the form that a diagnosis stands for."""
    values = {"factor": options.get("factor"), "blur": found_blur(options)}
    return {name: value for name, value in values.items() if value is not None and (name != "factor" or value in FACTORS)}


def _client(request: gr.Request) -> str:
    client = client_of(request.cookies)
    if client is None:
        raise LeaderError(NO_CLIENT)
    return client


def _events(site: Site, token: Any, painted: Any, seen: Any, form: _Form, out: Any) -> None:
    """What happens on the tab Restore."""

    def show_picture(request: gr.Request, found: str) -> tuple[Any, ...]:
        try:
            entry = site.store.find(found, _client(request))
        except LeaderError as error:
            return views.sentence(str(error)), gr.skip(), gr.skip(), gr.skip(), gr.skip(), ""
        size, proposal, sample = entry.about["size"], entry.about["proposal"], entry.about.get("sample")
        kind = sample.kind if sample is not None else proposal.kind
        values = _form_values(proposal.options) if sample is None else sample.wish
        return (
            views.given_picture(entry.token, size) + views.findings(proposal.words, size),
            gr.skip() if kind is None else gr.update(value=kind),
            gr.update(value=values["factor"]) if "factor" in values else gr.skip(),
            gr.update(value=values["blur"]) if "blur" in values else gr.skip(),
            _rest(),
            "",
        )

    def parameters(request: gr.Request, kind: str, found: str) -> tuple[Any, ...]:
        shown = ""
        if kind == "missing" and found:
            try:
                entry = site.store.find(found, _client(request))
                shown = views.canvas(entry.token, entry.about["size"], entry.about["proposal"].filled)
            except LeaderError as error:
                shown = views.sentence(str(error))
        hidden = {True: True, False: "hidden"}
        return gr.update(visible=hidden[kind == "small"]), gr.update(visible=hidden[kind == "blurred"]), shown

    async def seconds(request: gr.Request, found: str, *values: Any) -> Any:
        words = dict(QUALITY_WORDS)
        try:
            entry = site.store.find(found, _client(request))
            asked = entry.about["asked"] = entry.about.get("asked", 0) + 1
            wish = make_wish(form.names, "", *values)
            took = await anyio.to_thread.run_sync(
                lambda: work.seconds_by_quality(entry, wish, site.limits, site.pace), abandon_on_cancel=True
            )
            words = {name: f"{QUALITY_WORDS[name]}: about {format_duration(took[name])}" for name in QUALITIES}
            if asked != entry.about["asked"]:
                return gr.skip()  # the visitor chose anew meanwhile: that answer counts, whichever comes last
        except LeaderError:
            words = dict(QUALITY_WORDS)  # what is wrong is told when the work is asked for
        return gr.update(choices=[(words[name], name) for name in QUALITIES])

    async def run(request: gr.Request, found: str, brush: str, *values: Any) -> AsyncIterator[tuple[Any, ...]]:
        try:
            client = _client(request)
            if not found:
                raise LeaderError(NO_PICTURE)
            entry, wish = site.store.find(found, client), make_wish(form.names, brush, *values)
            job = site.desk.submit(client, lambda one: work.restore(one, entry, wish, site.limits, site.pace, site.store))
        except LeaderError as error:
            yield views.sentence(str(error)), _enable(True), _enable(False)
            return
        async for text in follow(site, job):
            yield text, _enable(False), _enable(True)
        yield final_text(job, views.result_text), _enable(True), _enable(False)

    def stop(request: gr.Request) -> None:
        client = client_of(request.cookies)
        if client is not None:
            site.desk.stop(client)

    everything = [*form.inputs, *form.expert]
    quick: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    unnamed = {**quick, "api_name": False}
    estimate = {"fn": seconds, "inputs": [token, *everything], "outputs": form.quality, **unnamed}
    # one after the other, so that the answer to the last choice comes last
    shown = {"fn": parameters, "inputs": [form.kind, token], "outputs": [form.factor, form.blur, form.canvas], **unnamed}
    shown["concurrency_limit"] = 1
    came = token.change(show_picture, token, [seen, form.kind, form.factor, form.blur, out, painted], **unnamed)
    came.then(**shown).then(**estimate)
    form.kind.input(**shown).then(**estimate)
    form.factor.input(**estimate)
    outputs = [out, form.start, form.cancel]
    form.start.click(run, [token, painted, *everything], outputs, api_name="restore", **quick)
    form.cancel.click(stop, None, None, queue=False, api_name="cancel", show_progress="hidden")


def _compare_events(site: Site, form: _Form, inputs: list[Any], sides: list[Any], compare: Any, halt: Any, both: Any) -> None:
    """What happens on the tab Compare."""

    async def run(request: gr.Request, found: str, brush: str, *values: Any) -> AsyncIterator[tuple[Any, ...]]:
        own, chosen = values[: -len(sides)], values[-len(sides) :]
        try:
            client = _client(request)
            if not found:
                raise LeaderError(NO_PICTURE)
            entry, wish = site.store.find(found, client), make_wish(form.names, brush, *own)
            pair = [_side(wish, *chosen[start : start + 3]) for start in (0, 3)]

            def work_both(job: Job) -> list[tuple[str, work.Outcome]]:
                return [
                    (title, work.restore(job, entry, one, site.limits, site.pace, site.store, f"{number} of 2: "))
                    for number, (title, one) in enumerate(pair, 1)
                ]

            job = site.desk.submit(client, work_both)
        except LeaderError as error:
            yield views.sentence(str(error)), _enable(True), _enable(False)
            return
        async for text in follow(site, job):
            yield text, _enable(False), _enable(True)
        yield final_text(job, lambda found: views.comparison(*found)), _enable(True), _enable(False)

    def stop(request: gr.Request) -> None:
        client = client_of(request.cookies)
        if client is not None:
            site.desk.stop(client)

    compare.click(
        run,
        [*inputs, *sides],
        [both, compare, halt],
        api_name=False,
        show_progress="hidden",
        concurrency_limit=None,
    )
    halt.click(stop, None, None, queue=False, api_name=False, show_progress="hidden")


def _side(wish: Wish, quality: Any, method: Any, plugins: Any) -> tuple[str, Wish]:
    """(title, wish) of one side of a comparison."""
    host, own = parse_choice("method", method), parse_choice("plugins", plugins)
    words = [QUALITY_WORDS[str(quality)] if host is None else str(host)]
    if own is not None:
        words.append(f"with {own}" if own != NONE else "without plug-ins")
    return " ".join(words), wish.change(quality=str(quality), method=host, plugins=own, budget=None)


async def follow(site: Site, job: Job) -> AsyncIterator[str]:
    """What to show of a job, whenever that changes; a visitor who leaves stops it."""
    last = ""
    try:
        while not job.over:
            text = views.waiting_line(site.desk.ahead(job)) if job.state == "waiting" else views.progress_bar(job)
            if text != last:
                last = text
                yield text
            await asyncio.sleep(PAUSE)
    finally:
        if not job.over:
            site.desk.stop(job.client)


def final_text(job: Job, shown: Any) -> str:
    """What to show of a job that is over."""
    if job.state == "done":
        return str(shown(job.result))
    if job.state == "stopped":
        return views.sentence("Stopped. Nothing was kept.", "calm")
    return views.sentence(job.error)


def _enable(yes: bool) -> Any:
    return gr.update(interactive=yes)
