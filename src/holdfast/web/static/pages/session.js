// One session: its conversation as it happens, what waits in it, and a message box.
import { get, may, post } from "../api.js";
import { Item, Text, merge } from "../conversation.js";
import { Markdown } from "../markdown.js";
import { Page, Problem, Tabs, Tag, bind, count, href, modelName, money, number, path, sessionName, useAttempt, useSessionData, when } from "../parts.js";
import { Cards } from "./inbox.js";
import { STATES } from "./sessions.js";
import { onNews, onReset, onText } from "../stream.js";
import { useWaiting } from "../waiting.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const SessionTabs = ({ session, on }) => html`${on !== "Conversation" && html`<${Of} session=${session}/>`}<${Tabs} label="Session" on=${on} links=${["Conversation", "Changes", "Timeline", "Files", "Audit", "Limits"].map((name, i) => [href(session, i ? "/" + name.toLowerCase() : ""), name])}/>`;

export const SessionPage = ({ session, title, error, children }) => html`<${Page} title=${title} error=${error}><${SessionTabs} session=${session} on=${title}/>${children}<//>`;

function Of({ session }) {
  const { data } = useSessionData(session);
  return html`<p class="dim of">of ${data ? sessionName(data.summary) : "..."}</p>`;
}

export function Session({ session }) {
  const view = useSessionData(session);
  const [talk, setTalk] = useState({ items: [], first: 0, isLoaded: false }), [error, setError] = useState(null), [live, setLive] = useState({});
  // A turn that is not over, and that no process runs: it was interrupted, or answered and not continued.
  const isLeft = useRef(false);
  isLeft.current = view.data?.summary.activity === "processing" && !view.data.is_hosted && !view.data.holder;
  const pieces = useRef({}), waiting = useWaiting(session), foot = useRef(), isAtEnd = useRef(true);
  const load = async () => {
    try { const page = await get(path(session, "/conversation")); setTalk({ items: merge([], page.items), first: page.first, isLoaded: true }); setError(null); }
    catch (problem) { setError(problem); }
  };
  const older = async () => {
    const page = await get(path(session, `/conversation?upto=${talk.first}`));
    setTalk((old) => ({ items: merge(page.items, old.items), first: page.first, isLoaded: true }));
  };
  // Pieces arrive faster than a screen shows them, so they are drawn once a frame.
  const drawing = useRef(0);
  const show = () => { drawing.current ||= requestAnimationFrame(() => { drawing.current = 0; setLive(Object.fromEntries(Object.entries(pieces.current).map(([kind, { text }]) => [kind, text]))); }); };
  const add = ({ kind, text, end }) => { const old = pieces.current[kind] ?? { text: "", end: 0 }; if (end > old.end) { pieces.current[kind] = { text: (old.text + text).slice(-20000), end }; show(); } };
  const clear = (...kinds) => { for (const kind of kinds) if (pieces.current[kind]) pieces.current[kind].text = ""; show(); };
  useEffect(() => { for (const [kind, { text, end }] of Object.entries(view.data?.live ?? {})) if (end > (pieces.current[kind]?.end ?? 0)) { pieces.current[kind] = { text, end }; show(); } }, [view.data]);
  useLayoutEffect(() => {
    load();
    const watch = () => { isAtEnd.current = innerHeight + scrollY > document.body.scrollHeight - 160; };
    addEventListener("scroll", watch, { passive: true });
    const offs = [onReset(() => { load(); view.reload(); }), onNews((news) => {
      if (news.session !== session) return;
      if (news.event === "session-rewound") { load(); view.reload(); return; }
      if (["turn-ended", "message-posted", "model-replied", "session-renamed"].includes(news.event) || news.settled || isLeft.current) view.reload();
      if (news.event === "model-replied" || news.event === "turn-ended") clear("text", "thinking");
      if (["call-settled", "call-refused", "run-ended", "turn-ended"].includes(news.event)) clear("output");
      if (news.items.length) setTalk((old) => ({ ...old, items: merge(old.items, news.items) }));
    }), onText((piece) => { if (piece.session === session) add(piece); })];
    return () => { removeEventListener("scroll", watch); offs.forEach((off) => off()); };
  }, [session]);
  useEffect(() => { if (isAtEnd.current) foot.current?.scrollIntoView({ block: "end" }); }, [talk.items.length, live, waiting.calls?.length]);
  const reveal = async (output) => { try { await post(path(session, "/reveal"), { output }); load(); } catch (problem) { setError(problem); } };
  const summary = view.data?.summary ?? {}, [words, kind] = STATES[isLeft.current ? "left" : summary.activity ?? "ready"];
  return html`<${Page} title=${view.data ? sessionName(summary) : "Session"} error=${error ?? view.error}>
    <p class="dim">${words && html`<${Tag} kind=${kind}>${words}<//> `}${view.data && `${count(summary.turns ?? 0, "turn")} · ${number(summary.tokens)} tokens · ${money(summary.cost_usd)} · ${modelName(summary.model)} · ${summary.policy || ""} · ${summary.workspace || "its own folder"}`}
      ${view.data?.is_hosted ? " · run by this server" : view.data?.holder ? ` · held by process ${view.data.holder.pid} on ${view.data.holder.host} since ${when(view.data.holder.since_ms)}` : ""}</p>
    <${SessionTabs} session=${session} on="Conversation"/>
    ${talk.first > 0 && html`<p><button onClick=${older}>Show earlier</button></p>`}
    <div class="talk" aria-label="Conversation" role="log">${talk.items.map((item, i) => {
      const isAgain = item.text && item.text === talk.items[i - 1]?.text;
      return (!isAgain || item.kind !== "code") && html`<${Item} key=${item.key} live=${live.output} onReveal=${reveal} item=${isAgain && item.kind === "outcome" ? { ...item, text: "" } : item}/>`;
    })}
      ${live.thinking && !live.text && html`<div class="said thinking"><div class="who"><span>thinking ...</span></div><${Text} text=${live.thinking.slice(-600)} label="reasoning"/></div>`}${live.text && html`<div class="said reply"><div class="who"><span>writing ...</span></div><${Markdown} text=${live.text}/></div>`}</div>
    ${waiting.calls?.length > 0 && html`<section aria-label="Waits for you"><h2>Waits for you</h2><${Cards} waiting=${waiting}/></section>`}
    ${may("operate") && html`<${Compose} session=${session} isBusy=${summary.activity === "processing" || summary.activity === "waiting"} reload=${view.reload}/>`}<div ref=${foot}></div><//>`;
}

function Compose({ session, isBusy, reload }) {
  const [text, setText] = useState(""), [said, setSaid] = useState(""), [error, attempt, isSending] = useAttempt();
  const act = (part, body, done) => attempt(async () => { setSaid(""); const answer = await post(path(session, part), body); if (body.text) setText(""); setSaid(answer.by_holder ? `${done} by the process that holds it` : done); reload(); });
  return html`<div class="compose"><${Problem} error=${error}/><textarea aria-label="Message to the agent" placeholder="Message to the agent" ...${bind(text, setText)}></textarea>
    <div class="bar"><button class="primary" disabled=${!text.trim() || isSending} onClick=${act("/messages", { text }, "sent")}>Send</button>
    <button disabled=${!isBusy || isSending} onClick=${act("/cancel", {}, "stopped")}>Stop the turn</button><span class="dim" role="status">${isSending ? "sending" : said}</span></div></div>`;
}
