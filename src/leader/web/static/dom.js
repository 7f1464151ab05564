// Small helpers for building the page; nothing here knows of pictures.

export const $ = (selector, from = document) => from.querySelector(selector);

// make("a", {class: "x", onclick: f}, "text", child): an element. Text is never read as HTML.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const show = (element, yes) => {
  element.hidden = !yes;
};

// A sentence that somebody has to see; it stays until the next thing happens.
export function tell(text, calm = false) {
  const place = $("#told");
  place.textContent = text;
  place.classList.toggle("calm", calm);
  show(place, Boolean(text));
}

// 4 s, 2 min, 1.5 h: as people say it.
export function formatDuration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export const loaded = (image) =>
  new Promise((resolve, reject) => {
    image.addEventListener("load", () => resolve(image), { once: true });
    image.addEventListener("error", () => reject(new Error("This picture cannot be shown.")), { once: true });
  });

export function download(url, name) {
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}
