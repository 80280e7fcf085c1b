// The list of sessions, newest activity first, a page at a time; full-text search; and starting a new one.
import { get, may, post } from "../api.js";
import { Empty, Page, Problem, Tag, VirtualList, ago, bind, count, href, modelName, money, sessionName, shortId, useAttempt, useData } from "../parts.js";
import { onNews, onReset } from "../stream.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

export const STATES = { waiting: ["waits for you", "ask"], processing: ["working", "good"], ready: ["", ""] };

export function Sessions() {
  const [list, setList] = useState([]), [error, setError] = useState(null), [activity, setActivity] = useState(""), [query, setQuery] = useState("");
  const [isLoaded, setLoaded] = useState(false), next = useRef(null), busy = useRef(false);
  const load = async (isMore) => {
    if (busy.current || (isMore && !next.current)) return;
    busy.current = true;
    try {
      const words = new URLSearchParams({ limit: "100", ...(activity && { activity }), ...(isMore && { before: next.current }) });
      const page = await get(`/api/sessions?${words}`);
      next.current = page.next ?? null;
      setList((old) => { const had = new Set(isMore ? old.map((each) => each.id) : []); return [...(isMore ? old : []), ...(page.sessions ?? []).filter((each) => !had.has(each.id))]; });
      setError(null); setLoaded(true);
    } catch (problem) { setError(problem); } finally { busy.current = false; }
  };
  useEffect(() => {
    load(false);
    let timer = 0;
    const soon = () => { if (!timer) timer = setTimeout(() => { timer = 0; if (!next.current || list.length <= 100) load(false); }, 400); };
    const offs = [onReset(soon), onNews((news) => { if (["session-opened", "turn-ended", "message-posted", "escalation-opened", "session-renamed"].includes(news.event) || news.settled) soon(); })];
    return () => { clearTimeout(timer); offs.forEach((off) => off()); };
  }, [activity]);
  return html`<${Page} title="Sessions" error=${error}>
    ${may("operate") && html`<${NewSession}/>`}
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}><label class="visually-hidden" for="q">Search what was said</label><input id="q" type="search" placeholder="Search what was said" ...${bind(query, setQuery)}/>
      <label class="visually-hidden" for="activity">State</label><select id="activity" ...${bind(activity, setActivity)}><option value="">Every state</option><option value="waiting">Waits for you</option><option value="processing">Working</option></select></form>
    ${query.trim() ? html`<${Found} query=${query.trim()}/>` : isLoaded && (list.length ? html`<${VirtualList} items=${list} rowHeight=${66} label="sessions" onEnd=${() => load(true)} row=${Line}/>` : html`<${Empty} title="No sessions">Start one above, or with <code>holdfast</code> in a terminal.<//>`)}<//>`;
}

function Line(each) {
  const [words, kind] = STATES[each.activity ?? "ready"];
  return html`<a class="line" href=${href(each.id)}><span class="line-head"><span class="line-title">${sessionName(each)}</span><span class="dim">${ago(each.active_ms ?? 0)}</span></span>
    <span class="line-sub dim">${words && html`<${Tag} kind=${kind}>${words}<//> `}${each.lifecycle && each.lifecycle !== "open" ? html`<${Tag}>${each.lifecycle}<//> ` : ""}${count(each.turns ?? 0, "turn")} · ${money(each.cost_usd === undefined ? 0 : each.cost_usd)} · ${modelName(each.model)} · ${each.workspace || "its own folder"} · ${shortId(each.id)}</span></a>`;
}

function Found({ query }) {
  const { data, error } = useData(() => get(`/api/search?q=${encodeURIComponent(query)}`), [query]);
  return html`<${Problem} error=${error}/>${data && (data.length ? html`<ul class="talk" aria-label="search results">${data.map((each) => html`<li key=${each.session + each.seq}><a href=${href(each.session)}>session ${shortId(each.session)}</a> <span class="dim">turn ${each.turn}</span><div>${each.pieces.map((piece, i) => i % 2 ? html`<mark class="mark">${piece}</mark>` : piece)}</div></li>`)}</ul>` : html`<${Empty} title="Nothing found"/>`)}`;
}

function NewSession() {
  const [text, setText] = useState(""), [folder, setFolder] = useState(""), [isSending, setSending] = useState(false), [error, attempt] = useAttempt();
  const start = attempt(async () => { setSending(true); try { location.hash = href((await post("/api/sessions", { text, folder: folder || null })).session); } finally { setSending(false); } });
  return html`<details><summary>New session</summary><${Problem} error=${error}/><label for="new-text">Message</label><textarea id="new-text" ...${bind(text, setText)}></textarea>
    <div class="bar"><label for="new-folder">Folder</label><input id="new-folder" placeholder="its own" ...${bind(folder, setFolder)}/><button class="primary" disabled=${!text.trim() || isSending} onClick=${start}>Start</button></div></details>`;
}
