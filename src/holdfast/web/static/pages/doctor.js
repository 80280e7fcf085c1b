// The checks of this machine.
import { get } from "../api.js";
import { Page, Table, Tag, useData } from "../parts.js";
import { html } from "../vendor/preact.js";

const TONES = { ok: "good", note: "ask", bad: "bad" };
export function Doctor() {
  const { data, error, reload } = useData(() => get("/api/doctor"));
  return html`<${Page} title="Doctor" error=${error} actions=${html`<button onClick=${reload}>Check again</button>`}>${!data && !error && html`<p role="status">Checking this machine. Each check is real, so this takes a moment.</p>`}
    ${data && html`<${Table} label="checks" heads=${["Part", "State", "Found"]} rows=${data.map((each, i) => [each.part, html`<${Tag} kind=${TONES[each.state]}>${each.state}<//>`, html`${each.detail}${each.fix && each.state !== "ok" && html`<div>Fix: <code>${each.fix}</code></div>`}`])}/>`}<//>`;
}
