// The stage: the picture large in the middle, whatever happens to it. One pane, or two of the same picture side by side.

import { fileAddress } from "./api.js";
import { Brush } from "./brush.js";
import { describeSide, sideToken } from "./compare.js";
import { $, make, show } from "./dom.js";
import { Pane } from "./pane.js";
import { baseToken, choicesOf, current, select, shownVersion, state, stepsTo, version } from "./state.js";
import { Viewport } from "./viewport.js";

const FURTHEST = 40; // grey levels from which on the map tells no more

export class Stage {
  constructor() {
    this.viewport = new Viewport(() => this.showZoom());
    const keys = "zoom with plus and minus, move with the arrow keys, 1 for full size, 0 for all of it";
    this.panes = ["Picture", "Second picture"].map((name) => new Pane(this.viewport, `${name}; ${keys}`));
    this.brush = new Brush(this.viewport, $("#brushes"), state.site.canvas);
    $("#panes").append(this.panes[0].element);
    this.viewport.panes = [this.panes[0]];
    this.painting = false; // whether the brush was asked for
    this.mapped = false;
    this.shownId = null;
    for (const pane of this.panes) {
      this.viewport.listen(pane, (event) => pane.grab(event) || (pane === this.panes[0] && this.brush.grab(event)));
      pane.element.addEventListener("pointermove", (event) => this.hover(pane, event));
      pane.element.addEventListener("pointerdown", (event) => this.hover(pane, event));
      pane.element.addEventListener("pointerleave", () => ($("#hover").textContent = ""));
    }
    this.listenToTools();
  }

  listenToTools() {
    const { viewport } = this;
    $("#zoom-in").addEventListener("click", () => viewport.press("+"));
    $("#zoom-out").addEventListener("click", () => viewport.press("-"));
    $("#zoom-one").addEventListener("click", () => viewport.zoomTo(1));
    $("#zoom-fit").addEventListener("click", () => viewport.fit());
    $("#map").addEventListener("click", () => this.toggleMap(!this.mapped));
    $("#before").addEventListener("click", () => this.holdBefore(!this.held));
    const { legend } = state.site;
    const entries = legend.map(({ colour, words }) => {
      const swatch = make("span", { class: "swatch" });
      swatch.style.background = colour;
      return make("li", {}, swatch, words);
    });
    $("#legend").append(make("li", {}, "Nine times of ten, of 255:"), ...entries);
  }

  // --- what is shown ------------------------------------------------------------------------------------------------------

  render() {
    const picture = current();
    const both = state.mode === "compare" && Boolean(picture);
    show($("#welcome"), !picture);
    for (const id of ["#panes", "#tools"]) show($(id), Boolean(picture));
    show($("#busy"), state.running !== null);
    if (!picture) return;
    const wanted = both ? this.panes : this.panes.slice(0, 1);
    if (this.viewport.panes.length !== wanted.length) {
      $("#panes").replaceChildren(...wanted.map((pane) => pane.element));
      this.viewport.panes = wanted;
      this.viewport.fit();
    }
    wanted.forEach((pane, number) => this.fill(pane, picture, both ? sideToken(state.sides[number]) : picture.shown, both, number));
    this.renderTools(picture, both);
    const painted = this.painting && !both && picture.findings && "missing" in choicesOf(picture) && !state.running;
    const onBase = (picture.shown ?? null) === (picture.base ?? null);
    this.brush.attach(this.panes[0], painted && onBase ? baseToken(picture) : null, this.viewport.size);
    this.viewport.update(); // bars that came or went have moved the edges of the panes
  }

