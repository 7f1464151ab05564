// Visits to the page without a browser: what its scripts ask of the server, and what they show. Arguments: the folder of the
// scripts, and what the server says about itself as JSON. Ends with 0 if everything was as it should be; writes all.zip.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { openDocument } from "./document.mjs";

const [folder, site] = [process.argv[2], { ...JSON.parse(process.argv[3]), quality: "draft" }];
const asked = []; // [method, address, body] of every request
const held = new Map(); // address -> blob
const answers = []; // for api/restore, one after the other: text of the whole stream
const findings = { sentences: ["It is small."], repairs: [{ kind: "small", factor: 4 }], found: ["small", "blurred"], fillable: true };
let uploads = 0;
let offline = false;
let gate = null; // what estimates and the rest of a stream wait for, after its first line
let goOn;
const close = () => (gate = new Promise((go) => (goOn = go)));

const json = (body, ok = true) => ({ ok, json: async () => body });
globalThis.fetch = async (address, { method = "GET", body } = {}) => {
  asked.push([method, address, typeof body === "string" ? JSON.parse(body) : body]);
  if (offline || address.includes("/lost")) throw new TypeError("Failed to fetch");
  if (address === "api/site") return json(site);
  if (address.startsWith("api/samples/")) return json({ token: "t9", size: [4096, 1024], view: "v9" });
  if (address === "api/pictures") return json({ token: `t${++uploads}`, size: [30, 20], view: `api/files/t${uploads}/view.png` });
  if (address.endsWith("t4/findings")) return json({ ...findings, repairs: [], found: [] });
  if (address.endsWith("/findings")) return json(structuredClone(findings));
  const late = gate;
  if (address === "api/estimate") return await late, json({ seconds: { draft: late ? 80 : 4.4, standard: 5030, best: 7000 }, same: ["draft", "best"] });
  if (address === "api/restore") {
    const text = answers.shift();
    if (!text) return json({ error: "The queue is full." }, false);
    const bytes = new TextEncoder().encode(text);
    const end = text.indexOf("\n") + 1;
    const parts = [bytes.slice(0, 17), bytes.slice(17, end), bytes.slice(end)]; // a line comes in two pieces
    const pull = async (to) => (parts.length === 1 && (await gate), parts.length ? to.enqueue(parts.shift()) : to.close());
    return { ok: true, body: new ReadableStream({ pull }) };
  }
  if (address.startsWith("api/export/")) return { ok: true, blob: async () => new Blob([address.padEnd(70_000)]) };
  if (address.endsWith("/damage")) return { ok: true, blob: async () => new Blob(["mask"]) };
  return json({}, !address.includes("/old"));
};
globalThis.ResizeObserver = class { observe() {} };
const kept = { name: "kept", token: "t0", size: [9, 7], view: "v", findings, versions: [outcome("k0"), outcome("k1")], shown: "k1" };
const session = { "leader-session": JSON.stringify([kept, ...["old", "lost"].map((token) => ({ ...kept, versions: [outcome(token)] }))]) };
globalThis.sessionStorage = { getItem: (key) => session[key] ?? null, setItem: (key, text) => void (session[key] = text) };
URL.createObjectURL = (blob) => (held.set(`blob:${held.size}`, blob), `blob:${held.size - 1}`);
globalThis.document = openDocument(readFileSync(`${folder}/index.html`, "utf8"));

const $ = (selector) => document.querySelector(selector);
const all = (selector) => document.querySelectorAll(selector);
const wait = (milliseconds = 5) => new Promise((go) => setTimeout(go, milliseconds));
const last = (address) => asked.findLast(([, one]) => one === address);
const setField = (label, value) => {
  const field = [...all("input"), ...all("select")].find((one) => one.getAttribute("aria-label") === label);
  field.value = value;
  field.fire("change");
};
const check = (kind, yes) => {
  const box = all("#repairs input").find((one) => one.value === kind);
  box.checked = yes;
  box.fire("change");
};

function outcome(token, more = {}) {
  const verdict = { level: "doubtful", title: "Look at it", meaning: "Hm:", reasons: ["It is odd."] };
  const rest = { warnings: ["Made up."], notes: ["A note."], numbers: { seed: "7" }, files: ["restored.png", "cover.png", "levels.png", "run.json"] };
  return { token, size: [60, 40], seconds: 1.5, verdict, story: ["So."], title: `Title ${token}`, kind: "small", ...rest, ...more };
}
const stream = (...lines) => lines.map((line) => JSON.stringify(line) + "\n").join("");
const running = { state: "running", words: "Restoring", step: 0, share: 0.5, left: 61, drafted: true, outcomes: [], error: "" };
const done = (...outcomes) => ({ ...running, state: "done", step: outcomes.length - 1, share: 1, outcomes });

const module = await import(`${folder}/main.js`);
assert.ok(module);
const { addPicture, state } = await import(`${folder}/state.js`);
const { look } = await import(`${folder}/runs.js`);
await wait();
assert.equal(document.body.dataset.ready, "yes");

