// Zoom and place of the picture, the same for every pane: wheel, drag, pinch, keys. A pane is a box with a `.frame` in it.

const MOST = 64; // screen pixels for a pixel of the picture
const STEP = 1.25;

export class Viewport {
  // `onMove` is called after every change.
  constructor(onMove) {
    this.size = [1, 1]; // of the picture that is shown, in its own pixels
    this.zoom = null; // screen pixels for a pixel of the picture; null: the whole picture fits
    this.centre = [0.5, 0.5]; // what stands in the middle of a pane, in shares of the picture
    this.panes = [];
    this.onMove = onMove;
    new ResizeObserver(() => this.update()).observe(document.querySelector("#panes"));
  }

  // A picture of another size, such as the enlarged one, takes the place of the one before on the screen.
  setSize(size) {
    if (this.zoom !== null) this.zoom *= this.size[0] / size[0];
    this.size = size;
    this.update();
  }

  reset(size) {
    [this.size, this.zoom, this.centre] = [size, null, [0.5, 0.5]];
    this.update();
  }

  box() {
    const first = this.panes[0]?.element;
    return [first?.clientWidth || 1, first?.clientHeight || 1];
  }

  fitted() {
    const [width, height] = this.box();
    return Math.min((width - 16) / this.size[0], (height - 16) / this.size[1]);
  }

  scale() {
    return this.zoom ?? this.fitted();
  }

  // Zooms so that the place at (x, y) of a pane stays where it is; the middle by default.
  zoomTo(scale, x, y) {
    const [width, height] = this.box();
    const [px, py] = [(x ?? width / 2) - width / 2, (y ?? height / 2) - height / 2];
    const before = this.scale();
    const least = Math.min(this.fitted(), 1);
    const after = Math.min(MOST, Math.max(least, scale));
    this.zoom = after;
    this.centre[0] += (px / before - px / after) / this.size[0];
    this.centre[1] += (py / before - py / after) / this.size[1];
    this.update();
  }

  zoomBy(factor, x, y) {
    this.zoomTo(this.scale() * factor, x, y);
  }

  fit() {
    this.zoom = null;
    this.centre = [0.5, 0.5];
    this.update();
  }

  panBy(dx, dy) {
    this.zoom ??= this.scale();
    this.centre[0] -= dx / (this.scale() * this.size[0]);
    this.centre[1] -= dy / (this.scale() * this.size[1]);
    this.update();
  }

  // Where a point of a pane lies in the picture, in shares of its sides.
  toPicture(x, y) {
    const [width, height] = this.box();
    const scale = this.scale();
    return [
      this.centre[0] + (x - width / 2) / (scale * this.size[0]),
      this.centre[1] + (y - height / 2) / (scale * this.size[1]),
    ];
  }

  toPane(u, v) {
    const [width, height] = this.box();
    const scale = this.scale();
    return [
      width / 2 + (u - this.centre[0]) * scale * this.size[0],
      height / 2 + (v - this.centre[1]) * scale * this.size[1],
    ];
  }

  update() {
    const scale = this.scale();
    const [width, height] = this.box();
    // no further than its edges: a picture that is larger than the pane covers it, a smaller one stands in the middle
    this.size.forEach((side, axis) => {
      const half = [width, height][axis] / (2 * scale * side);
      const free = Math.max(0, 0.5 - half);
      this.centre[axis] = Math.min(0.5 + free, Math.max(0.5 - free, this.centre[axis]));
    });
    const [left, top] = this.toPane(0, 0);
    for (const pane of this.panes) {
      const style = pane.frame.style;
      style.width = `${this.size[0] * scale}px`;
      style.height = `${this.size[1] * scale}px`;
      style.transform = `translate(${left}px, ${top}px)`;
      pane.frame.classList.toggle("pixels", scale >= 3);
      pane.place();
    }
    this.onMove();
  }

  // --- gestures ---------------------------------------------------------------------------------------------------------

  // `grab(event)`: whether somebody else (the brush, the slider) takes a touch that begins here.
  listen(pane, grab) {
    const element = pane.element;
    const fingers = new Map();
    let pinch = null;
    let grabbed = false; // by somebody else, until a second finger comes
    const place = (event) => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    element.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), ...place(event));
      },
      { passive: false },
    );
    element.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      fingers.set(event.pointerId, place(event));
      grabbed = fingers.size === 1 && event.button === 0 && grab(event);
      if (grabbed) return;
      element.setPointerCapture(event.pointerId);
      pinch = null;
    });
    element.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = place(event);
      fingers.set(event.pointerId, now);
      if (grabbed) return;
      if (fingers.size === 1) {
        this.panBy(now[0] - before[0], now[1] - before[1]);
        return;
      }
      const [[ax, ay], [bx, by]] = [...fingers.values()];
      const next = { apart: Math.hypot(ax - bx, ay - by), x: (ax + bx) / 2, y: (ay + by) / 2 };
      if (pinch && pinch.apart > 0) {
        this.panBy(next.x - pinch.x, next.y - pinch.y);
        this.zoomBy(next.apart / pinch.apart, next.x, next.y);
      }
      pinch = next;
    });
    const lift = (event) => {
      fingers.delete(event.pointerId);
      grabbed = false;
      pinch = null;
    };
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) element.addEventListener(name, lift);
    element.addEventListener("dblclick", (event) => {
      if (this.zoom === null) this.zoomTo(Math.max(1, 2 * this.fitted()), ...place(event));
      else this.fit();
    });
  }

  // Whether a key moved the picture.
  press(key) {
    const stride = 60;
    const moves = {
      "+": () => this.zoomBy(STEP),
      "=": () => this.zoomBy(STEP),
      "-": () => this.zoomBy(1 / STEP),
      0: () => this.fit(),
      1: () => this.zoomTo(1),
      ArrowLeft: () => this.panBy(stride, 0),
      ArrowRight: () => this.panBy(-stride, 0),
      ArrowUp: () => this.panBy(0, stride),
      ArrowDown: () => this.panBy(0, -stride),
    };
    moves[key]?.();
    return key in moves;
  }
}
