// What came of it: the verdict, every warning, what was done and why, the steps of a chain, and what can be taken away.

import { exportAddress, fileAddress } from "./api.js";
import { $, download, make } from "./dom.js";
import { changed, current, select, shownVersion, state, stepsTo } from "./state.js";

const MARKS = { fine: "✓", doubtful: "!", failed: "✕" };

// holiday.jpg -> holiday-restored.png; the name never leaves this browser.
export function nameResult(picture, format) {
  return `${picture.name.replace(/\.[^.]*$/, "") || "picture"}-restored.${format}`;
}

let drawn = null;

export function renderResult() {
  const picture = current();
  const place = $("#result");
  const version = picture && shownVersion(picture);
  place.hidden = !version || state.mode === "compare";
  if (place.hidden) {
    drawn = null;
    return;
  }
  if (version.token === drawn) return;
  drawn = version.token;
  const steps = stepsTo(picture, version.token);
  place.replaceChildren(
    drawVerdict(version),
    drawStory(version),
    ...(steps.length > 1 ? [drawSteps(picture, steps, version)] : []),
    drawDownloads(picture, version),
    drawDetails(version),
  );
}

function drawVerdict({ verdict, warnings }) {
  const items = [...verdict.reasons, ...warnings].map((text) => make("li", {}, text));
  return make(
    "div",
    { class: `verdict ${warnings.length && verdict.level === "fine" ? "warned" : verdict.level}` },
    make("h2", {}, make("span", { class: "mark", "aria-hidden": "true" }, MARKS[verdict.level]), verdict.title),
    make("p", {}, verdict.meaning),
    items.length ? make("ul", {}, ...items) : null,
  );
}

const drawStory = ({ story }) => make("div", { class: "story" }, ...story.map((sentence) => make("p", {}, sentence)));

function drawSteps(picture, steps, shown) {
  const items = steps.map((step) =>
    make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          class: `step ${step.verdict.level}`,
          "aria-current": step === shown ? "step" : null,
          onclick: () => select(picture.id, step.token),
        },
        make("span", { class: "mark", "aria-hidden": "true" }, MARKS[step.verdict.level]),
        `${step.title}: ${step.verdict.title.toLowerCase()}`,
      ),
    ),
  );
  return make("ol", { class: "steps", "aria-label": "Every step" }, ...items);
}

function drawDownloads(picture, version) {
  const { save } = state;
  const quality = make("input", {
    type: "range",
    min: "30",
    max: "100",
    value: String(save.quality),
    "aria-label": "Quality of the file",
    oninput: () => {
      save.quality = Number(quality.value);
      told.textContent = quality.value;
    },
  });
  const told = make("output", {}, String(save.quality));
  const loss = make("label", { class: "loss", hidden: save.format === "png" }, "Quality ", quality, told);
  const format = make("select", {
    "aria-label": "Format of the file",
    onchange: () => {
      save.format = format.value;
      loss.hidden = save.format === "png";
    },
  });
  const names = { png: "PNG", jpg: "JPEG", webp: "WebP" };
  for (const value of state.site.formats) format.append(make("option", { value, selected: save.format === value }, names[value]));
  const take = () => {
    const whole = save.format === "png" ? fileAddress(version.token, "restored.png") : null;
    download(whole ?? exportAddress(version.token, save.format, save.quality), nameResult(picture, save.format));
  };
  const file = (name, words) =>
    version.files.includes(name)
      ? make("a", { class: "link", href: fileAddress(version.token, name), download: name }, words)
      : null;
  const further = () => {
    picture.base = version.token;
    changed();
  };
  return make(
    "div",
    { class: "downloads", role: "group", "aria-label": "Downloads" },
    make("div", { class: "row" }, make("button", { type: "button", id: "save", class: "plain strong", onclick: take }, "Download"), format),
    loss,
    make("p", { class: "small" }, file("map.png", "Download the trust map"), " ", file("run.json", "Download the run (JSON)")),
    make("button", { type: "button", id: "further", class: "link", onclick: further }, "Repair this result further"),
  );
}

function drawDetails({ notes, numbers }) {
  const rows = Object.entries(numbers).map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)),
  );
  return make(
    "details",
    { class: "numbers" },
    make("summary", {}, "Notes and numbers"),
    notes.length ? make("ul", {}, ...notes.map((text) => make("li", {}, text))) : null,
    make("table", {}, make("tbody", {}, ...rows)),
  );
}
