// A pane: the restored picture, the photograph as it was given over it up to the slider, and the trust map over both.

import { fileAddress } from "./api.js";
import { loaded, make } from "./dom.js";

export class Pane {
  constructor(viewport, label) {
    this.viewport = viewport;
    this.share = 0.5; // of the pane, left of the slider: the photograph as it was given
    this.levels = null; // { token, data, width, height } of the trust map
    this.after = make("img", { class: "after", alt: "", draggable: false });
    this.before = make("img", { class: "before", alt: "", draggable: false });
    this.map = make("img", { class: "map", alt: "", draggable: false, hidden: true });
    this.frame = make("div", { class: "frame" }, this.after, this.before, this.map);
    this.slider = make("div", {
      class: "slider",
      role: "slider",
      tabindex: "0",
      "aria-label": "Before and after",
      "aria-valuemin": "0",
      "aria-valuemax": "100",
      onkeydown: (event) => this.pressSlider(event),
    });
    this.tags = [make("span", { class: "tag left" }, "Before"), make("span", { class: "tag right" }, "After")];
    this.title = make("p", { class: "pane-title", hidden: true });
    this.element = make(
      "div",
      { class: "pane", tabindex: "0", role: "group", "aria-label": label },
      this.frame,
      this.slider,
      ...this.tags,
      this.title,
    );
  }

  // given, result: {url, words}; result null: the photograph alone. Pictures that are there already are not loaded again.
  setPictures(given, result, slide) {
    setSource(this.after, result ?? given);
    setSource(this.before, result && slide ? given : null);
    this.slides = Boolean(result) && slide;
    for (const part of [this.slider, ...this.tags]) part.hidden = !this.slides;
    this.place();
  }

  // The estimate while a run goes on, in the place of the result.
  setPreview(url) {
    setSource(this.after, { url, words: "The picture as far as it is restored" });
    this.before.hidden = true;
    for (const part of [this.slider, ...this.tags]) part.hidden = true;
  }

  setMap(token) {
    setSource(this.map, token && { url: fileAddress(token, "cover.png"), words: "Trust map over the picture" });
  }

  // "before" held: the whole pane shows the photograph.
  hold(before) {
    this.held = before;
    this.place();
  }

  place() {
    const share = this.held ? 1 : this.share;
    const width = this.element.clientWidth;
    const [left] = this.viewport.toPane(0, 0);
    const frame = this.viewport.scale() * this.viewport.size[0];
    const cut = Math.min(1, Math.max(0, (share * width - left) / frame));
    this.before.style.clipPath = `inset(0 ${100 * (1 - cut)}% 0 0)`;
    this.slider.style.left = `${100 * share}%`;
    this.slider.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    this.slider.setAttribute("aria-valuetext", `${Math.round(100 * share)} % before`);
  }

  slideTo(share) {
    this.share = Math.min(1, Math.max(0, share));
    this.place();
  }

  pressSlider(event) {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.1, PageUp: 0.1 }[event.key];
    const end = { Home: 0, End: 1 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.slideTo(end ?? this.share + step);
  }

  // Takes a touch that begins on the slider; whether it did.
  grab(event) {
    if (!this.slides || !event.target.closest(".slider")) return false;
    const move = (now) => {
      const box = this.element.getBoundingClientRect();
      this.slideTo((now.clientX - box.left) / box.width);
    };
    this.slider.setPointerCapture(event.pointerId);
    this.slider.addEventListener("pointermove", move);
    this.slider.addEventListener("lostpointercapture", () => this.slider.removeEventListener("pointermove", move), { once: true });
    return true;
  }

  // How far the truth may be from the result at a place of the pane, in grey levels of 255; null where nobody knows.
  async readLevel(token, x, y) {
    if (this.levels?.token !== token) {
      this.levels = { token, data: null };
      const image = make("img", { src: fileAddress(token, "levels.png") });
      const held = this.levels;
      await loaded(image).then(() => {
        const canvas = make("canvas", { width: image.naturalWidth, height: image.naturalHeight });
        const pen = canvas.getContext("2d", { willReadFrequently: true });
        pen.drawImage(image, 0, 0);
        Object.assign(held, { pen, width: canvas.width, height: canvas.height });
      });
    }
    const { pen, width, height } = this.levels;
    const [u, v] = this.viewport.toPicture(x, y);
    if (!pen || u < 0 || v < 0 || u >= 1 || v >= 1) return null;
    return pen.getImageData(Math.floor(u * width), Math.floor(v * height), 1, 1).data[0];
  }
}

function setSource(image, source) {
  image.hidden = !source;
  if (!source) return;
  image.alt = source.words;
  if (image.getAttribute("src") !== source.url) image.src = source.url;
}
