// Runs: one picture, every picture of the queue, or two ways for one picture. One job at a time, as the server has it.

import * as api from "./api.js";
import { makeWish } from "./choices.js";
import { $, formatDuration, show, tell } from "./dom.js";
import { addVersions, changed, choicesOf, current, state } from "./state.js";

let stopped = false;

// Hands a picture to the server, once.
export async function send(picture) {
  if (picture.token || picture.state === "loading") return;
  picture.state = "loading";
  changed();
  try {
    const most = state.site.upload_bytes;
    if (picture.file && picture.file.size > most) {
      const size = (picture.file.size / 2 ** 20).toFixed(1);
      throw new Error(`The file has ${size} MB; at most ${most / 2 ** 20} MB are taken here, so make it smaller.`);
    }
    const about = picture.sample ? await api.takeSample(picture.sample) : await api.sendPicture(picture.file);
    Object.assign(picture, about, { state: "ready" });
  } catch (error) {
    fail(picture, error);
  }
  changed();
}

// Has a picture looked at, once, and takes over the repairs that are proposed.
export async function look(picture) {
  await send(picture);
  if (!picture.token || picture.findings) return;
  picture.looking ??= api.readFindings(picture.token);
  try {
    const findings = await picture.looking;
    if (picture.findings) return;
    picture.findings = findings;
    picture.choices.given = Object.fromEntries(findings.repairs.map(({ kind, ...options }) => [kind, options]));
  } catch (error) {
    fail(picture, error);
  }
  changed();
}

function fail(picture, error) {
  Object.assign(picture, { state: "failed", note: error.message });
  if (picture.id === state.current) tell(error.message);
}

// Runs one wish for a picture and shows it while it goes on; the outcomes of its repairs.
async function runWish(picture, wish, stage, prefix = "") {
  const seen = { news: null };
  const watch = (news) => {
    seen.news = news;
    if (news.outcomes?.length) addVersions(picture, news.outcomes, wish);
    if (picture.id !== state.current) return;
    const count = wish.repairs.length;
    const step = count > 1 && news.state === "running" ? `Step ${news.step + 1} of ${count}: ` : "";
    const ahead = news.ahead ? `${news.ahead} picture${news.ahead > 1 ? "s" : ""} before yours` : "You are next";
    const draft = news.drafted ? " (this is a draft; the real one is under way)" : "";
    $("#doing").textContent = news.state === "waiting" ? ahead : `${prefix}${step}${news.words}${draft}`;
    $("#left").textContent = news.left === null || news.left === undefined ? "" : `about ${formatDuration(news.left)} left`;
    if (news.state === "waiting") $("#progress").removeAttribute("value");
    else $("#progress").value = (news.step + news.share) / count;
    if (news.preview) stage.showPreview(news.preview);
  };
  const end = await api.restore(wish, watch);
  if (end.outcomes?.length) addVersions(picture, end.outcomes, wish);
  if (end.state === "refused") throw new Error(end.error);
  if (end.state === "stopped") throw Object.assign(new Error("Stopped."), { stopped: true });
  return end.outcomes;
}

// Everything around a run that all kinds have in common. Returns whether it came to its end.
async function begin(picture, work, batch = false) {
  tell("");
  state.running = picture.id;
  Object.assign(picture, { state: "running", note: "" });
  $("#doing").textContent = "Beginning";
  $("#left").textContent = "";
  $("#progress").removeAttribute("value");
  changed();
  try {
    await work();
    picture.state = "done";
    return true;
  } catch (error) {
    picture.state = picture.versions.length ? "done" : batch && !error.stopped ? "failed" : "ready";
    picture.note = picture.state === "failed" ? error.message : "";
    tell(error.stopped ? "Stopped. What was finished is kept." : error.message, Boolean(error.stopped));
    return false;
  } finally {
    state.running = null;
    changed();
  }
}

export async function runOne(brush, stage) {
  const picture = current();
  stopped = false;
  await begin(picture, () => runWish(picture, makeWish(picture, brush), stage));
}

// Every picture that has no result yet, each with what its own diagnosis proposes, or all with the repairs of this one.
export async function runAll(brush, stage, same) {
  const repairs = structuredClone(choicesOf(current()));
  stopped = false;
  for (const picture of state.pictures) {
    if (stopped) break;
    if (picture.versions.length || picture.state === "failed") continue;
    await look(picture);
    if (picture.state === "failed" || stopped) continue;
    if (same) picture.choices.given = structuredClone(repairs);
    if (!Object.keys(picture.choices.given).length) {
      picture.note = "nothing to repair";
      changed();
      continue;
    }
    state.current = picture.id;
    await begin(picture, () => runWish(picture, makeWish(picture, brush), stage), true);
  }
}

// Two ways for one picture, with the same seed. A side that names a version shows that one.
export async function runBoth(brush, stage) {
  const picture = current();
  stopped = false;
  return begin(picture, async () => {
    for (const [number, side] of state.sides.entries()) {
      const { version, result, ...more } = side;
      if (version) continue;
      const wish = { ...makeWish(picture, brush, more), draft_first: false, budget: "" };
      const outcomes = await runWish(picture, wish, stage, `${number + 1} of 2: `);
      side.result = outcomes.at(-1).token;
      const made = picture.versions.find((one) => one.token === side.result);
      if (more.method) made.quality = [more.method, more.plugins].filter(Boolean).join(" + ");
    }
  });
}

export async function cancel() {
  stopped = true;
  show($("#left"), true);
  $("#doing").textContent = "Stopping";
  await api.stop();
}