// --- a session that the server still has is found again, one that it has not is not
assert.deepEqual(state.pictures.map(({ shown, state: now }) => [shown, now]), [["k1", "done"]]);
assert.deepEqual(asked.filter(([method]) => method === "HEAD").map(([, one]) => one), ["k1", "old", "lost"].map((token) => `api/files/${token}/restored.png`));
assert.ok($("#zip").hidden, "two results of one picture");
assert.deepEqual([state.settings.quality, $("#start").disabled], ["draft", true], "nothing is chosen yet");
assert.equal($("#accepted").textContent.includes(`${site.accepted}, up to 64 MB`), true);

const nothing = "Nothing was found that must be repaired; choose what to do.";
assert.deepEqual([$("#hint").textContent, $("#welcome").hidden, $("#tools").hidden, $("#rail").hidden], [nothing, true, false, false]);
assert.deepEqual(all("#legend .swatch").map((one) => one.style.background), site.legend.map(({ colour }) => colour));
await wait(320);
assert.equal(last("api/estimate"), undefined, "nobody asks how long nothing takes");
const seconds = [89.4, 90, 5399, 5400].map((await import(`${folder}/dom.js`)).formatDuration);
assert.deepEqual(seconds, ["89 s", "2 min", "90 min", "1.5 h"]);
const over = () => document.body.classList.contains("over");
assert.ok(document.fire("dragover").prevented && $("#choices").fire("submit").prevented, "the browser keeps out");
document.fire("dragleave", { relatedTarget: document.body });
assert.ok(over(), "still over the page");
document.fire("dragleave");
assert.ok(!over());

// --- a picture comes in: its bytes are sent, not its name, and what is proposed is chosen
const file = new File(["12345"], "my holiday.jpg", { type: "image/jpeg" });
Object.assign($("#file"), { files: [file], value: "my holiday.jpg" });
$("#file").fire("change");
assert.equal($("#hint").textContent, "The program looks at the picture first.");
assert.ok(all("#repairs input")[0].disabled && $(".slider").hidden);
await wait();
assert.equal($("#hint").textContent, "");
assert.deepEqual([$("#file").value, all("#queue img").at(-1).src, JSON.parse(session["leader-session"]).length], ["", "blob:0", 1]);
assert.deepEqual(last("api/pictures"), ["POST", "api/pictures", file]);
assert.deepEqual(asked.filter(([, one]) => one.endsWith("findings")).map(([, one]) => one), ["api/pictures/t1/findings"], "looked at once");
const before = asked.length;
const large = new File([new Uint8Array(site.upload_bytes + 1)], "large.png", { type: "image/png" });
document.fire("dragover");
assert.ok(document.fire("drop", { dataTransfer: { files: [large] } }).prevented && !over());
await wait();
assert.equal(asked.length, before, "what is too large is not sent");
assert.match($("#told").textContent, /64\.0 MB; at most 64 MB/);
assert.deepEqual([state.pictures.at(-1).state, $("#told").hidden, $("#all").hidden], ["failed", false, true]);
assert.match(all("#queue button").at(-1).textContent, /64.0 MB/, "in the queue, too");
assert.equal($("#hint").textContent, "");
state.pictures.pop();
all("#queue button").at(-2).click();
const picture = state.pictures[1];
assert.equal(state.current, picture.id);
assert.deepEqual(all("#repairs .badge").length, 2, "what was seen is marked");

