// The limits of a session, and the saved approvals that apply to it.
import { get, post } from "/static/api.js";
import { meant } from "/static/hold.js";
import { Empty, Page, useData } from "/static/parts.js";
import { SessionTabs, path } from "/static/pages/session.js";
import { onNews } from "/static/stream.js";
import { html, useEffect, useState } from "/static/vendor/preact.js";

const UNITS = { tokens: "tokens", cost_usd: "US dollars", wall_seconds: "seconds of work", steps: "steps", calls: "calls", iterations: "iterations", bytes_written: "bytes written" };
const shown = (value) => value == null ? "" : Number(value).toLocaleString("en", { maximumFractionDigits: 4 });

export function Limits({ session }) {
  const budget = useData(() => get(path(session, "/budget")), [session]), grants = useData(() => get(path(session, "/grants")), [session]);
  const [added, setAdded] = useState(""), [problem, setProblem] = useState(null);
  useEffect(() => onNews((news) => { if (news.session !== session) return; if (news.event === "budget-raised" || news.event === "turn-ended") budget.reload(); if (news.event.startsWith("grant-")) grants.reload(); }), [session]);
  const attempt = (work) => async () => { setProblem(null); try { await work(); } catch (found) { setProblem(found); } };
  const raise = attempt(async () => { await post(path(session, "/budget"), { added }); setAdded(""); budget.reload(); });
  const names = Object.keys({ ...budget.data?.limits, ...budget.data?.spent });
  return html`<${Page} title="Limits" error=${problem ?? budget.error ?? grants.error}><${SessionTabs} session=${session} on="Limits"/>
    ${budget.data && html`<h2>Budget</h2>${names.length ? html`<div class="table" tabindex="0" role="region" aria-label="budget"><table><thead><tr><th>Of</th><th class="number">Spent</th><th class="number">Limit</th></tr></thead><tbody>${names.map((name) => html`<tr key=${name}><td>${UNITS[name] ?? name}</td><td class="number">${shown(budget.data.spent[name])}</td><td class="number">${shown(budget.data.limits[name]) || "none"}</td></tr>`)}</tbody></table></div>` : html`<p class="dim">It has spent nothing and has no limits.</p>`}
      <form class="bar" onSubmit=${(event) => { event.preventDefault(); if (added.trim()) raise(); }}><label for="added">Add</label><input id="added" placeholder="usd=1,tokens=50k" value=${added} onInput=${(event) => setAdded(event.currentTarget.value)}/><button disabled=${!added.trim()}>Raise the limits</button></form>`}
    ${grants.data && html`<h2>Saved approvals</h2>${grants.data.length ? html`<ul>${grants.data.map(({ grant, text }) => html`<li key=${grant.id}>${text} <button class="no" aria-label=${`Revoke ${grant.id}`} onClick=${meant(attempt(async () => { await post(path(session, "/revoke"), { grant: grant.id }); grants.reload(); }))}>Revoke</button></li>`)}</ul>` : html`<${Empty} title="No saved approvals"/>`}`}<//>`;
}
