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
            steps = gr.Number(None, label="Steps (empty: chosen)", precision=0, minimum=1, maximum=1000, min_width=140)
            budget = gr.Number(None, label="Budget of SATP (empty: its own)", minimum=0, maximum=1, step=0.01, min_width=140)
        with gr.Row():
            estimator = gr.Dropdown([CHOSEN, "auto", NONE, *ESTIMATORS], value=CHOSEN, label="Estimator", min_width=140)
            sigma = gr.Number(None, label="Noise level (empty: measured)", minimum=0, maximum=1, step=0.01, min_width=140)
        with gr.Row():
            prior = gr.Dropdown(priors(), value="embedded", label="Prior", min_width=140)
            seed = gr.Number(0, label="Seed", precision=0, minimum=0, min_width=140)
    return [look, method, plugins, steps, budget, estimator, sigma, prior, seed]
