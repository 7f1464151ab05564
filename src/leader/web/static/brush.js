// The brush: what is missing is painted over the picture, at any zoom. Strokes are kept as strokes, so that every one of them
// can be undone; the mask is drawn from them, in the picture's own pixels up to the size that the server takes.

import { findDamage } from "./api.js";
import { loaded, make, show, tell } from "./dom.js";

const COLOUR = "rgb(220, 38, 38)";
const TOOLS = { brush: "Brush", eraser: "Eraser", lasso: "Lasso", hand: "Move" };

export class Brush {
  constructor(viewport, bar, most) {
    Object.assign(this, { viewport, bar, most });
    this.sheets = new Map(); // token -> { strokes, undone, width, height }
    this.token = null;
    this.tool = "brush";
    this.width = 24; // in pixels of the screen
    this.canvas = make("canvas", { class: "mask", hidden: true });
    this.ring = make("span", { class: "ring", hidden: true });
    this.cursor = [0.5, 0.5]; // of the keyboard, in shares of the picture
    this.build();
  }

  build() {
    const button = (words, title, act) => make("button", { type: "button", title, onclick: act }, words);
    this.buttons = Object.fromEntries(
      Object.entries(TOOLS).map(([name, words]) => [name, button(words, `${words} tool`, () => this.setTool(name))]),
    );
    this.undoButton = button("Undo", "Undo the last stroke (Ctrl+Z)", () => this.undo());
    this.redoButton = button("Redo", "Do it again (Ctrl+Shift+Z)", () => this.redo());
    const size = make("input", {
      type: "range",
      id: "brush-size",
      min: "2",
      max: "120",
      value: String(this.width),
      oninput: (event) => (this.width = Number(event.target.value)),
    });
    this.bar.append(
      ...Object.values(this.buttons),
      make("label", { for: "brush-size" }, "Size ", size),
      this.undoButton,
      this.redoButton,
      button("Invert", "What is painted and what is not change places", () => this.add({ tool: "invert" })),
      button("Clear", "Remove everything painted", () => this.add({ tool: "clear" })),
      button("Find scratches and tears", "A proposal that you can correct", () => this.propose()),
    );
    this.setTool("brush");
  }

  setTool(tool) {
    this.tool = tool;
    for (const [name, button] of Object.entries(this.buttons)) button.setAttribute("aria-pressed", String(name === tool));
    this.canvas.parentElement?.parentElement?.classList.toggle("painting", this.active && tool !== "hand");
  }

  // Lies over a pane, ready to paint on the picture with this token; null: it is put away.
  attach(pane, token, size) {
    this.active = token !== null;
    show(this.bar, this.active);
    show(this.canvas, this.active);
    show(this.ring, false);
    pane.element.classList.toggle("painting", this.active && this.tool !== "hand");
    if (!this.active) return;
    if (this.canvas.parentElement !== pane.frame) {
      pane.frame.append(this.canvas);
      pane.element.append(this.ring);
      pane.element.addEventListener("pointermove", (event) => this.followPointer(pane, event));
      pane.element.addEventListener("pointerleave", () => show(this.ring, false));
    }
    this.pane = pane;
    if (this.token !== token) {
      this.token = token;
      const scale = Math.min(1, this.most / Math.max(...size));
      const [width, height] = size.map((side) => Math.max(1, Math.round(side * scale)));
      if (!this.sheets.has(token)) this.sheets.set(token, { strokes: [], undone: [], width, height });
      this.redraw();
    }
  }

  get sheet() {
    return this.sheets.get(this.token);
  }

  // --- strokes ----------------------------------------------------------------------------------------------------------

  add(stroke) {
    this.sheet.strokes.push(stroke);
    this.sheet.undone = [];
    this.redraw();
  }

  undo() {
    const stroke = this.sheet?.strokes.pop();
    if (stroke) this.sheet.undone.push(stroke);
    this.redraw();
  }

  redo() {
    const stroke = this.sheet?.undone.pop();
    if (stroke) this.sheet.strokes.push(stroke);
    this.redraw();
  }

  redraw() {
    const { strokes, undone, width, height } = this.sheet;
    Object.assign(this.canvas, { width, height }); // which clears it, too
    const pen = this.canvas.getContext("2d");
    for (const stroke of strokes) draw(pen, stroke);
    this.undoButton.disabled = !strokes.length;
    this.redoButton.disabled = !undone.length;
  }

