// The checks of this machine.
import { Page, State, Table, useData } from "../parts.js";
import { html } from "../vendor/preact.js";

export function Doctor() {
  const { data, error, reload } = useData("/api/doctor");
  return html`<${Page} title="Doctor" error=${error} actions=${html`<button onClick=${reload}>Check again</button>`}>${!data && !error && html`<p role="status">Checking this machine. Each check is real, so this takes a moment.</p>`}
    ${data && html`<${Table} label="checks" heads=${["Part", "State", "Found"]} rows=${data.map((each) => [each.part, html`<${State} of=${each.state}/>`, html`${each.detail}${each.fix && each.state !== "ok" && html`<div>Fix: <code>${each.fix}</code></div>`}`])}/>`}<//>`;
}
