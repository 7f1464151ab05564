"""Expert settings, folded away: what the quality chooses can be chosen by hand."""

from __future__ import annotations

from typing import Any

import gradio as gr

from leader.presets.paths import LOOKS
from leader.web.choices import CHOSEN, NONE, priors


def expert_settings() -> list[Any]:
    """The components, in the order that `page.wish_of` takes them."""
    from leader.methods import METHODS
    from leader.plugins import BUNDLES, PLUGINS
    from leader.uncertainty import ESTIMATORS

    with gr.Accordion("Expert settings", open=False, elem_id="expert"):
        words = {"natural": "natural: textures one would believe", "faithful": "faithful: nearest on average"}
        look = gr.Radio([(words[name], name) for name in LOOKS], value=LOOKS[0], label="Look")
        with gr.Row():
            method = gr.Dropdown([CHOSEN, *METHODS], value=CHOSEN, label="Method", min_width=140)
            plugins = gr.Dropdown([CHOSEN, NONE, *BUNDLES, *PLUGINS], value=CHOSEN, label="Plug-ins", min_width=140)
        with gr.Row():
            steps = _field("Steps", CHOSEN)
            budget = _field("Budget of SATP", "its own")
        with gr.Row():
            estimator = gr.Dropdown([CHOSEN, "auto", NONE, *ESTIMATORS], value=CHOSEN, label="Estimator", min_width=140)
            sigma = _field("Noise level, 0 to 1", "measured")
        with gr.Row():
            prior = gr.Dropdown(priors(), value="embedded", label="Prior", min_width=140)
            seed = _field("Seed", "0")
    return [look, method, plugins, steps, budget, estimator, sigma, prior, seed]


def _field(label: str, otherwise: str) -> Any:
    """A field for a number that may be left empty: Gradio's own field for numbers turns "empty" into 0 when it is shown."""
    return gr.Textbox("", label=label, placeholder=otherwise, max_lines=1, min_width=140)