  // The mask of a picture as the server takes it; empty where nothing is painted.
  read(token) {
    const sheet = this.sheets.get(token);
    if (!sheet?.strokes.length) return "";
    const canvas = make("canvas", { width: sheet.width, height: sheet.height });
    const pen = canvas.getContext("2d");
    for (const stroke of sheet.strokes) draw(pen, stroke);
    return pen.getImageData(0, 0, sheet.width, sheet.height).data.some((value) => value > 0) ? canvas.toDataURL("image/png") : "";
  }

  async propose() {
    tell("");
    try {
      const blob = await findDamage(this.token);
      const image = make("img", { src: URL.createObjectURL(blob) });
      await loaded(image);
      this.add({ tool: "image", image });
    } catch (error) {
      tell(error.message, true);
    }
  }

  // --- mouse, pen, finger -----------------------------------------------------------------------------------------------

  toCanvas([u, v]) {
    return [u * this.canvas.width, v * this.canvas.height];
  }

  widthOnCanvas() {
    return (this.width * this.canvas.width) / (this.viewport.scale() * this.viewport.size[0]);
  }

  // Takes a touch that begins on the picture; whether it did. A second finger turns it into a pinch.
  grab(event) {
    if (!this.active || this.tool === "hand" || event.target.closest(".slider")) return false;
    const element = this.pane.element;
    const box = element.getBoundingClientRect();
    const place = (now) => this.toCanvas(this.viewport.toPicture(now.clientX - box.left, now.clientY - box.top));
    const stroke = { tool: this.tool, width: this.widthOnCanvas(), points: [place(event)] };
    const end = new AbortController();
    const finish = (keep) => {
      end.abort();
      if (keep) this.add(stroke);
      else this.redraw();
    };
    const options = { signal: end.signal };
    element.setPointerCapture(event.pointerId);
    element.addEventListener(
      "pointermove",
      (now) => {
        if (now.pointerId !== event.pointerId) return;
        stroke.points.push(...(now.getCoalescedEvents?.() ?? [now]).map(place));
        this.redraw();
        draw(this.canvas.getContext("2d"), stroke);
      },
      options,
    );
    element.addEventListener("pointerdown", () => finish(false), { ...options, capture: true });
    element.addEventListener("pointerup", () => finish(true), options);
    element.addEventListener("pointercancel", () => finish(false), options);
    draw(this.canvas.getContext("2d"), stroke);
    return true;
  }

  followPointer(pane, event) {
    const box = pane.element.getBoundingClientRect();
    this.moveRing(event.clientX - box.left, event.clientY - box.top, event.pointerType !== "touch");
  }

  moveRing(x, y, visible) {
    show(this.ring, visible && this.active && ["brush", "eraser"].includes(this.tool));
    Object.assign(this.ring.style, { left: `${x}px`, top: `${y}px`, width: `${this.width}px`, height: `${this.width}px` });
  }

  // --- keyboard ---------------------------------------------------------------------------------------------------------

  // Arrow keys move, Space paints; whether the key was one of ours.
  press(event) {
    if (!this.active || this.tool === "hand" || this.tool === "lasso") return false;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === " ") {
      this.add({ tool: this.tool, width: this.widthOnCanvas(), points: [this.toCanvas(this.cursor)] });
    } else if (event.key in moves) {
      const step = (event.shiftKey ? 2 : 0.4) * this.width;
      const [dx, dy] = moves[event.key];
      const [x, y] = this.viewport.toPane(...this.cursor);
      this.cursor = this.viewport.toPicture(x + step * dx, y + step * dy).map((part) => Math.min(1, Math.max(0, part)));
    } else {
      return false;
    }
    this.moveRing(...this.viewport.toPane(...this.cursor), true);
    return true;
  }
}

function draw(pen, { tool, width, points, image }) {
  const { canvas } = pen;
  pen.save();
  pen.fillStyle = pen.strokeStyle = COLOUR;
  if (tool === "clear") pen.clearRect(0, 0, canvas.width, canvas.height);
  if (tool === "image") pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  if (tool === "invert") {
    pen.globalCompositeOperation = "xor"; // opaque where it was not, and the other way round
    pen.fillRect(0, 0, canvas.width, canvas.height);
  }
  if (points) {
    if (tool === "eraser") pen.globalCompositeOperation = "destination-out";
    Object.assign(pen, { lineWidth: width, lineCap: "round", lineJoin: "round" });
    pen.beginPath();
    pen.moveTo(...points[0]);
    for (const point of points) pen.lineTo(point[0] + 0.01, point[1]);
    if (tool === "lasso") pen.fill();
    else pen.stroke();
  }
  pen.restore();
}
