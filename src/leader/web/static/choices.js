// What is to be repaired, how, and how well: the form beside the picture, and the wish that is sent.

import { estimate } from "./api.js";
import { $, formatDuration, make } from "./dom.js";
import { baseSize, baseToken, changed, choicesOf, current, state } from "./state.js";

const QUALITIES = { draft: "Draft", standard: "Standard", best: "Best" };
const LOOKS = { natural: "natural: textures one would believe", faithful: "faithful: nearest on average" };
const TARGETS = {
  "factor 1.5": "1.5 times as large",
  "factor 2": "2 times as large",
  "factor 3": "3 times as large",
  "factor 4": "4 times as large",
  "factor 8": "8 times as large",
  "size 1920 1080": "fits a Full HD screen",
  "size 3840 2160": "fits a 4K screen",
  pixels: "a size in pixels",
};
const OPEN = { steps: "by the quality", budget: "its own", sigma: "measured", seed: "0" };

// The restoration that is chosen for a picture. `more` wins: the settings of one side of a comparison.
export function makeWish(picture, brush, more = {}) {
  const repairs = Object.entries(choicesOf(picture)).map(([kind, options]) => ({ kind, ...options }));
  const painted = "missing" in choicesOf(picture) ? brush.read(baseToken(picture)) : "";
  return { picture: baseToken(picture), repairs, painted, draft_first: true, ...state.settings, ...more };
}

// --- seconds ------------------------------------------------------------------------------------------------------------

let asked = 0;
let timer = null;

// How long each quality will take; the answer to the last question counts. Nobody is asked before something is chosen.
export function askForSeconds(brush) {
  clearTimeout(timer);
  const number = ++asked;
  timer = setTimeout(async () => {
    const picture = current();
    if (!picture?.findings || state.running || !Object.keys(choicesOf(picture)).length) return;
    let told = { seconds: {}, same: [] };
    try {
      told = await estimate(makeWish(picture, brush));
    } catch {
      // what is wrong with the wish is told when it is asked for
    }
    if (number !== asked) return;
    const usual = state.site.quality;
    for (const [name, words] of Object.entries(QUALITIES)) {
      const place = $(`#quality-${name} .seconds`);
      const seconds = told.seconds[name];
      const same = name !== usual && told.same.includes(name);
      const time = seconds === undefined ? "" : `about ${formatDuration(seconds)}`;
      if (place) place.textContent = same ? `the same as ${QUALITIES[usual]}` : time;
      if (place) place.dataset.seconds = seconds ?? "";
      place?.parentElement.setAttribute("title", words);
    }
  }, 300);
}

// --- the form -----------------------------------------------------------------------------------------------------------

let drawn = null;

export function renderChoices(brush, onPaint) {
  const picture = current();
  const form = $("#choices");
  form.hidden = state.mode !== "restore" && !picture;
  const key = JSON.stringify([picture?.id, picture?.base, Boolean(picture?.findings), state.mode]);
  if (key === drawn) return;
  drawn = key;
  const again = () => {
    changed();
    askForSeconds(brush);
  };
  form.replaceChildren(...[picture && drawFindings(picture), drawRepairs(picture, again, onPaint)].filter(Boolean));
  if (state.mode === "restore") form.append(drawQualities(again), drawExpert(again));
  askForSeconds(brush);
}

function drawFindings(picture) {
  const sentences = picture.findings?.sentences;
  if (!sentences) return make("p", { class: "looking small", role: "status" }, "Looking at the picture …");
  const list = make("ul", {}, ...sentences.map((text) => make("li", {}, text)));
  return make("details", { class: "seen" }, make("summary", {}, "What we see"), list);
}

function drawRepairs(picture, again, onPaint) {
  const group = make("fieldset", { id: "repairs" }, make("legend", {}, "What is wrong with it?"));
  if (picture?.base) group.append(drawBase(picture));
  const chosen = picture ? choicesOf(picture) : {};
  for (const [kind, words] of Object.entries(state.site.kinds)) {
    const found = picture?.base === null && picture.findings?.found.includes(kind);
    const options = make("div", { class: "options" });
    const redraw = () => {
      options.replaceChildren(...(kind in chosen ? drawOptions(kind, chosen[kind], picture, again, onPaint) : []));
    };
    const box = make("input", {
      type: "checkbox",
      name: "kind",
      value: kind,
      checked: kind in chosen,
      disabled: !picture?.findings,
      onchange: () => {
        if (box.checked) chosen[kind] = kind === "small" ? { factor: 2 } : {};
        else delete chosen[kind];
        redraw();
        again();
      },
    });
    const badge = found ? make("span", { class: "badge" }, "seen") : null;
    group.append(make("div", { class: "repair" }, make("label", {}, box, make("span", {}, words), badge), options));
    redraw();
  }
  return group;
}