  fill(pane, picture, token, both, number) {
    const result = version(picture, token);
    const given = { url: picture.local ?? picture.view, words: `${picture.name}, as it was given` };
    if (!given.url) return;
    if (picture.id !== this.shownId || (state.running === null && this.previewed)) {
      const fresh = picture.id !== this.shownId;
      this.shownId = picture.id;
      this.previewed = false;
      if (fresh && picture.size) this.viewport.reset(picture.size);
      else if (fresh) this.measure(pane, picture);
    }
    const size = result?.size ?? picture.size;
    if (size && String(size) !== String(this.viewport.size)) this.viewport.setSize([...size]);
    if (!(state.running === picture.id && this.previewed)) {
      const made = result && { url: fileAddress(result.token, "restored.png"), words: `${picture.name}, restored` };
      pane.setPictures(given, made, !both);
    }
    const map = result?.files.includes("cover.png") ? result.token : null;
    pane.setMap(this.mapped ? map : null);
    pane.title.textContent = both ? describeSide(picture, number) : "";
    show(pane.title, both);
  }

  // Before the server has read a picture, the browser knows how large it is, if it can show it at all.
  measure(pane, picture) {
    const image = pane.after;
    const read = () => {
      if (current() === picture && !picture.size && image.naturalWidth) this.viewport.reset([image.naturalWidth, image.naturalHeight]);
    };
    image.addEventListener("load", read, { once: true });
  }

  showPreview(url) {
    this.previewed = true;
    this.panes[0].setPreview(url);
  }

  renderTools(picture, both) {
    const shown = shownVersion(picture);
    const choice = (words, token, mark) =>
      make(
        "li",
        {},
        make(
          "button",
          {
            type: "button",
            class: `chip ${mark ?? ""}`,
            "aria-current": (picture.shown ?? null) === token ? "step" : null,
            onclick: () => select(picture.id, token),
          },
          words,
        ),
      );
    const steps = shown ? stepsTo(picture, shown.token) : [];
    const later = picture.versions.filter((one) => one.parent === (shown?.token ?? null)).slice(-1);
    const chips = [choice("Photograph", null), ...[...steps, ...later].map((one) => choice(one.title, one.token, one.verdict.level))];
    if (shown) chips.unshift(make("li", {}, make("button", { type: "button", id: "undo", onclick: () => select(picture.id, shown.parent) }, "Undo")));
    const focused = document.activeElement?.closest("#versions") && document.activeElement.textContent;
    $("#versions").replaceChildren(...(both || !picture.versions.length ? [] : chips));
    if (focused) [...document.querySelectorAll("#versions button")].find((one) => one.textContent === focused)?.focus();
    const covered = both || shown?.files.includes("cover.png");
    show($("#map"), Boolean(covered));
    show($("#before"), Boolean(shown) && !both);
    show($("#legend"), this.mapped && Boolean(covered));
  }

  showZoom() {
    const percent = Math.round(100 * this.viewport.scale());
    $("#zoom").textContent = `${percent} %`;
  }

  // --- trust --------------------------------------------------------------------------------------------------------------

  toggleMap(yes) {
    this.mapped = yes;
    $("#map").setAttribute("aria-pressed", String(yes));
    this.render();
  }

  holdBefore(yes) {
    this.held = yes;
    $("#before").setAttribute("aria-pressed", String(yes));
    this.panes[0].hold(yes);
  }

  async hover(pane, event) {
    const picture = current();
    const token = state.mode === "compare" ? sideToken(state.sides[this.panes.indexOf(pane)]) : picture?.shown;
    const result = picture && version(picture, token);
    if (!result?.files.includes("levels.png") || state.running) {
      $("#hover").textContent = "";
      return;
    }
    const box = pane.element.getBoundingClientRect();
    const level = await pane.readLevel(token, event.clientX - box.left, event.clientY - box.top).catch(() => null);
    const words = level > FURTHEST ? `may be more than ${FURTHEST} levels off` : `within ${level} levels`;
    const [tip, stage] = [$("#hover"), $("#stage").getBoundingClientRect()];
    tip.textContent = level === null ? "" : words;
    const left = Math.min(event.clientX - stage.left + 14, stage.width - tip.offsetWidth - 4);
    tip.style.transform = `translate(${left}px, ${event.clientY - stage.top + 16}px)`;
  }

  // --- painting -----------------------------------------------------------------------------------------------------------

  paint() {
    const picture = current();
    this.painting = true;
    picture.shown = picture.base;
    this.render();
    this.panes[0].element.focus();
  }
}
