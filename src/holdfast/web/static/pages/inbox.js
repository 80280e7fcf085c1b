// The inbox: what waits in all sessions. A card that is settled elsewhere leaves a stub until the pointer is away, so that no other card
// slides under a hand that is about to press.
import { may, post } from "../api.js";
import { Hold, SETTLE_MS, meant } from "../hold.js";
import { Field, Page, Problem, Select, State, Table, Tabs, ago, bind, href, region, sessionName, some, span, useData, when } from "../parts.js";
import { useWaiting } from "../waiting.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

const LENGTHS = { turn: "turn", times: "N times", minutes: "10 minutes", session: "session", always: "always" }, MINUTES = 10;

const DELIVERIES = { __proto__: null, kept: "it is kept until a worker applies it", sent: "the process that holds the session has not confirmed it yet" };
const address = ({ session, escalation }) => `/api/waiting/${encodeURIComponent(session)}/${encodeURIComponent(escalation.id)}`;
const parsed = (text) => { try { const value = JSON.parse(text); return value && typeof value === "object" && !Array.isArray(value) ? value : null; } catch { return null; } };

export function Cards({ waiting }) {
  const box = useRef(), inside = useRef(false);
  useEffect(() => {
    if (waiting.isStill) return;
    const timer = setInterval(() => { if (!inside.current && !box.current?.contains(document.activeElement)) waiting.sweep(); }, 1500);
    return () => clearInterval(timer);
  }, [waiting.isStill]);
  return html`<div ref=${box} onPointerEnter=${() => { inside.current = true; }} onPointerLeave=${() => { inside.current = false; }}>
    ${waiting.calls.map((each) => html`<${Card} key=${each.escalation.id} call=${each} gone=${waiting.gone(each.escalation.id)} settle=${waiting.settle}/>`)}</div>`;
}