// --- every choice is in the wish, and what each quality takes is told
check("noisy", true);
$("#target").value = "pixels";
$("#target").fire("change");
assert.equal($("#target-size").textContent, "30 × 20 becomes 60 × 40 pixels.");
setField("At most this height, in pixels", "");
assert.deepEqual(state.pictures[1].choices.given.small, { size: [60, 1] });
setField("At most this width, in pixels", "45");
setField("At most this height, in pixels", "25");
assert.deepEqual([$("#target-size").textContent, $(".pair").hidden], ["30 × 20 becomes 38 × 25 pixels.", false]);
check("blurred", true);
assert.equal($("#blur").getAttribute("placeholder"), "as found");
$("#blur").value = "1.5";
$("#blur").fire("change");
check("missing", true);
assert.ok($("#repairs").textContent.includes("What was found is filled in."));
for (const [label, value] of [["Seed", "7"], ["Look", "faithful"], ["Method", "ddrm"], ["Noise level, 0 to 1", "0.1"]]) setField(label, value);
const best = all("#quality input").at(-1);
best.fire("change");
await wait(340);
const wanted = { picture: "t1", painted: "", draft_first: true, quality: "best", look: "faithful", seed: "7", method: "ddrm", sigma: "0.1" };
assert.equal(asked.filter(([, one]) => one === "api/estimate").length, 1, "one question after several changes");
const repairs = [{ kind: "small", size: [45, 25] }, { kind: "noisy" }, { kind: "blurred", blur: 1.5 }, { kind: "missing" }];
assert.deepEqual(last("api/estimate")[2], { ...wanted, repairs });
assert.deepEqual(all("#quality .seconds").map((one) => one.textContent), ["about 4 s", "about 84 min", "the same as Draft"]);
close();
setField("Seed", "8");
await wait(310);
gate = null;
setField("Seed", "7");
await wait(310);
goOn();
await wait();
assert.equal($("#quality .seconds").textContent, "about 4 s", "the answer to the last question counts");
all("#queue button")[0].click();
all("#queue button")[1].click();
const field = (label) => [...all("input"), ...all("select")].find((one) => one.getAttribute("aria-label") === label);
const typed = ["At most this width, in pixels", "At most this height, in pixels", "Seed", "Look", "Method", "Plug-ins"];
assert.deepEqual(typed.map((label) => field(label).value), ["45", "25", "7", "faithful", "ddrm", ""], "what was chosen is still there");
assert.equal(field("Prior").value, "embedded", "there is always one");
assert.deepEqual([$("#target").value, $("#blur").value, all("#quality input").map((one) => one.checked)], ["pixels", "1.5", [false, false, true]]);
assert.deepEqual(all("#repairs input").filter((one) => one.type === "checkbox" || one.attributes.type === "checkbox").map((one) => [one.value, one.checked]), Object.keys(site.kinds).map((kind) => [kind, ["small", "noisy", "blurred", "missing"].includes(kind)]));
$("#target").value = "size 1920 1080";
$("#target").fire("change");
assert.deepEqual([$("#target-size").textContent, picture.choices.given.small], ["30 × 20 becomes 1620 × 1080 pixels.", { size: [1920, 1080] }]);
for (const number of [0, 1]) all("#queue button")[number].click();
assert.deepEqual([$("#target").value, $(".pair").hidden], ["size 1920 1080", true]);
setField("At most this width, in pixels", "45");
setField("At most this height, in pixels", "25");
$("#target").value = "pixels";
$("#target").fire("change");
$("#blur").value = "";
$("#blur").fire("change");
assert.deepEqual(picture.choices.given.blurred, {}, "as found");
setField("Noise level, 0 to 1", "");
check("noisy", false);
check("blurred", false);

// --- what is painted: strokes in pixels of the picture, each of which can be taken back
$("#paint").click();
const [pane] = all(".pane");
const scale = Math.min((416 - 16) / 30, (216 - 16) / 20); // the whole picture fits: 10 screen pixels for one of its own
const at = (x, y) => ({ clientX: 100 + 208 + scale * (x - 15), clientY: 50 + 108 + scale * (y - 10) });
const paint = (...points) => {
  pane.fire("pointerdown", at(...points[0]));
  pane.fire("pointermove", { ...at(9, 9), pointerId: 9 }); // of another hand
  for (const point of points.slice(1)) pane.fire("pointermove", at(...point));
  pane.fire("pointerup", at(...points.at(-1)));
};
const tool = (words) => all("#brushes button").find((one) => one.textContent === words).click();
const pressed = () => all("#brushes button").filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.textContent);
assert.deepEqual([$("#brushes").hidden, $(".mask").hidden, pane.classList.contains("painting"), pressed()], [false, false, true, ["Brush"]]);
paint([3, 4], [12, 4]);
const ring = $(".ring");
assert.deepEqual([ring.hidden, ring.style.left, ring.style.top, ring.style.width], [false, `${at(12, 4).clientX - 100}px`, `${at(12, 4).clientY - 50}px`, "24px"]);
tool("Eraser");
assert.deepEqual(pressed(), ["Eraser"]);
paint([6, 4]);
tool("Move");
assert.ok(!pane.classList.contains("painting"));
pane.fire("pointermove", at(9, 9));
assert.ok(ring.hidden, "nothing is painted here");
tool("Eraser");
pane.fire("pointerdown", at(5, 5));
pane.fire("pointercancel", at(5, 5));
paint([20, 19]);
tool("Undo");
for (const words of ["Undo", "Undo", "Redo", "Redo"]) tool(words);
const strokes = () => JSON.parse($(".mask").toDataURL().split(",").slice(1).join(","));
assert.deepEqual(strokes(), [
  30, 20,
  ["moveTo", "", 2.4, 3, 4], ["lineTo", "", 2.4, 3.01, 4], ["lineTo", "", 2.4, 12.01, 4], ["stroke", "", 2.4],
  ["moveTo", "destination-out", 2.4, 6, 4], ["lineTo", "destination-out", 2.4, 6.01, 4], ["stroke", "destination-out", 2.4],
]);
document.body.fire("keydown", { key: "z", ctrlKey: true, shiftKey: true });
assert.equal(strokes().length, 12);
tool("Undo");
pane.fire("pointerdown", at(1, 1));
pane.fire("pointerdown", { ...at(9, 9), pointerId: 2 });
pane.fire("pointerup");
pane.fire("pointerup", { pointerId: 2 });
assert.equal(strokes().length, 9, "a second finger is no stroke");
pane.fire("keydown", { key: "ArrowRight" });
pane.fire("keydown", { key: " " });
assert.deepEqual(strokes().at(-3), ["moveTo", "destination-out", 2.4, 15.96, 10], "the keyboard paints from the middle on");
assert.equal(all("#brushes button").find((one) => one.textContent === "Redo").disabled, true);
for (const [key, shiftKey] of [["ArrowUp", false], ["ArrowLeft", true], [" ", false]]) pane.fire("keydown", { key, shiftKey });
assert.deepEqual(strokes().at(-3).slice(3), [11.16, 9.04], "in small steps and large ones");
tool("Undo");
for (const key of [..."LLLRR"]) pane.fire("keydown", { key: key === "L" ? "ArrowLeft" : "ArrowRight", shiftKey: true });
pane.fire("keydown", { key: " " });
assert.deepEqual(strokes().at(-3).slice(3), [9.6, 9.04], "not beyond the edge");
tool("Undo");
tool("Undo");
all("#queue button")[0].click();
check("missing", true);
$("#paint").click();
assert.deepEqual(strokes(), [9, 7], "another picture has a sheet of its own");
all("#queue button")[1].click();
assert.equal(strokes().length, 9, "and back");
tool("Lasso");
$("#brush-size").value = "60";
$("#brush-size").fire("input");
paint([2, 2], [8, 2], [8, 9]);
assert.deepEqual(strokes().at(-1), ["fill", "", 6], "a lasso fills its inside");
pane.fire("keydown", { key: " " });
assert.deepEqual(strokes().at(-1)[0], "fill", "the keyboard draws no lasso");
tool("Undo");
$("#brush-size").value = "24";
$("#brush-size").fire("input");
tool("Eraser");
tool("Clear");
tool("Invert");
assert.deepEqual(strokes().slice(-2), [["clearRect", "", 2.4, 0, 0, 30, 20], ["fillRect", "xor", 2.4, 0, 0, 30, 20]]);
tool("Find scratches and tears");
await wait();
assert.deepEqual([last("api/pictures/t1/damage")[0], strokes().at(-1).slice(4)], ["GET", [0, 0, 30, 20]]);
document.body.fire("keydown", { key: "z", ctrlKey: true });
tool("Undo");
tool("Undo");
const mask = $(".mask").toDataURL();

