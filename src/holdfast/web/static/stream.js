// News of all sessions. A browser keeps six connections to a server, so one tab, the one with the lock, reads the stream for all.
// EventSource cannot send a header, so it is read by hand.
import { get, request } from "./api.js";
import { signal } from "./vendor/preact.js";

export const link = signal("connecting");
const listeners = { news: new Set(), reset: new Set(), text: new Set() };
const on = (kind) => (listener) => { listeners[kind].add(listener); return () => listeners[kind].delete(listener); };
export const onNews = on("news"), onReset = on("reset"), onText = on("text");

// Calls `work` soon after news that it wants: once, however many come.
export function afterNews(wants, work) {
  let timer = 0;
  const soon = () => { timer ||= setTimeout(() => { timer = 0; work(); }, 400); };
  const offs = [onReset(soon), onNews((news) => { if (wants(news)) soon(); })];
  return () => { clearTimeout(timer); offs.forEach((off) => off()); };
}

let last = 0;
const air = new BroadcastChannel("holdfast");
air.onmessage = (message) => { if (message.data.kind === "link") link.value = message.data.data; else take(message.data); };

function take({ kind, data }) {
  if (kind === "news") {
    if (data.row <= last) return;
    last = data.row;
  }
  for (const each of listeners[kind] ?? []) each(data);
}
const share = (frame) => { take(frame); air.postMessage(frame); };
const say = (words) => { link.value = words; air.postMessage({ kind: "link", data: words }); };

function parse(frame) {
  let kind = "news", data = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return data ? { kind, data: JSON.parse(data) } : null;
}

async function read() {
  const response = await request("/api/stream", { headers: { "last-event-id": String(last) } });
  if (response.status === 401 || response.status === 403) { say("signed out"); return false; }
  if (!response.ok) throw new Error(String(response.status));
  say("live");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return true;
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const frame = parse(rest.slice(0, end));
      if (frame) share(frame);
    }
  }
}

async function lead() {
  for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
    try { if (!await read()) return; wait = 250; } catch { /* try again below */ }
    say("reconnecting");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

export async function follow() {
  last = Math.max(last, (await get("/api/row")).row);
  link.value = "live";
  navigator.locks.request("holdfast-stream", lead);
}
