// The server's answers. What is refused becomes an Error whose message is a sentence for people.

const LOST = "The program did not answer; see that it is still running, and try again.";

async function ask(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error(LOST);
  }
  if (answer.ok) return answer;
  let told = LOST;
  try {
    told = (await answer.json()).error ?? LOST;
  } catch {
    // not one of our own answers: what we know is that there was none
  }
  throw new Error(told);
}

const post = (address, body) =>
  ask(address, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });

export const readSite = async () => (await ask("api/site")).json();

// Only the bytes are sent; the name of the file stays in this browser.
export const sendPicture = async (file) =>
  (await ask("api/pictures", { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } })).json();

export const takeSample = async (name) => (await ask(`api/samples/${name}`, { method: "POST" })).json();
export const readFindings = async (token) => (await ask(`api/pictures/${token}/findings`)).json();
export const findDamage = async (token) => (await ask(`api/pictures/${token}/damage`)).blob();
export const estimate = async (wish) => (await post("api/estimate", wish)).json();
export const stop = () => post("api/stop", {});
export const fileAddress = (token, name) => `api/files/${token}/${name}`;
export const exportAddress = (token, format, quality) => `api/export/${token}/${format}?quality=${quality}`;
export const readExport = async (token, format, quality) => (await ask(exportAddress(token, format, quality))).blob();
export const isKept = (token) =>
  fetch(fileAddress(token, "restored.png"), { method: "HEAD" }).then((answer) => answer.ok, () => false);

// Runs a wish; `onNews` gets every line of the stream. The last one says how it ended.
export async function restore(wish, onNews) {
  const answer = await post("api/restore", wish);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let last = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      last = JSON.parse(line);
      onNews(last);
    }
  }
  if (!last || !["done", "stopped", "refused"].includes(last.state)) throw new Error(LOST);
  return last;
}