// --- a run: the wish, what is said and shown meanwhile, and what comes of it
answers.push(stream({ state: "waiting", ahead: 2 }, { ...running, preview: "data:image/jpeg;base64,AA" }, done(outcome("r1", { size: [30, 20] }), outcome("r2"))));
const said = [];
const doing = $("#doing");
Object.defineProperty(doing, "textContent", { configurable: true, set: (text) => said.push([text, $("#left").textContent, $("#progress").value]), get: () => "" });
const shown = [];
const after = $(".after");
Object.defineProperty(after, "src", { set: (url) => (shown.push(url), after.setAttribute("src", url)), get: () => after.attributes.src });
await wait(310);
asked.length = 0;
$("#start").click();
assert.deepEqual([$("#busy").hidden, $("#cancel").hidden, $("#start").hidden], [false, false, true]);
await wait(20);
await wait(310);
assert.ok(last("api/estimate"), "a run tells more of how long others take");
const { sigma: _, ...others } = wanted;
assert.deepEqual(last("api/restore")[2], { ...others, painted: mask, repairs: [repairs[0], repairs[3]] });
const under = "Step 1 of 2: Restoring (this is a draft; the real one is under way)";
assert.deepEqual(said.map(([text]) => text).slice(0, 3), ["Beginning", "2 pictures before yours", under]);
assert.deepEqual(shown, ["data:image/jpeg;base64,AA", "api/files/r2/restored.png"], "the picture grew clear");
assert.ok($("#brushes").hidden && !pane.classList.contains("painting"), "a result is not painted on");
const now = (selector) => all(selector).filter((one) => one.getAttribute("aria-current")).map((one) => one.textContent);
assert.deepEqual([now("#versions button"), now(".steps button"), now("#history button").length], [["Title r2"], ["!Title r2: look at it"], 1]);
assert.deepEqual(all("#versions button").map((one) => one.textContent), ["Undo", "Photograph", "Title r1", "Title r2"]);
assert.deepEqual(all("#result a").map((one) => one.attributes.href), ["api/files/r2/run.json"], "what there is");
assert.deepEqual([all(".numbers td").map((one) => one.textContent), $(".numbers li").textContent], [["7"], "A note."]);
assert.deepEqual([$("#map").hidden, $("#before").hidden, all(".pane-title")[0].hidden], [false, false, true]);
assert.deepEqual([$("#left").textContent, $("#progress").value, $("#busy").hidden], ["about 61 s left", "1", true]);
assert.deepEqual(picture.versions.map(({ token, parent, quality }) => [token, parent, quality]), [["r1", null, "best"], ["r2", "r1", "best"]]);
assert.deepEqual(all(".verdict li").map((one) => one.textContent), ["It is odd.", "Made up."]);
assert.deepEqual([$(".verdict").classes.has("doubtful"), $(".verdict").classes.has("warned")], [true, false]);
assert.deepEqual(all(".steps button").map((one) => one.textContent), ["!Title r1: look at it", "!Title r2: look at it"]);
const { versions, ...remembered } = JSON.parse(session["leader-session"])[1];
assert.deepEqual(remembered, { name: "my holiday.jpg", token: "t1", size: [30, 20], view: "api/files/t1/view.png", findings, shown: "r2" });

