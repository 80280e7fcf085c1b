// The checks of this machine.
import { get } from "/static/api.js";
import { Page, Tag, useData } from "/static/parts.js";
import { html } from "/static/vendor/preact.js";

const TONES = { ok: "good", note: "ask", bad: "bad" };
export function Doctor() {
  const { data, error, reload } = useData(() => get("/api/doctor"));
  return html`<${Page} title="Doctor" error=${error} actions=${html`<button onClick=${reload}>Check again</button>`}>${!data && !error && html`<p role="status">Checking this machine. Each check is real, so this takes a moment.</p>`}
    ${data && html`<div class="table" tabindex="0" role="region" aria-label="checks"><table><thead><tr><th>Part</th><th>State</th><th>Found</th></tr></thead><tbody>${data.map((each, i) => html`<tr key=${i}><td>${each.part}</td><td><${Tag} kind=${TONES[each.state]}>${each.state}<//></td><td>${each.detail}${each.fix && each.state !== "ok" && html`<div>Fix: <code>${each.fix}</code></div>`}</td></tr>`)}</tbody></table></div>`}<//>`;
}
