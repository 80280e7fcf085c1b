// What happened when, as bars on one scale, in a table that reads without the bars; and the way back to an earlier turn.
import { get, post } from "../api.js";
import { Diff } from "../diff.js";
import { Hold } from "../hold.js";
import { Problem, Table, Tag, clip, count, href, path, some, span, useAttempt, useSessionData, when } from "../parts.js";
import { SessionPage } from "./session.js";
import { html, useState } from "../vendor/preact.js";

const isTurn = (event) => event === "turn-ended" || event === "session-rewound";
const Bar = ({ from, whole, start, length, kind }) => html`<svg class=${"bar-track " + kind} viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect x=${(start - from) / whole * 100} width=${Math.max(0.4, length / whole * 100)} height="1"/></svg>`;

export function Timeline({ session }) {
  const { data, error } = useSessionData(session, "/timeline", isTurn), view = useSessionData(session);
  const rows = data ?? [], from = Math.min(...rows.map((each) => each.start_ms)), to = Math.max(...rows.map((each) => each.start_ms + (each.length_ms ?? 0)));
  return html`<${SessionPage} session=${session} title="Timeline" error=${error}>
    ${some(data, "Nothing happened yet", () => html`<${Table} label="timeline" heads=${["Kind", "What", "Start", "#Length", "Result", "Place"]} rows=${rows.map((each) => [html`<${Tag}>${each.kind}<//>`, clip(each.what, 160), html`<span class="place">${when(each.start_ms, "medium")}</span>`, each.length_ms == null ? "not over" : each.length_ms ? span(each.length_ms) : "", each.result, html`<${Bar} from=${from} whole=${Math.max(1, to - from)} start=${each.start_ms} length=${each.length_ms ?? to - each.start_ms} kind=${each.kind}/>`])}/>`)}<${Points} session=${session} isFork=${!!view.data?.summary.parent}/><//>`;
}

// Returning to an earlier turn: the plan is shown before anything changes, and what cannot be undone is named.
function Points({ session, isFork }) {
  const { data, error } = useSessionData(session, "/points", isTurn);
  const [plan, show] = useState(null), [said, setSaid] = useState(""), [problem, attempt] = useAttempt();
  const rewind = attempt(async () => { const done = await post(path(session, "/rewind"), { turn: plan.turn, shown: plan.digest }); setSaid(done.by_holder ? "rewound by the process that holds it" : "rewound"); show(null); });
  const { changes = [], left = [], stays = [] } = plan ?? {};
  const fork = (turn) => attempt(async () => { location.hash = href((await post(path(session, "/fork"), { turn })).session); });
  return html`${isFork && html`<${Merge} session=${session}/>`}<${Problem} error=${error}/>${data?.length > 0 && html`<h2>Return to an earlier turn</h2><${Problem} error=${problem}/><p role="status">${said}</p>
    <ul>${data.map((each) => html`<li key=${each.turn}>${each.turn ? `Turn ${each.turn}: ${clip(each.text, 80)}` : "Before the first turn"} <button class="quiet" aria-label=${`Show the plan for turn ${each.turn}`} onClick=${attempt(async () => show(await get(path(session, `/rewind?turn=${each.turn}`))))}>Show the plan</button>${each.turn > 0 && html`<button class="quiet" aria-label=${`Fork here, after turn ${each.turn}`} onClick=${fork(each.turn)}>Fork here</button>`}</li>`)}</ul>
    ${plan && html`<section class="card" aria-label="The plan"><h3>Rewind to ${plan.turn ? `the end of turn ${plan.turn}` : "the start"}</h3><p>${count(changes.length, "file")} would change.</p><ul>${changes.slice(0, 200).map((each) => html`<li key=${each.path}>${each.path} would be ${each.kind}</li>`)}</ul>
      ${left.map((each) => html`<p class="runs">Stays unchanged, because it was not saved: ${each}</p>`)}${stays.map((each) => html`<p class="runs">Cannot be undone: ${each}</p>`)}
      <div class="acts"><${Hold} act=${rewind} words="rewind"/><button onClick=${() => show(null)}>Keep it as it is</button></div></section>`}`}`;
}

// A fork works in a folder of its own. The merge is shown as diffs against the parent's folder before anything changes.
function Merge({ session }) {
  const [plan, setPlan] = useState(null), [said, setSaid] = useState(""), [problem, attempt] = useAttempt();
  const show = attempt(async () => setPlan(await get(path(session, "/merge"))));
  const merge = attempt(async () => { await post(path(session, "/merge"), { shown: plan.digest }); setSaid("merged"); setPlan(null); });
  const { proposals = [], conflicts = [], left = [] } = plan ?? {};
  return html`<h2>Bring it back</h2><${Problem} error=${problem}/><p role="status">${said}</p><button onClick=${show}>Show the merge</button>
    ${plan && html`<section class="card" aria-label="The merge"><h3>${proposals.length ? `${count(proposals.length, "file")} would change in the folder of its parent` : "The fork has nothing that its parent lacks"}</h3>
      ${conflicts.map((each) => html`<p class="runs" key=${each.path}>Conflict in ${each.path}: ${each.reason}</p>`)}${left.map((each) => html`<p class="dim" key=${each}>Not merged, because it is not an ordinary file: ${each}</p>`)}
      ${proposals.map((each) => html`<h3 key=${each.path}>${each.path} (${each.kind})</h3>${each.diff && html`<${Diff} text=${each.diff} label=${"changes of " + each.path}/>`}`)}
      <div class="acts">${proposals.length > 0 && !conflicts.length && html`<${Hold} act=${merge} words="merge"/>`}<button onClick=${() => setPlan(null)}>Close</button></div></section>`}`;
}
