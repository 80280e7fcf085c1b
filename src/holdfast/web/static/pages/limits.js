// The limits of a session, and the saved approvals that apply to it.
import { post } from "../api.js";
import { meant } from "../hold.js";
import { Empty, Page, Table, bind, path, useAttempt, useSessionData } from "../parts.js";
import { SessionTabs } from "./session.js";
import { onNews } from "../stream.js";
import { html, useEffect, useState } from "../vendor/preact.js";

const UNITS = { tokens: "tokens", cost_usd: "US dollars", wall_seconds: "seconds of work", steps: "steps", calls: "calls", iterations: "iterations", bytes_written: "bytes written" };
const shown = (value) => value == null ? "" : Number(value).toLocaleString("en", { maximumFractionDigits: 2 });

export function Limits({ session }) {
  const budget = useSessionData(session, "/budget"), grants = useSessionData(session, "/grants");
  const [added, setAdded] = useState(""), [problem, attempt] = useAttempt();
  useEffect(() => onNews((news) => { if (news.session !== session) return; if (news.event === "budget-raised" || news.event === "turn-ended") budget.reload(); if (news.event.startsWith("grant-")) grants.reload(); }), [session]);
  const raise = attempt(async () => { await post(path(session, "/budget"), { added }); setAdded(""); budget.reload(); });
  const names = Object.keys({ ...budget.data?.limits, ...budget.data?.spent });
  return html`<${Page} title="Limits" error=${problem ?? budget.error ?? grants.error}><${SessionTabs} session=${session} on="Limits"/>
    ${budget.data && html`<h2>Budget</h2>${names.length ? html`<${Table} label="budget" heads=${["What", "#Spent", "#Limit"]} rows=${names.map((name) => [UNITS[name] ?? name, shown(budget.data.spent[name]), shown(budget.data.limits[name]) || "none"])}/>` : html`<p class="dim">It has spent nothing and has no limits.</p>`}
      <form class="bar" onSubmit=${(event) => { event.preventDefault(); if (added.trim()) raise(); }}><label for="added">Add</label><input id="added" placeholder="usd=1,tokens=50k" ...${bind(added, setAdded)}/><button disabled=${!added.trim()}>Raise the limits</button></form>`}
    ${grants.data && html`<h2>Saved approvals</h2>${grants.data.length ? html`<ul>${grants.data.map(({ grant, text }) => html`<li key=${grant.id}>${text} <button class="no" aria-label=${`Revoke ${grant.id}`} onClick=${meant(attempt(async () => { await post(path(session, "/revoke"), { grant: grant.id }); grants.reload(); }))}>Revoke</button></li>`)}</ul>` : html`<${Empty} title="No saved approvals"/>`}`}<//>`;
}
