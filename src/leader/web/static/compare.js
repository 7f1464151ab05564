// Compare: two panes of the same picture, each with a way of restoring it or a result that is there already.

import { drawSetting } from "./choices.js";
import { $, make } from "./dom.js";
import { changed, current, state, version } from "./state.js";

let drawn = null;

// The token that a side shows: a version by choice, or what the last comparison made.
export const sideToken = (side) => side.version ?? side.result ?? null;

export function renderSides() {
  const picture = current();
  const place = $("#sides");
  place.hidden = state.mode !== "compare" || !picture;
  const key = JSON.stringify([place.hidden, picture?.id, picture?.versions.length, state.sides.map((side) => side.version)]);
  if (place.hidden || key === drawn) return;
  drawn = key;
  place.replaceChildren(make("h2", {}, "Two ways, the same seed"), ...state.sides.map((side, number) => drawSide(picture, side, number)));
}

function drawSide(picture, side, number) {
  const again = () => {
    delete side.result;
    changed();
  };
  const menu = make("select", {
    "aria-label": "Show",
    onchange: () => {
      side.version = menu.value || undefined;
      changed();
    },
  });
  menu.append(make("option", { value: "" }, "a new run"));
  for (const one of picture.versions) {
    menu.append(make("option", { value: one.token, selected: side.version === one.token }, `${one.title} (${one.quality})`));
  }
  const settings = side.version
    ? []
    : [["quality", "Quality"], ["method", "Method"], ["plugins", "Plug-ins"]].map(([name, words]) =>
        drawSetting(name, words, side, again),
      );
  const letter = "AB"[number];
  return make(
    "fieldset",
    { class: "side", id: `side-${letter}` },
    make("legend", {}, letter),
    make("label", {}, "Show", menu),
    ...settings,
  );
}

// What stands over a pane: how its picture was made, how long it took, and whether it looks right.
export function describeSide(picture, number) {
  const shown = version(picture, sideToken(state.sides[number]));
  if (!shown) return `${"AB"[number]}: the photograph`;
  return `${"AB"[number]}: ${shown.title}, ${shown.quality}, ${shown.seconds} s, ${shown.verdict.title.toLowerCase()}`;
}