function drawBase(picture) {
  const title = picture.versions.find((one) => one.token === picture.base)?.title;
  const back = () => {
    picture.base = null;
    changed();
  };
  return make(
    "p",
    { class: "small base" },
    `Going on from: ${title}. `,
    make("button", { type: "button", class: "link", onclick: back }, "Back to the photograph"),
  );
}

function drawOptions(kind, options, picture, again, onPaint) {
  if (kind === "small") return drawTarget(options, picture, again);
  if (kind === "blurred") {
    const known = picture.findings?.found.includes("blurred");
    const field = make("input", {
      type: "number",
      id: "blur",
      min: "0.1",
      max: "8",
      step: "0.1",
      value: options.blur ?? "",
      placeholder: known ? "as found" : "width",
      onchange: () => {
        if (field.value) options.blur = Number(field.value);
        else delete options.blur;
        again();
      },
    });
    return [make("label", { for: "blur" }, "How wide, in pixels? ", field)];
  }
  if (kind === "missing") {
    const filled = picture.base === null && picture.findings?.fillable;
    const words = filled ? "What was found is filled in. Paint to fill in other parts instead." : "Paint over what is missing.";
    return [
      make("p", { class: "small" }, words),
      make("button", { type: "button", class: "plain", id: "paint", onclick: onPaint }, "Paint on the picture"),
    ];
  }
  return [];
}

function drawTarget(options, picture, again) {
  const [width, height] = baseSize(picture);
  const told = make("p", { class: "small", id: "target-size" });
  const sides = ["width", "height"].map((name, axis) =>
    make("input", {
      type: "number",
      min: "1",
      max: "16384",
      "aria-label": `At most this ${name}, in pixels`,
      value: options.size?.[axis] ?? [width, height][axis] * 2,
      onchange: () => choose(),
    }),
  );
  const typed = make("div", { class: "pair" }, sides[0], " × ", sides[1]);
  const now = options.size ? `size ${options.size.join(" ")}` : `factor ${options.factor ?? 2}`;
  const menu = make("select", { id: "target", "aria-label": "How much larger?", onchange: () => choose() });
  for (const [value, words] of Object.entries(TARGETS)) menu.append(make("option", { value, selected: value === now }, words));
  if (options.size && !(now in TARGETS)) menu.value = "pixels";
  const choose = (quiet = false) => {
    const [what, ...numbers] = menu.value.split(" ");
    delete options.factor;
    delete options.size;
    if (what === "factor") options.factor = Number(numbers[0]);
    else options.size = what === "size" ? numbers.map(Number) : sides.map((field) => Math.round(Number(field.value)) || 1);
    typed.hidden = menu.value !== "pixels";
    const ratio = options.factor ?? Math.min(options.size[0] / width, options.size[1] / height);
    told.textContent = `${width} × ${height} becomes ${Math.round(ratio * width)} × ${Math.round(ratio * height)} pixels.`;
    if (!quiet) again();
  };
  choose(true);
  return [menu, typed, told];
}

function drawQualities(again) {
  const group = make("fieldset", { id: "quality" }, make("legend", {}, "How good, and how long?"));
  for (const name of state.site.qualities) {
    const radio = make("input", {
      type: "radio",
      name: "quality",
      value: name,
      checked: state.settings.quality === name,
      onchange: () => {
        state.settings.quality = name;
        again();
      },
    });
    group.append(
      make("label", { id: `quality-${name}` }, radio, make("span", {}, QUALITIES[name]), make("span", { class: "seconds small" })),
    );
  }
  return group;
}

function drawExpert(again) {
  const fields = Object.entries(state.site.expert).map(([name, words]) =>
    drawSetting(name, words, state.settings, again),
  );
  const look = drawSetting("look", "Look", state.settings, again);
  return make("details", { id: "expert" }, make("summary", {}, "Expert settings"), make("div", { class: "grid" }, look, ...fields));
}

// A menu or a field for one setting, with its label; what is left open is not sent.
export function drawSetting(name, label, settings, again) {
  const names = name === "look" ? state.site.looks : name === "quality" ? state.site.qualities : state.site.menus[name];
  const set = (value) => {
    if (value) settings[name] = value;
    else delete settings[name];
    again();
  };
  if (!names) {
    const about = { value: settings[name] ?? "", placeholder: OPEN[name] ?? "", "aria-label": label };
    return make("label", {}, label, make("input", { ...about, onchange: (event) => set(event.target.value) }));
  }
  const menu = make("select", { "aria-label": label, onchange: () => set(menu.value) });
  if (!["look", "quality", "prior"].includes(name)) menu.append(make("option", { value: "" }, "by the quality"));
  for (const value of names) {
    const words = LOOKS[value] ?? QUALITIES[value] ?? value;
    menu.append(make("option", { value, selected: settings[name] === value }, words));
  }
  return make("label", {}, label, menu);
}
