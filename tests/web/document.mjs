// As much of a browser's document as the page's scripts use: elements, events, canvases that keep what is drawn on them.

const round = (value) => (typeof value === "number" ? Math.round(1e6 * value) / 1e6 : "image");

class Element {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], listeners: [], dataset: {}, parentElement: null });
    Object.assign(this, { hidden: false, checked: false, disabled: false, selected: false, draggable: true, width: 0, height: 0 });
    Object.assign(this, { clientWidth: 416, clientHeight: 216, offsetWidth: 50, naturalWidth: 4, naturalHeight: 2, files: [] });
    this.style = {};
    const classes = new Set();
    this.classList = { contains: (name) => classes.has(name), toggle: (name, yes) => void (yes ? classes.add(name) : classes.delete(name)) };
    this.classes = classes;
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
    if (name === "class") for (const one of value.split(" ")) this.classes.add(one);
    if (name in { hidden: 1, disabled: 1 }) this[name] = true;
  }

  getAttribute = (name) => this.attributes[name] ?? null;
  removeAttribute = (name) => delete this.attributes[name];

  get src() { return this.attributes.src; }
  set src(url) { this.attributes.src = url; }

  get value() {
    if (this.tag === "select") return this.typed ?? (this.children.find((one) => one.selected) ?? this.children[0])?.value;
    return this.typed ?? this.attributes.value ?? "";
  }
  set value(text) { this.typed = String(text); }

  get textContent() { return this.children.map((one) => one.textContent ?? one).join(""); }
  set textContent(text) { this.children = [String(text)]; }

  append(...items) {
    for (const item of items) {
      if (item instanceof Element) item.parentElement = this;
      this.children.push(item);
    }
  }
  replaceChildren(...items) {
    this.children = [];
    this.append(...items);
  }
  remove() { this.parentElement.children = this.parentElement.children.filter((one) => one !== this); }

  matches(selector) {
    return selector.split(",").some((one) => {
      const [, tag, id, name] = one.trim().match(/^(\w*)(?:#([\w-]+))?(?:\.([\w-]+))?$/);
      return (!tag || tag === this.tag) && (!id || id === this.attributes.id) && (!name || this.classes.has(name));
    });
  }
  closest(selector) { return this.matches(selector) ? this : this.parentElement?.closest(selector) ?? null; }
  querySelectorAll(selector) {
    const [first, ...rest] = selector.split(" ");
    const inside = this.children.filter((one) => one instanceof Element);
    const found = inside.flatMap((one) => [...(one.matches(first) ? [one] : []), ...one.querySelectorAll(first)]);
    return rest.length ? found.flatMap((one) => one.querySelectorAll(rest.join(" "))) : found;
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }

  addEventListener(kind, act, options = {}) {
    const one = { kind, act, once: options.once };
    this.listeners.push(one);
    options.signal?.addEventListener("abort", () => this.drop(one));
    if (kind === "load" && this.src) queueMicrotask(() => this.fire("load"));
  }
  removeEventListener(kind, act) { this.listeners = this.listeners.filter((one) => one.kind !== kind || one.act !== act); }
  drop(one) { this.listeners = this.listeners.filter((other) => other !== one); }

  // An event at this element, which goes up to the document.
  fire(kind, about = {}) {
    const event = { target: this, preventDefault() { this.prevented = true; }, stopPropagation() { this.ended = true; }, button: 0, pointerId: 1, ...about };
    for (let place = this; place && !event.ended; place = place.parentElement) {
      for (const one of place.listeners.filter((other) => other.kind === kind)) {
        if (one.once) place.drop(one);
        one.act(event);
      }
    }
    return event;
  }
  click() { if (!this.disabled) this.fire("click"); }
  focus() { document.activeElement = this; }
  setPointerCapture() {}
  getBoundingClientRect() { return { left: 100, top: 50, width: this.clientWidth, height: this.clientHeight }; }

  getContext() {
    const canvas = this;
    canvas.drawn = [];
    const note = (name) => (...words) => canvas.drawn.push([name, pen.globalCompositeOperation ?? "", pen.lineWidth, ...words.map(round)]);
    const pen = { canvas, save() {}, restore: () => delete pen.globalCompositeOperation, beginPath() {} };
    for (const name of ["clearRect", "drawImage", "fillRect", "moveTo", "lineTo", "fill", "stroke"]) pen[name] = note(name);
    pen.getImageData = (x, y) => ({ data: canvas.drawn.length && canvas.drawn.at(-1)[0] !== "clearRect" ? [39 * y + x + 1, 0, 0, 255] : [0] });
    return pen;
  }
  toDataURL() { return `data:image/png;base64,${JSON.stringify([this.width, this.height, ...this.drawn])}`; }
}

// The document of a page: an element for every id of its HTML.
export function openDocument(html) {
  const document = new Element("document");
  document.body = new Element("body");
  document.append(document.body);
  document.createElement = (tag) => new Element(tag);
  for (const [, tag, rest] of html.matchAll(/<(\w+)([^>]*\bid="[^>]*)>/g)) {
    const one = new Element(tag);
    for (const [, name, value] of rest.matchAll(/([\w-]+)(?:="([^"]*)")?/g)) one.setAttribute(name, value ?? "");
    document.body.append(one);
  }
  return document;
}
