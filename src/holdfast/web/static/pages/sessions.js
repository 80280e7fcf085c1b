// The list of sessions, newest activity first, a page at a time; full-text search; and starting a new one.
import { get, may, post } from "../api.js";
import { Field, Page, Problem, Select, Tag, VirtualList, ago, bind, count, href, modelName, money, sessionName, shortId, some, useAttempt, useData } from "../parts.js";
import { afterNews } from "../stream.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

export const STATES = { waiting: ["waits for you", "ask"], processing: ["working", "good"], left: ["not running", "ask"], ready: ["", ""] };

const PAGE = 100, NEWS = ["session-opened", "turn-ended", "message-posted", "escalation-opened", "session-renamed"];
const join = (first, rest) => { const had = new Set(first.map((each) => each.id)); return [...first, ...rest.filter((each) => !had.has(each.id))]; };

export function Sessions() {
  const [list, setList] = useState(null), [error, setError] = useState(null), [activity, setActivity] = useState(""), [folder, setFolder] = useState(""), [query, setQuery] = useState("");
  const shown = useRef(null), next = useRef(null), busy = useRef(null);
  const draw = (sessions) => { shown.current = sessions; setList(sessions); };
  const load = async (isMore) => {
    if (isMore && (busy.current || !next.current)) return;
    const mine = busy.current = {};
    try {
      const words = new URLSearchParams({ limit: PAGE, ...(activity && { activity }), ...(folder && { folder }), ...(isMore && { before: next.current }) });
      const { sessions: found = [], left = [], next: end = null } = await get(`/api/sessions?${words}`);
      const sessions = found.map((each) => left.includes(each.id) ? { ...each, activity: "left" } : each), old = shown.current ?? [], isLong = old.length > PAGE;
      if (busy.current !== mine) return;
      if (isMore || !isLong) next.current = end;
      draw(isMore ? join(old, sessions) : isLong ? join(sessions, old) : sessions);
      setError(null);
    } catch (problem) { setError(problem); } finally { if (busy.current === mine) busy.current = null; }
  };
  useLayoutEffect(() => {
    draw(null); load(false);
    return afterNews((news) => NEWS.includes(news.event) || news.settled || shown.current?.some((each) => each.id === news.session && each.activity === "left"), () => load(false));
  }, [activity, folder]);
  const known = useRef(new Set());
  for (const { folder } of list ?? []) if (folder) known.current.add(folder);
  return html`<${Page} title="Sessions" error=${error}>
    ${may("operate") && html`<${NewSession}/>`}
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}><input type="search" aria-label="Search what was said" placeholder="Search what was said" ...${bind(query, setQuery)}/>
      <${Select} label="State" of=${[["", "every"], ["waiting", "waits for you"], ["processing", "working"]]} ...${bind(activity, setActivity)}/>
      <input aria-label="Folder" placeholder="Every folder" list="folders" onChange=${(event) => setFolder(event.currentTarget.value.trim())}/><datalist id="folders">${[...known.current].map((each) => html`<option key=${each}>${each}</option>`)}</datalist></form>
    ${query.trim() ? html`<${Found} query=${query.trim()}/>` : some(list, "No sessions", () => html`<${VirtualList} items=${list} rowHeight=${66} label="sessions" onEnd=${() => load(true)} row=${Line}/>`, html`Start one above, or with <code>holdfast</code> in a terminal.`)}<//>`;
}

function Line(each) {
  const [words, kind] = STATES[each.activity ?? "ready"];
  return html`<a class="line" href=${href(each.id)}><span class="line-head"><span class="line-title">${sessionName(each)}</span><span class="dim">${ago(each.active_ms ?? 0)}</span></span>
    <span class="line-sub dim">${words && html`<${Tag} kind=${kind}>${words}<//> `}${each.lifecycle && each.lifecycle !== "open" ? html`<${Tag}>${each.lifecycle}<//> ` : ""}${count(each.turns ?? 0, "turn")} · ${money(each.cost_usd)} · ${modelName(each.model)} · ${each.workspace || "its own folder"} · ${shortId(each.id)}</span></a>`;
}

function Found({ query }) {
  const { data, error } = useData(`/api/search?q=${encodeURIComponent(query)}`);
  return html`<${Problem} error=${error}/>${some(data, "Nothing found", () => html`<ul class="talk" aria-label="search results">${data.map((each) => html`<li key=${each.session + each.seq}><a href=${href(each.session)}>${sessionName(each)}</a> <span class="dim">turn ${each.turn}</span><div>${each.pieces.map((piece, i) => i % 2 ? html`<mark>${piece}</mark>` : piece)}</div></li>`)}</ul>`)}`;
}

function NewSession() {
  const [text, setText] = useState(""), [folder, setFolder] = useState(""), [error, attempt, isSending] = useAttempt();
  const start = attempt(async () => { location.hash = href((await post("/api/sessions", { text, folder: folder || null })).session); });
  return html`<details><summary>New session</summary><${Problem} error=${error}/><label>Message<textarea ...${bind(text, setText)}></textarea></label>
    <div class="bar"><${Field} label="Folder" placeholder="its own" ...${bind(folder, setFolder)}/><button class="primary" disabled=${!text.trim() || isSending} onClick=${start}>Start</button></div></details>`;
}
