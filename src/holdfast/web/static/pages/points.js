// Returning to an earlier turn: the plan is shown before anything changes, and what cannot be undone is named.
import { get, post } from "/static/api.js";
import { held } from "/static/hold.js";
import { Problem, count, useData } from "/static/parts.js";
import { path } from "/static/pages/session.js";
import { html, useState } from "/static/vendor/preact.js";

export function Points({ session, onDone }) {
  const { data, error } = useData(() => get(path(session, "/points")), [session]);
  const [plan, setPlan] = useState(null), [problem, setProblem] = useState(null), [said, setSaid] = useState(""), [holding, setHolding] = useState(false);
  const attempt = (work) => async () => { setProblem(null); setSaid(""); try { await work(); } catch (found) { setProblem(found); } };
  const rewind = attempt(async () => { const done = await post(path(session, "/rewind"), { turn: plan.turn }); setSaid(done.by_holder ? "rewound by the process that holds it" : "rewound"); setPlan(null); onDone(); });
  const fork = (turn) => attempt(async () => { location.hash = `#/s/${encodeURIComponent((await post(path(session, "/fork"), { turn })).session)}`; });
  if (!data?.length) return html`<${Problem} error=${error}/>`;
  return html`<h2>Return to an earlier turn</h2><${Problem} error=${problem}/><p role="status">${said}</p>
    <ul>${data.map((each) => html`<li key=${each.turn}>${each.turn ? `Turn ${each.turn}: ${each.text.slice(0, 80)}` : "Before the first turn"} <button class="quiet" aria-label=${`Show the plan for turn ${each.turn}`} onClick=${attempt(async () => setPlan({ turn: each.turn, ...await get(path(session, `/rewind?turn=${each.turn}`)) }))}>Show the plan</button>${each.turn > 0 && html`<button class="quiet" aria-label=${`Fork here, after turn ${each.turn}`} onClick=${fork(each.turn)}>Fork here</button>`}</li>`)}</ul>
    ${plan && html`<section class="card" aria-label="The plan"><h3>Rewind to ${plan.turn ? `the end of turn ${plan.turn}` : "the start"}</h3><p>${count(plan.changes?.length ?? 0, "file")} would change.</p><ul>${(plan.changes ?? []).slice(0, 200).map((each) => html`<li key=${each.path}>${each.kind} ${each.path}</li>`)}</ul>
      ${(plan.left ?? []).map((each) => html`<p class="runs">Stays unchanged, because it was not saved: ${each}</p>`)}${(plan.stays ?? []).map((each) => html`<p class="runs">Cannot be undone: ${each}</p>`)}
      <div class="acts"><button type="button" class=${"yes" + (holding ? " holding" : "")} ...${held(rewind, { onHold: setHolding })}>Hold to rewind</button><button onClick=${() => setPlan(null)}>Keep it as it is</button></div></section>`}`;
}