// --- the level under the mouse, the map, before and after
for (const [place, words] of [[[20, 15], "may be more than 40 levels off"], [[20, 4], "within 3 levels"]]) {
  pane.fire("pointermove", at(...place));
  await wait();
  assert.equal($("#hover").textContent, words, "column 2 of 4 of the levels, row 1 or 0 of 2"); // 39 * row + 2 + 1
}
assert.equal($("#hover").style.transform, `translate(${at(20, 4).clientX - 100 + 14}px, ${at(20, 4).clientY - 50 + 16}px)`, "beside the mouse");
pane.fire("pointermove", at(29.5, 4));
await wait();
assert.match($("#hover").style.transform, /^translate\(362px/, "inside the stage");
for (const place of [[30, 15], [-1, 15], [15, 20], [15, -1]]) {
  pane.fire("pointermove", at(...place));
  await wait();
  assert.equal($("#hover").textContent, "", "beside the picture");
}
all("#versions button")[2].click();
const { createElement } = document;
document.createElement = (tag) => Object.assign(createElement(tag), { naturalWidth: 8 });
pane.fire("pointermove", at(20, 4));
await wait();
document.createElement = createElement;
assert.deepEqual([picture.shown, $("#hover").textContent], ["r1", "within 6 levels"], "another result has other levels");
state.running = picture.id;
pane.fire("pointermove", at(20, 4));
assert.equal($("#hover").textContent, "", "not of what is being made");
state.running = null;
all("#history button")[0].click();
$("#map").click();
assert.deepEqual([$(".map").src, $(".map").hidden, $("#legend").hidden], ["api/files/r2/cover.png", false, false]);
$("#file").fire("keydown", { key: "b" });
document.body.fire("keyup", { key: "x" });
assert.ok(!$(".map").hidden && all(".slider")[0].style.left === "50%", "other keys, and those typed into a field");
document.body.fire("keyup", { key: "t" });
assert.deepEqual([$(".map").hidden, $("#legend").hidden], [true, true]);
const [slider] = all(".slider");
slider.fire("keydown", { key: "PageUp" });
assert.deepEqual([slider.style.left, $(".before").style.clipPath], ["60%", `inset(0 ${100 * (1 - (0.6 * 416 - 58) / 300)}% 0 0)`]);
slider.fire("keydown", { key: "ArrowLeft" });
assert.equal(slider.getAttribute("aria-valuenow"), "58");
slider.fire("keydown", { key: "x" });
assert.equal(slider.getAttribute("aria-valuenow"), "58");
for (const [key, share] of [["Home", "0%"], ["End", "100%"]]) {
  slider.fire("keydown", { key });
  assert.equal(slider.style.left, share);
}
slider.fire("pointerdown", { clientX: 516, clientY: 150 });
slider.fire("pointermove", { clientX: 100 + 104, clientY: 150 });
assert.deepEqual([slider.style.left, $(".frame").style.transform], ["25%", "translate(58px, 8px)"], "the slider alone moves");
slider.fire("pointerup");
slider.fire("lostpointercapture");
slider.fire("pointermove", { clientX: 300, clientY: 150 });
assert.equal(slider.style.left, "25%");
document.body.fire("keydown", { key: "b" });
document.body.fire("keyup", { key: "x" });
assert.equal(slider.style.left, "100%");
document.body.fire("keyup", { key: "b" });

// --- zoom: what is under the mouse stays there, and the picture's edge is not left
assert.deepEqual(["+", "0", "ArrowLeft"].map((key) => document.body.fire("keydown", { key }).prevented), [true, true, undefined], "arrows move the page");
const place = () => $(".frame").style;
assert.deepEqual([place().width, place().height, place().transform, $("#zoom").textContent], ["300px", "200px", "translate(58px, 8px)", "500 %"]);
assert.ok($(".frame").classList.contains("pixels"));
pane.fire("wheel", { deltaY: -500, clientX: 100 + 58 + 75, clientY: 50 + 8 + 50 });
const [, left, top] = place().transform.match(/\((.*)px, (.*)px\)/).map(Number);
assert.ok(Math.abs(left + 75 * Math.E - (58 + 75)) < 1e-6 && Math.abs(top + 50 * Math.E - (8 + 50)) < 1e-6);
assert.ok(Math.abs(parseFloat(place().width) - 300 * Math.E) < 1e-6);
pane.fire("pointerdown", { clientX: 300, clientY: 150 });
pane.fire("pointermove", { clientX: 310, clientY: 143 });
pane.fire("pointerup");
const moved = place().transform.match(/\((.*)px, (.*)px\)/).map(Number);
assert.ok(Math.abs(moved[1] - left - 10) < 1e-6 && Math.abs(moved[2] - top + 7) < 1e-6, "as far as the mouse");
pane.fire("keydown", { key: "ArrowLeft" });
assert.ok(Math.abs(place().transform.match(/\((.*)px,/)[1] - moved[1] - 60) < 1e-6);
for (let press = 0; press < 9; press++) pane.fire("keydown", { key: "ArrowUp" });
assert.match(place().transform, /, 0px\)/);
const wide = parseFloat(place().width);
for (const [kind, id, x] of [["down", 1, 300], ["down", 2, 320], ["move", 2, 340], ["move", 2, 360], ["up", 1, 300], ["up", 2, 360]]) {
  pane.fire(`pointer${kind}`, { pointerId: id, clientX: x, clientY: 150 });
}
assert.ok(Math.abs(parseFloat(place().width) - 1.5 * wide) < 1e-6, "two fingers, first 40 and then 60 pixels apart");
const corner = () => place().transform.match(/\((.*)px, (.*)px\)/).slice(1).map(Number);
pane.fire("pointerdown", { clientX: 200, clientY: 150 });
pane.fire("pointermove", { clientX: 200, clientY: 90 });
pane.fire("pointerup");
const start = corner();
for (const [kind, x] of [["down", 300], ["move", 320], ["up", 320]]) pane.fire(`pointer${kind}`, { clientX: x, clientY: 150, button: 2 });
assert.deepEqual(corner(), start, "the right button moves nothing");
for (const [kind, id, x] of [["down", 1, 300], ["down", 2, 340], ["move", 2, 340], ["move", 1, 310], ["move", 2, 350], ["up", 1, 310], ["up", 2, 350]]) {
  pane.fire(`pointer${kind}`, { pointerId: id, clientX: x, clientY: 150 });
}
slider.fire("pointerdown", { clientX: 300, clientY: 150 });
slider.fire("pointermove", { clientX: 320, clientY: 170 });
for (const kind of ["pointerup", "lostpointercapture"]) slider.fire(kind);
assert.ok(Math.abs(corner()[0] - start[0] - 10) < 1e-6 && Math.abs(corner()[1] - start[1]) < 1e-6, "two fingers side by side move it");
for (const [turn, width] of [[-9000, "3840px"], [9000, "60px"]]) {
  pane.fire("wheel", { deltaY: turn, clientX: 300, clientY: 150 });
  assert.equal(place().width, width, "64 screen pixels for one at most, all of it or one for one at least");
}
pane.fire("keydown", { key: "0" });
pane.fire("wheel", { deltaY: -50, ctrlKey: true, clientX: 300, clientY: 150 });
assert.equal($("#zoom").textContent, `${Math.round(500 * Math.exp(0.5))} %`, "two fingers on a trackpad");
pane.fire("wheel", { deltaY: 9000, clientX: 300, clientY: 150 });
const zooms = [];
for (const [target, about] of [["#zoom-in"], ["#zoom-out"], ["#zoom-fit"], ["#zoom-one"], ["#zoom-fit"]].map(([id]) => [$(id), "click"])) {
  target[about]();
  zooms.push($("#zoom").textContent);
}
for (const key of ["+", "-", "1", "0"]) {
  pane.fire("keydown", { key });
  zooms.push($("#zoom").textContent);
}
for (let twice = 0; twice < 2; twice++) {
  pane.fire("dblclick", { clientX: 300, clientY: 150 });
  zooms.push($("#zoom").textContent);
}
assert.deepEqual(zooms, ["125 %", "100 %", "500 %", "100 %", "500 %", "625 %", "500 %", "100 %", "500 %", "1000 %", "500 %"]);
pane.fire("wheel", { deltaY: 9000, clientX: 300, clientY: 150 });
$("#undo").click();
assert.deepEqual([picture.shown, place().width, now("#history button")[0].slice(0, 8)], ["r1", "60px", "Title r1"], "a smaller picture in the same place");
assert.equal(JSON.parse(session["leader-session"])[1].shown, "r1", "a page that is loaded again shows the same");
assert.deepEqual(all("#versions button").map((one) => one.textContent), ["Undo", "Photograph", "Title r1", "Title r2"], "and what came of it");
assert.equal(all(".steps button").length, 0, "one step alone is no list");
all("#history button")[0].click();
assert.equal(picture.shown, "r2", "the last result is the first of the history");
pane.fire("keydown", { key: "0" });

// --- what is taken away, and a result that is repaired further
const taken = [];
const { click } = Object.getPrototypeOf(document.body);
Object.getPrototypeOf(document.body).click = function () { this.tag === "a" ? taken.push([this.attributes.href, this.attributes.download]) : click.call(this); };
$("#save").click();
assert.ok($(".loss").hidden, "PNG loses nothing");
setField("Format of the file", "jpg");
assert.ok(!$(".loss").hidden);
field("Quality of the file").value = "55";
field("Quality of the file").fire("input");
assert.equal($(".loss output").textContent, "55");
$("#save").click();
assert.deepEqual(taken, [["api/files/r2/restored.png", "my holiday-restored.png"], ["api/export/r2/jpg?quality=55", "my holiday-restored.jpg"]]);
$("#further").click();
assert.equal($("#start").textContent, "Repair further");
check("small", true);
check("missing", true);
$("#paint").click();
assert.deepEqual([$("#target-size").textContent, picture.shown], ["60 × 40 becomes 120 × 80 pixels.", "r2"]);
assert.deepEqual([Object.keys(picture.choices), picture.choices.given.small], [["given", "r2"], { size: [45, 25] }]);
assert.ok($("#repairs").textContent.includes("Paint over what is missing.") && !$("#repairs .badge"), "of the photograph alone");
assert.ok($(".before").hidden === false && $(".slider").hidden === false);
const fine = { level: "fine", title: "Looks right", meaning: "Yes.", reasons: [] };
const growing = { ...running, step: 0, preview: "data:image/jpeg;base64,BB" };
answers.push(stream({ state: "waiting", ahead: 1 }, { state: "waiting", ahead: 0 }, growing, { ...growing, preview: undefined, share: 0.75, drafted: false }, done(outcome("f1", { verdict: fine, files: ["restored.png"] }))));
Object.defineProperty(doing, "textContent", { set: (text) => said.push([text, $(".before").hidden, $(".slider").hidden]), get: () => "" });
said.length = 0;
$("#start").click();
await wait(20);
assert.deepEqual(said, [["Beginning", false, false], ["1 picture before yours", false, false], ["You are next", false, false], [under, false, false], ["Step 1 of 2: Restoring", true, true], [under.slice(13), true, true]]);
assert.deepEqual([field("Format of the file").value, $(".loss").hidden, $(".before").hidden, $(".slider").hidden], ["jpg", false, false, false]);
const { picture: base, painted, repairs: chosen } = last("api/restore")[2];
assert.deepEqual([base, painted, chosen], ["r2", "", [{ kind: "small", factor: 2 }, { kind: "missing" }]], "what was painted was on the photograph");
document.body.fire("keydown", { key: "t" });
assert.deepEqual([$(".map").hidden, $("#map").hidden, $(".verdict").classes.has("warned")], [true, true, true]);
document.body.fire("keyup", { key: "t" });
assert.deepEqual([picture.versions.at(-1).token, picture.versions.at(-1).parent], ["f1", "r2"]);
close();
answers.push(stream(growing, growing, done(outcome("g1"))));
$("#start").click();
await wait(10);
assert.equal(after.src, growing.preview);
all("#queue button")[0].click();
assert.equal(after.src, "v");
said.length = 0;
gate = goOn();
await wait(20);
assert.deepEqual([said, picture.shown], [[], "g1"], "another picture is shown meanwhile");
all("#queue button")[1].click();
const chips = () => all("#versions button").map((one) => one.textContent);
all("#versions button").at(-2).click();
assert.deepEqual(chips(), ["Undo", "Photograph", "Title r1", "Title r2", "Title g1"], "of what came of it the last one");
all("#versions button").at(-1).click();
$(".base button").click();
$("#paint").click();
assert.deepEqual([picture.base, picture.shown], [null, null]);
check("missing", false);
const bad = { ...running, state: "refused", error: "It is too dark." };
for (const [answer, told] of [[stream(bad), bad.error], [stream(running), "The program did not answer"], ["", "The queue is full."]]) {
  answers.push(answer);
  $("#start").click();
  await wait(20);
  assert.ok($("#told").textContent.startsWith(told), $("#told").textContent);
  assert.deepEqual([picture.state, state.running, last("api/restore")[2].painted], ["done", null, ""]);
}

offline = true;
$("#start").click();
await wait(20);
assert.match($("#told").textContent, /^The program did not answer; see that it is still running/);
$("#told").textContent = "";
await look(addPicture({ name: "elsewhere", sample: "small" }));
assert.deepEqual([state.pictures.pop().state, $("#told").textContent], ["failed", ""], "an error of a picture that is not shown is not told");
offline = false;

// --- every picture of the queue, with the repairs of this one; a stop ends the rest
document.fire("paste", { clipboardData: { files: [new File(["a"], "my holiday.png", { type: "image/png" }), new File(["b"], "ü/c\\d.v2.png", { type: "image/png" })] } });
await wait();
check("small", false);
check("noisy", true);
check("missing", true);
paint([3, 4]);
$("#same").checked = true;
answers.push(stream({ ...running, left: null }, done(outcome("s1"))), stream({ ...running, state: "stopped", left: null }));
const soFar = asked.length;
$("#all").click();
$("#cancel").fire("click");
await wait(20);
assert.equal(asked.slice(soFar).filter(([, one]) => one === "api/restore" || one === "api/pictures").length, 0, "stopped before it began");
$("#all").click();
await wait(30);
const wishes = asked.filter(([, one]) => one === "api/restore").slice(-2).map(([, , wish]) => [wish.picture, wish.painted !== "", ...wish.repairs.map(({ kind }) => kind)]);
assert.deepEqual(wishes, [["t2", true, "noisy", "missing"], ["t3", false, "noisy", "missing"]]);
assert.ok(state.pictures[2].choices.given !== state.pictures[3].choices.given, "each has its own from then on");
assert.deepEqual([$("#told").textContent, $("#left").textContent, $("#told").classes.has("calm")], ["Stopped. What was finished is kept.", "", true]);
assert.deepEqual(state.pictures.map((one) => one.state), ["done", "done", "done", "ready"]);
assert.equal(state.current, state.pictures.at(-1).id, "the one at work is shown");
assert.deepEqual(last("api/stop")[0], "POST");

answers.push(stream(bad));
$("#all").click();
await wait(20);
assert.deepEqual([state.pictures.at(-1).state, all("#queue .failed .state").map((one) => one.textContent)], ["failed", ["It is too dark."]]);
document.fire("paste", { clipboardData: { files: [new File(["d"], "plain.heic", { type: "image/heic" })] } });
await wait();
$("#same").checked = false;
$("#all").click();
await wait(10);
assert.deepEqual([last("api/restore")[2].picture, all("#queue .state").at(-1).textContent], ["t3", "nothing to repair"]);
assert.equal(all("#queue img").at(-1).src, "api/files/t4/view.png", "what the browser may not be able to show");
all("#queue button")[3].click();

// --- two ways, the same seed
const modes = () => ["restore", "compare"].map((mode) => $(`#mode-${mode}`).getAttribute("aria-pressed"));
assert.deepEqual(modes(), ["true", "false"]);
$("#mode-compare").click();
assert.equal($("#quality"), null, "each side has its own");
assert.deepEqual([modes(), $("#before").hidden, all(".pane-title").map((one) => one.hidden)], [["false", "true"], true, [false, false]]);
assert.deepEqual(all(".pane-title").map((one) => one.textContent), ["A: the photograph", "B: the photograph"]);
state.settings.budget = "0.05"; // of one path, which another may not have
state.sides[1].method = "ddnm";
state.sides[1].plugins = "satp";
answers.push(stream(done(outcome("x1"))), stream(done(outcome("x2"))));
$("#start").click();
await wait(30);
const two = asked.filter(([, one]) => one === "api/restore").slice(-2).map(([, , wish]) => [wish.quality, wish.method, wish.plugins, wish.seed, wish.draft_first, wish.budget]);
assert.deepEqual(two, [["draft", "ddrm", undefined, "7", false, ""], ["standard", "ddnm", "satp", "7", false, ""]]);
assert.deepEqual(all(".pane-title").map((one) => one.textContent), ["A: Title x1, draft, 1.5 s, look at it", "B: Title x2, ddnm + satp, 1.5 s, look at it"]);
assert.deepEqual(all(".pane .after").map((one) => one.src), ["api/files/x1/restored.png", "api/files/x2/restored.png"]);
assert.deepEqual([...all(".pane .before"), $("#result")].map((one) => one.hidden), [true, true, true], "two results alone");
assert.ok(field("Show").children.some((one) => one.value === "x2"));
setField("Show", "x2");
assert.deepEqual(all(".pane .after").map((one) => one.src), ["api/files/x2/restored.png", "api/files/x2/restored.png"]);
answers.push(stream(done(outcome("x3"))));
$("#start").click();
await wait(20);
assert.deepEqual(all(".pane .after").map((one) => one.src), ["api/files/x2/restored.png", "api/files/x3/restored.png"], "what is there is not made again");
setField("Show", "");
assert.equal($(".pane .after").src, "api/files/x1/restored.png", "the last run of this side");
setField("Quality", "best");
assert.equal(all(".pane-title")[0].textContent, "A: the photograph", "what was made another way is no longer shown");
for (const [number, words] of ["", "within 3 levels"].entries()) {
  all(".pane")[number].fire("pointermove", at(20, 4));
  await wait();
  assert.equal($("#hover").textContent, words, "of the side under the mouse");
}

// --- all results in one file, names that come twice with a number
assert.equal($("#zip").hidden, false);
picture.shown = "r1";
$("#zip").click();
await wait(20);
all("#samples button")[0].click();
await wait(20);
assert.deepEqual([last("api/samples/small")[0], state.pictures.at(-1).name, state.pictures.at(-1).token], ["POST", "sample small", "t9"]);
$("#mode-restore").click();
check("missing", true);
$("#paint").click();
assert.deepEqual(strokes(), [2048, 512], "no larger than the server takes");
pane.fire("dblclick", { clientX: 300, clientY: 150 });
assert.equal($("#zoom").textContent, "100 %", "twice as large would hardly show more");
for (const words of ["Invert", "Clear"]) tool(words);
answers.push(stream(bad));
$("#start").click();
await wait(20);
assert.equal(last("api/restore")[2].painted, "", "nothing is left of it");
state.running = picture.id;
const late = new File(["e"], "late.png", { type: "image/png" });
document.fire("paste", { clipboardData: { files: [late] } });
await wait();
assert.notEqual(last("api/pictures")[2], late, "it waits until the run is over");
writeFileSync(`${folder}/all.zip`, new Uint8Array(await held.get(taken.at(-1)[0]).arrayBuffer()));
process.exit(0);
