// Browsers that may use this server, links for more of them, and how this one approves.
import { post } from "../api.js";
import { meant, prefersTyping } from "../hold.js";
import { Check, Page, Select, Table, Tag, ago, bind, useAttempt, useData } from "../parts.js";
import { html, useState } from "../vendor/preact.js";

const RIGHTS = { look: "look", answer: "look, approve once, deny", operate: "everything" };
export function Devices() {
  const { data, error, reload } = useData("/api/devices");
  const [right, setRight] = useState("answer"), [made, setMade] = useState(null), [problem, attempt] = useAttempt(), [types, setTypes] = useState(prefersTyping());
  return html`<${Page} title="Devices" error=${problem ?? error}>
    ${data && html`<${Table} label="devices" heads=${["Browser", "May", "Entered", "Seen", "End"]} rows=${data.devices.map((each) => [html`${each.name} ${each.id === data.own && html`<${Tag}>this one<//>`}`, RIGHTS[each.right], html`${ago(each.entered_ms)} ago`, html`${ago(each.seen_ms)} ago`, html`<button class="no" aria-label=${`End ${each.name} ${each.id}`} onClick=${meant(attempt(async () => { await post(`/api/devices/${each.id}/end`, {}); reload(); }))}>End</button>`])}/>`}
    <h2>Another browser</h2>
    <div class="bar"><${Select} label="It may" of=${Object.entries(RIGHTS)} ...${bind(right, setRight)}/><button onClick=${attempt(async () => setMade(await post("/api/devices/link", { right })))}>Make a link</button></div>
    ${made && html`<p role="status">Open this link there within five minutes. It works once: <code>${made.url}</code></p>${made.qr ? html`<svg class="qr" role="img" aria-label="the link as a QR code" viewBox=${`0 0 ${made.qr.size} ${made.qr.size}`}><path d=${made.qr.path}/></svg>` : html`<p class="dim">Only this machine reaches that address. For a phone, with a QR code, start the server with <code>--origin</code>.</p>`}`}
    <h2>How this browser approves</h2><p><${Check} label="Type a number instead of holding a button" value=${types} set=${(on) => { localStorage.setItem("holdfast.approve", on ? "type" : "hold"); setTypes(on); }}/></p><//>`;
}
