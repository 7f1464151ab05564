// The rail: the queue of pictures, each with its state, and the history of results to come back to.

import { fileAddress, readExport } from "./api.js";
import { $, download, make, show, tell } from "./dom.js";
import { nameResult } from "./results.js";
import { select, state } from "./state.js";
import { makeZip } from "./zip.js";

const STATES = { waiting: "waiting", loading: "arriving", ready: "ready", running: "at work", done: "done", failed: "refused" };

let drawn = null;

export function renderRail() {
  const { pictures } = state;
  const results = pictures.flatMap((picture) => picture.versions.map((version) => ({ picture, version })));
  show($("#rail"), pictures.length > 0); // from the first one on: the picture must not jump when a result comes
  show($("#history-title"), results.length > 0);
  show($("#zip"), pictures.filter((picture) => picture.versions.length).length > 1);
  const about = pictures.map(({ id, state: now, note, shown, view, local }) => [id, now, note, shown, view, local]);
  const key = JSON.stringify([about, state.current, results.length]);
  if (key === drawn) return;
  drawn = key;
  $("#queue").replaceChildren(...pictures.map(drawPicture));
  $("#history").replaceChildren(...results.reverse().map(drawResult));
}

function drawPicture(picture) {
  const source = picture.local ?? picture.view;
  const image = source ? make("img", { src: source, alt: "", loading: "lazy" }) : make("span", { class: "blank" });
  const words = picture.note || STATES[picture.state];
  return make(
    "li",
    { class: `item ${picture.state}` },
    make(
      "button",
      {
        type: "button",
        "aria-current": picture.id === state.current ? "true" : null,
        title: `${picture.name}: ${words}`,
        onclick: () => select(picture.id),
      },
      image,
      make("span", { class: "name" }, picture.name),
      make("span", { class: "state small" }, words),
    ),
  );
}

function drawResult({ picture, version }) {
  const chosen = picture.id === state.current && picture.shown === version.token;
  return make(
    "li",
    { class: "item" },
    make(
      "button",
      {
        type: "button",
        "aria-current": chosen ? "true" : null,
        title: `${picture.name}: ${version.title}`,
        onclick: () => select(picture.id, version.token),
      },
      make("img", { src: fileAddress(version.token, "restored.png"), alt: "", loading: "lazy" }),
      make("span", { class: "name" }, version.title),
      make("span", { class: "state small" }, `${version.quality}, ${version.seconds} s`),
    ),
  );
}

// The last result of every picture, in the format that is chosen, in one file.
export async function takeAll() {
  const { format, quality } = state.save;
  const done = state.pictures.filter((picture) => picture.versions.length);
  try {
    const files = [];
    for (const picture of done) {
      const token = picture.shown ?? picture.versions.at(-1).token;
      files.push({ name: nameResult(picture, format), blob: await readExport(token, format, quality) });
    }
    const url = URL.createObjectURL(await makeZip(files));
    download(url, "restored.zip");
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    tell(error.message);
  }
}