function Card({ call, gone, settle }) {
  const { escalation } = call, id = escalation.id;
  const [state, setState] = useState("settling"), [error, setError] = useState(null), [more, setMore] = useState(false);
  const [isRead, setRead] = useState(false), [text, setText] = useState("");
  const original = JSON.stringify(escalation.call.arguments, null, 2), [edited, setEdited] = useState(original);
  const node = useRef(), pre = useRef(), height = useRef(0);
  useEffect(() => {
    const timer = setTimeout(() => setState((old) => old === "settling" ? "ready" : old), SETTLE_MS);
    const box = pre.current;
    if (box && box.scrollHeight <= box.clientHeight + 2) setRead(true);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => { if (gone) node.current.style.minHeight = `${height.current}px`; else height.current = node.current.offsetHeight; });
  const isOff = () => state !== "ready" || gone;
  const say = async (body) => {
    setState("sending"); setError(null);
    try {
      const done = await post(address(call), { digest: escalation.digest, ...body });
      const words = body.verdict === "approve" ? call.is_question ? "answered here" : "approved here" : "denied here";
      const more = done.problem || DELIVERIES[done.delivery];
      settle(id, more ? `${words}; ${more}` : words, done.problem ? 2 : 0);
    } catch (problem) {
      setError(problem); setState("ready");
      if (problem.status === 409) settle(id, `not settled here: ${problem.message}`);
    }
  };
  if (gone) return html`<article class="card settled" ref=${node} aria-live="polite"><p>${call.effect}: ${gone}</p></article>`;
  const canApprove = () => !isOff() && isRead;
  const yes = (body) => () => say({ verdict: "approve", ...body });
  const hold = (body, words) => html`<${Hold} act=${yes(body)} isOff=${() => !canApprove()} words=${"approve " + words}/>`;
  const deny = meant(() => say({ verdict: "deny", reason: text.trim() || null }), isOff);
  const acts = () => call.is_question ? html`<textarea aria-label="Your answer" placeholder="Your answer" ...${bind(text, setText)}></textarea>
      <div class="acts"><button class="primary" disabled=${!text.trim() || state !== "ready"} onClick=${meant(yes({ reason: text }), isOff)}>Send the answer</button><button class="no" aria-disabled=${!!isOff()} onClick=${meant(() => say({ verdict: "deny" }), isOff)}>Do not answer</button></div>`
    : html`${!isRead && html`<p class="dim">Scroll the call to its end to approve it.</p>`}
      <div class="acts">${hold({}, "once")}
      <button type="button" class="no" aria-disabled=${!!isOff()} onClick=${deny}>Deny</button>
      <button type="button" class="quiet" aria-expanded=${more} onClick=${() => setMore(!more)}>More</button></div>
      ${more && html`<div class="more"><label>Reason for a denial, which the agent reads<textarea ...${bind(text, setText)}></textarea></label>
        ${may("operate") && html`<label>Edit the call; the policy judges it again<textarea class="mono" ...${bind(edited, setEdited)}></textarea></label>
        ${edited !== original && html`<div class="acts">${parsed(edited) ? hold({ arguments: parsed(edited) }, "the edited call") : html`<span class="dim">not valid JSON</span>`}</div>`}
        ${call.offers.length > 0 && html`<${Longer} call=${call} isOff=${() => !canApprove()} yes=${yes}/>`}`}</div>`}`;
  return html`<article class="card" ref=${node} aria-labelledby=${"t-" + id}>
    <div class="card-head"><h2 id=${"t-" + id}>${call.effect}</h2><span class="dim"><a href=${href(call.session)} title=${call.session}>${sessionName(call)}</a> · waits ${ago(escalation.opened_ms)}${call.seconds_left != null ? ` · ${span(call.seconds_left * 1000)} left, then it is denied` : ""}</span></div>
    <pre class="call" ref=${pre} ...${region((call.is_question ? "the question " : "the exact call ") + id)} onScroll=${(event) => { const box = event.currentTarget; if (box.scrollTop + box.clientHeight >= box.scrollHeight - 4) setRead(true); }}>${call.call.join("\n")}</pre>
    <${Problem} error=${error}/>
    ${!call.is_question && html`<dl class="facts"><dt>Reason</dt><dd>${call.reason}</dd><dt>Values from</dt><dd>${call.values_from}</dd><dt>Can be undone</dt><dd>${call.undo}</dd></dl>`}
    ${may("answer") ? acts() : html`<p class="dim">This device may only look.</p>`}
  </article>`;
}

// An approval for longer: what it covers, how long it lasts, and in one sentence what would be saved. That sentence goes along with the yes.
function Longer({ call, isOff, yes }) {
  const [offer, setOffer] = useState(1), [scope, setScope] = useState("session"), [times, setTimes] = useState("3"), id = call.escalation.id;
  const amount = scope === "times" ? Number(times) : scope === "minutes" ? MINUTES : null;
  const { data, error } = useData(`${address(call)}/rule?${new URLSearchParams({ scope, offer, amount: amount ?? 0 })}`);
  return html`<fieldset><legend>Approve more than this call</legend>
    ${call.offers.map((words, i) => html`<label key=${i} class="offer"><input type="radio" name=${"o-" + id} checked=${offer === i + 1} onChange=${() => setOffer(i + 1)}/> <span>${words}</span></label>`)}
    <div class="bar"><${Select} label="How long" of=${Object.entries(LENGTHS)} ...${bind(scope, setScope)}/>
    ${scope === "times" && html`<${Field} label="N, with this one" type="number" min="1" ...${bind(times, setTimes)}/>`}</div>
    <${Problem} error=${error}/><p role="status">${data && html`This saves: <strong>${data.text}</strong>${scope === "always" && html` <span class="dim">until you revoke it: holdfast grants</span>`}`}</p>
    <div class="acts"><${Hold} act=${() => yes({ scope, offer, amount, rule: data.text })()} isOff=${() => isOff() || !data} words="approve and save this"/></div></fieldset>`;
}

const InboxPage = ({ on, error, children }) => html`<${Page} title="Inbox" error=${error}><${Tabs} label="Inbox" on=${on} links=${[["#/", "Waiting"], ["#/answered", "Answered"]]}/>${children}<//>`;

export function Inbox() {
  const waiting = useWaiting();
  return html`<${InboxPage} on="Waiting" error=${waiting.error}>${some(waiting.calls, "Nothing waits for you", () => html`<${Cards} waiting=${waiting}/>`, "Calls that need your approval appear here, from every session on this machine.")}<//>`;
}

const VERDICTS = { approve: "approved", deny: "denied", expire: "expired" };
export function Answered() {
  const { data, error } = useData("/api/answered", (news) => news.settled);
  return html`<${InboxPage} on="Answered" error=${error}>
    ${some(data, "Nothing was answered lately", () => html`<${Table} label="answered calls" heads=${["When", "What", "Answer", "By", "#Waited"]} rows=${data.map((each) => [when(each.at_ms), html`<a href=${href(each.session)}>${each.effect || sessionName(each)}</a>${each.reason && html`<div class="dim">${each.reason}</div>`}`, html`<${State} of=${VERDICTS[each.verdict]}/>`, html`${each.principal}${each.transport && `, ${each.transport}`}`, each.waited_ms == null ? "" : span(each.waited_ms)])}/>`)}<//>`;
}
