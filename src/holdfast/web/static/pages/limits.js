// The limits of a session, and the saved approvals that apply to it.
import { post } from "../api.js";
import { meant } from "../hold.js";
import { Field, Table, bind, path, some, useAttempt, useSessionData } from "../parts.js";
import { SessionPage } from "./session.js";
import { html, useState } from "../vendor/preact.js";

const UNITS = { tokens: "tokens", cost_usd: "US dollars", wall_seconds: "seconds of work", steps: "steps", calls: "calls", iterations: "iterations", bytes_written: "bytes written" };
const shown = (value) => value == null ? "" : Number(value).toLocaleString("en", { maximumFractionDigits: 2 });

export function Limits({ session }) {
  const budget = useSessionData(session, "/budget", (event) => event === "budget-raised" || event === "turn-ended"), grants = useSessionData(session, "/grants", (event) => event.startsWith("grant-"));
  const [added, setAdded] = useState(""), [problem, attempt] = useAttempt();
  const raise = attempt(async () => { await post(path(session, "/budget"), { added }); setAdded(""); budget.reload(); });
  const revoke = (id) => attempt(async () => { await post(path(session, "/revoke"), { grant: id }); grants.reload(); });
  const { limits = {}, spent = {} } = budget.data ?? {}, names = Object.keys({ ...limits, ...spent });
  return html`<${SessionPage} session=${session} title="Limits" error=${problem ?? budget.error ?? grants.error}>
    ${budget.data && html`<h2>Budget</h2>${names.length ? html`<${Table} label="budget" heads=${["What", "#Spent", "#Limit"]} rows=${names.map((name) => [UNITS[name] ?? name, shown(spent[name]), shown(limits[name]) || "none"])}/>` : html`<p class="dim">It has spent nothing and has no limits.</p>`}
      <form class="bar" onSubmit=${(event) => { event.preventDefault(); if (added.trim()) raise(); }}><${Field} label="Add" placeholder="usd=1,tokens=50k" ...${bind(added, setAdded)}/><button disabled=${!added.trim()}>Raise the limits</button></form>`}
    ${grants.data && html`<h2>Saved approvals</h2>${some(grants.data, "No saved approvals", (rows) => html`<ul>${rows.map(({ grant, text }) => html`<li key=${grant.id}>${text} <button class="no" aria-label=${`Revoke ${grant.id}`} onClick=${meant(revoke(grant.id))}>Revoke</button></li>`)}</ul>`)}`}<//>`;
}
