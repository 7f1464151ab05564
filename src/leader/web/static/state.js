// What the page knows: pictures, the versions that restorations made of them, and what is chosen. One source for all parts.

import { isKept } from "./api.js";

export const state = {
  site: null,
  pictures: [],
  current: null, // id of the picture that is shown
  mode: "restore", // or "compare"
  running: null, // the picture whose job runs
  settings: { quality: "standard", look: "natural" }, // of every picture, expert settings included
  save: { format: "png", quality: 90 },
  sides: [{ quality: "draft" }, { quality: "standard" }], // of a comparison
};

const listeners = new Set();
export const onChange = (listener) => listeners.add(listener);
export function changed() {
  for (const listener of listeners) listener();
  remember();
}

let last = 0;

// A picture: `name` and `local` (an address of its bytes) stay in this browser; `token` is the server's name for it.
export function addPicture(about) {
  const picture = {
    id: ++last,
    name: "picture",
    local: null,
    token: null,
    size: null,
    view: null,
    findings: null,
    state: "waiting", // waiting, loading, ready, running, done, failed
    note: "",
    versions: [], // outcomes of the server, each with `parent`, the token it was made from
    shown: null, // token of the version that is shown; null: the photograph as it was given
    base: null, // token of the version that repairs begin with; null: the photograph
    choices: {}, // token or "given" -> kinds of damage -> options
    ...about,
  };
  state.pictures.push(picture);
  state.current ??= picture.id;
  return picture;
}

export const current = () => state.pictures.find((picture) => picture.id === state.current) ?? null;
export const version = (picture, token) => picture.versions.find((one) => one.token === token) ?? null;
export const shownVersion = (picture) => version(picture, picture.shown);
export const baseToken = (picture) => picture.base ?? picture.token;
export const baseSize = (picture) => version(picture, picture.base)?.size ?? picture.size;
export const choicesOf = (picture) => (picture.choices[picture.base ?? "given"] ??= {});

// The steps from the photograph to a version, in order.
export function stepsTo(picture, token) {
  const steps = [];
  for (let one = version(picture, token); one; one = version(picture, one.parent)) steps.unshift(one);
  return steps;
}

export function select(id, shown) {
  const picture = state.pictures.find((one) => one.id === id);
  if (!picture) return;
  state.current = id;
  if (shown !== undefined) picture.shown = shown;
  changed();
}

// The results of a job become versions; the last one is shown.
export function addVersions(picture, outcomes, wish) {
  let parent = wish.picture === picture.token ? null : wish.picture;
  for (const outcome of outcomes) {
    if (!version(picture, outcome.token)) picture.versions.push({ ...outcome, parent, quality: wish.quality });
    parent = outcome.token;
  }
  if (outcomes.length) picture.shown = outcomes.at(-1).token;
}

// --- the session ------------------------------------------------------------------------------------------------------
// Results stay on the server for a while: a page that is loaded again finds them. Only this tab remembers their names.

const KEY = "leader-session";

function remember() {
  const kept = state.pictures
    .filter((picture) => picture.versions.length)
    .map(({ name, token, size, view, findings, versions, shown }) => ({ name, token, size, view, findings, versions, shown }));
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // a browser without storage, or with a full one: the session ends with the page
  }
}

export async function recall() {
  let kept = [];
  try {
    kept = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
  } catch {
    return;
  }
  for (const one of kept) {
    if (await isKept(one.versions.at(-1).token)) addPicture({ ...one, state: "done" });
  }
  changed();
}
