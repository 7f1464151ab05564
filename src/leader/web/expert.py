"""Expert settings, folded away: what the quality chooses can be chosen by hand."""

from __future__ import annotations

from typing import Any

import gradio as gr

from leader.presets.paths import LOOKS
from leader.restoration.request import RestoreRequest, word_of
from leader.web.choices import CHOSEN, list_priors

EXPERT = {
    "method": "Method",
    "plugins": "Plug-ins",
    "steps": "Steps",
    "budget": "Budget of SATP",
    "estimator": "Estimator",
    "sigma": "Noise level, 0 to 1",
    "prior": "Prior",
    "seed": "Seed",
}
"""Choices of a request that the page offers, and their labels; a new one is one line here."""
_LEFT_OPEN = {"steps": CHOSEN, "budget": "its own", "sigma": "measured", "seed": "0"}
_LOOKS = {"natural": "natural: textures one would believe", "faithful": "faithful: nearest on average"}


def make_expert_settings() -> tuple[list[str], list[Any]]:
    """(names of choices, their components)."""
    with gr.Accordion("Expert settings", open=False, elem_id="expert"):
        look = gr.Radio([(_LOOKS[name], name) for name in LOOKS], value=LOOKS[0], label="Look")
        components = [look]
        names = list(EXPERT)
        for pair in zip(names[::2], names[1::2]):
            with gr.Row():
                components += [_make_component(name) for name in pair]
    return ["look", *names], components


def make_menu(name: str, **about: Any) -> Any:
    """A menu of the values that are known for a choice."""
    listed = word_of(RestoreRequest, name).names
    assert listed is not None
    return gr.Dropdown([CHOSEN, *listed()], value=CHOSEN, **about)


def _make_component(name: str) -> Any:
    if name == "prior":
        return gr.Dropdown(list_priors(), value="embedded", label=EXPERT[name], min_width=140)
    if word_of(RestoreRequest, name).names is not None:
        return make_menu(name, label=EXPERT[name], min_width=140)
    # a field that may be left empty: Gradio's own field for numbers turns "empty" into 0 when it is shown
    return gr.Textbox("", label=EXPERT[name], placeholder=_LEFT_OPEN.get(name, CHOSEN), max_lines=1, min_width=140)
