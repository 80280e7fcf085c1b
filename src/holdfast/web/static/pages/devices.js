// Browsers that may use this server, links for more of them, and how this one approves.
import { get, post } from "/static/api.js";
import { meant } from "/static/hold.js";
import { Page, Tag, ago, useData } from "/static/parts.js";
import { prefersTyping } from "/static/pages/inbox.js";
import { html, useState } from "/static/vendor/preact.js";

const RIGHTS = { look: "look", answer: "look, approve once, deny", operate: "everything" };
export function Devices() {
  const { data, error, reload } = useData(() => get("/api/devices"));
  const [right, setRight] = useState("answer"), [made, setMade] = useState(null), [problem, setProblem] = useState(null), [types, setTypes] = useState(prefersTyping());
  const attempt = (work) => async () => { setProblem(null); try { await work(); } catch (found) { setProblem(found); } };
  return html`<${Page} title="Devices" error=${problem ?? error}>
    ${data && html`<div class="table" tabindex="0" role="region" aria-label="devices"><table><thead><tr><th>Browser</th><th>May</th><th>Entered</th><th>Seen</th><th>End</th></tr></thead><tbody>${data.devices.map((each) => html`<tr key=${each.id}><td>${each.name} ${each.id === data.own && html`<${Tag}>this one<//>`}</td><td>${RIGHTS[each.right]}</td><td>${ago(each.entered_ms)} ago</td><td>${ago(each.seen_ms)} ago</td><td><button class="no" aria-label=${`End ${each.name} ${each.id}`} onClick=${meant(attempt(async () => { await post(`/api/devices/${each.id}/end`, {}); reload(); }))}>End</button></td></tr>`)}</tbody></table></div>`}
    <h2>Another browser</h2><p class="dim">Other machines reach this server only through a TLS proxy: start it with <code>--origin</code> and the address of the proxy.</p>
    <div class="bar"><label for="right">It may</label><select id="right" value=${right} onChange=${(event) => setRight(event.currentTarget.value)}>${Object.entries(RIGHTS).map(([name, words]) => html`<option key=${name} value=${name}>${words}</option>`)}</select><button onClick=${attempt(async () => setMade(await post("/api/devices/link", { right })))}>Make a link</button></div>
    ${made && html`<p role="status">Open this link there within five minutes. It works once: <code>${made.url}</code></p>`}
    <h2>How this browser approves</h2><p><label><input type="checkbox" checked=${types} onChange=${(event) => { localStorage.setItem("holdfast.approve", event.currentTarget.checked ? "type" : "hold"); setTypes(event.currentTarget.checked); }}/> Type a number instead of holding a button</label></p><//>`;
}
