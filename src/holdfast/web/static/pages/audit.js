// Every call of a session with its decision and result, refused calls included.
import { get } from "/static/api.js";
import { Empty, Page, Tag, span, useData, when } from "/static/parts.js";
import { SessionTabs, path } from "/static/pages/session.js";
import { onNews } from "/static/stream.js";
import { html, useEffect, useState } from "/static/vendor/preact.js";

const TONES = { ok: "good", refused: "bad", error: "bad", timeout: "bad", waiting: "ask", begun: "ask" };
export function Audit({ session }) {
  const { data, error, reload } = useData(() => get(path(session, "/audit")), [session]);
  const [operation, setOperation] = useState(""), [result, setResult] = useState("");
  useEffect(() => onNews((news) => { if (news.session === session && news.event.startsWith("call-")) reload(); }), [session]);
  const download = async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await get(path(session, "/audit.csv"))], { type: "text/csv" }));
    link.download = `audit-${session}.csv`; link.click(); URL.revokeObjectURL(link.href);
  };
  const shown = (data ?? []).filter((each) => (!operation || each.operation.includes(operation)) && (!result || each.result === result));
  return html`<${Page} title="Audit" error=${error}><${SessionTabs} session=${session} on="Audit"/>
    <div class="bar"><label for="op">Operation</label><input id="op" value=${operation} onInput=${(event) => setOperation(event.currentTarget.value)}/><label for="result">Result</label><select id="result" value=${result} onChange=${(event) => setResult(event.currentTarget.value)}><option value="">every</option>${[...new Set((data ?? []).map((each) => each.result))].map((each) => html`<option key=${each}>${each}</option>`)}</select><button onClick=${download}>Export CSV</button></div>
    ${data && (shown.length ? html`<div class="table" tabindex="0" role="region" aria-label="calls"><table><thead><tr><th>Call</th><th>Operation</th><th>Decision</th><th>Result</th><th>Approved by</th><th class="number">Took</th><th>When</th></tr></thead><tbody>
    ${shown.slice(-1000).map((each) => html`<tr key=${each.call}><td class="mono">${each.call}</td><td class="mono">${each.operation}<div class="dim">${JSON.stringify(each.arguments).slice(0, 200)}</div></td><td>${each.decision.verdict}<div class="dim">${each.decision.rule}: ${each.decision.reason}</div></td><td><${Tag} kind=${TONES[each.result]}>${each.result}<//>${each.error && html`<div class="dim">${each.error.slice(0, 200)}</div>`}</td><td>${each.approver ? `${each.approver}, ${each.transport}` : ""}</td><td class="number">${each.duration_ms ? span(each.duration_ms) : ""}</td><td>${when(each.at_ms)}</td></tr>`)}</tbody></table></div>` : html`<${Empty} title="No calls"/>`)}<//>`;
}
