// Begins: reads what the server offers, takes pictures in, and lets every part draw itself anew when something changed.

import { readSite } from "./api.js";
import { askForSeconds, renderChoices } from "./choices.js";
import { renderSides } from "./compare.js";
import { $, make, show, tell } from "./dom.js";
import { renderRail, takeAll } from "./rail.js";
import { renderResult } from "./results.js";
import { cancel, look, runAll, runBoth, runOne } from "./runs.js";
import { addPicture, changed, choicesOf, current, onChange, recall, state } from "./state.js";
import { Stage } from "./stage.js";

const READABLE = /^image\/(png|jpeg|webp|gif|bmp|avif)$/; // what every browser shows by itself

let stage = null;

// --- pictures come in -----------------------------------------------------------------------------------------------------

function take(files) {
  const fresh = [...files].map((file) =>
    addPicture({ name: file.name || "pasted picture", file, local: READABLE.test(file.type) ? URL.createObjectURL(file) : null }),
  );
  if (!fresh.length) return;
  tell("");
  state.current = fresh[0].id;
  changed();
  if (!state.running) look(fresh[0]);
}

function takeSample(name) {
  const picture = addPicture({ name: `sample ${name}`, sample: name, local: `api/samples/${name}.png` });
  tell("");
  state.current = picture.id;
  changed();
  look(picture);
}

function listenForPictures() {
  const field = $("#file");
  field.addEventListener("change", () => {
    take(field.files);
    field.value = "";
  });
  const over = (yes) => document.body.classList.toggle("over", yes);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? over(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    take(event.dataTransfer?.files ?? []);
  });
  document.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files ?? [];
    if (files.length) take(files);
  });
}

// --- the buttons ----------------------------------------------------------------------------------------------------------

function renderButtons() {
  const picture = current();
  const compare = state.mode === "compare";
  const open = state.pictures.filter((one) => !one.versions.length && one.state !== "failed");
  const chosen = picture?.findings && Object.keys(choicesOf(picture)).length > 0;
  const running = state.running !== null;
  const start = $("#start");
  start.textContent = compare ? "Compare" : picture?.base ? "Repair further" : "Restore";
  start.disabled = running || !chosen;
  show(start, !running);
  show($("#cancel"), running);
  for (const id of ["#all", "#same-label"]) show($(id), !running && !compare && open.length > 1);
  $("#all").textContent = `Restore all ${open.length} pictures`;
  $("#hint").textContent = hint(picture, chosen, running);
  for (const mode of ["restore", "compare"]) $(`#mode-${mode}`).setAttribute("aria-pressed", String(state.mode === mode));
}

function hint(picture, chosen, running) {
  if (running || chosen) return "";
  if (!picture) return "Open a photograph to begin.";
  if (!picture.findings) return picture.state === "failed" ? "" : "The program looks at the picture first.";
  return "Nothing was found that must be repaired; choose what to do.";
}

function listenToButtons() {
  $("#start").addEventListener("click", () => {
    if (state.mode === "compare") runBoth(stage.brush, stage).then(changed);
    else runOne(stage.brush, stage).then(() => askForSeconds(stage.brush));
  });
  $("#all").addEventListener("click", () => runAll(stage.brush, stage, $("#same").checked));
  $("#cancel").addEventListener("click", () => cancel().catch((error) => tell(error.message)));
  $("#zip").addEventListener("click", takeAll);
  $("#choices").addEventListener("submit", (event) => event.preventDefault());
  for (const mode of ["restore", "compare"]) {
    $(`#mode-${mode}`).addEventListener("click", () => {
      state.mode = mode;
      changed();
    });
  }
}

// --- keys -----------------------------------------------------------------------------------------------------------------

function listenToKeys() {
  const typing = (event) => event.target.closest("input, select, textarea");
  document.addEventListener("keydown", (event) => {
    if (!stage || !current() || typing(event)) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() !== "z" || !stage.brush.active) return;
      event.preventDefault();
      if (event.shiftKey) stage.brush.redo();
      else stage.brush.undo();
      return;
    }
    const key = event.key.toLowerCase();
    const pane = event.target.closest(".pane");
    if (key === "t" && !event.repeat) stage.toggleMap(true);
    else if (key === "b" && !event.repeat) stage.holdBefore(true);
    else if (pane && stage.brush.press(event)) event.preventDefault();
    else if ((pane || !event.key.startsWith("Arrow")) && stage.viewport.press(event.key)) event.preventDefault();
  });
  document.addEventListener("keyup", (event) => {
    if (!stage || !current() || typing(event)) return;
    if (event.key.toLowerCase() === "t") stage.toggleMap(false);
    if (event.key.toLowerCase() === "b") stage.holdBefore(false);
  });
}

// --- beginning ------------------------------------------------------------------------------------------------------------

function drawWelcome() {
  const { samples, accepted, upload_bytes: most } = state.site;
  $("#accepted").textContent = `${accepted}, up to ${Math.round(most / 2 ** 20)} MB each. They stay on this machine.`;
  $("#samples").append(
    ...Object.entries(samples).map(([name, words]) =>
      make(
        "button",
        { type: "button", class: "sample", "data-sample": name, onclick: () => takeSample(name) },
        make("img", { src: `api/samples/${name}.png`, alt: "", width: 96, height: 96, loading: "lazy" }),
        make("span", {}, words),
      ),
    ),
  );
}

async function start() {
  listenForPictures();
  listenToButtons();
  listenToKeys();
  try {
    state.site = await readSite();
  } catch (error) {
    tell(error.message);
    return;
  }
  state.settings.quality = state.site.quality;
  stage = new Stage();
  drawWelcome();
  onChange(() => {
    renderChoices(stage.brush, () => stage.paint());
    renderSides();
    renderResult();
    stage.render();
    renderRail();
    renderButtons();
    const picture = current();
    if (picture && !picture.findings && picture.state !== "failed" && !state.running) look(picture);
  });
  await recall();
  document.body.dataset.ready = "yes";
}

start();
