// Every call of a session with its decision and result, refused calls included.
import { get } from "../api.js";
import { Empty, Page, Table, Tag, bind, options, path, span, useSessionData, when } from "../parts.js";
import { SessionTabs } from "./session.js";
import { onNews } from "../stream.js";
import { html, useEffect, useState } from "../vendor/preact.js";

const TONES = { ok: "good", refused: "bad", error: "bad", timeout: "bad", waiting: "ask", begun: "ask" };
export function Audit({ session }) {
  const { data, error, reload } = useSessionData(session, "/audit");
  const [operation, setOperation] = useState(""), [result, setResult] = useState("");
  useEffect(() => onNews((news) => { if (news.session === session && news.event.startsWith("call-")) reload(); }), [session]);
  const download = async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await get(path(session, "/audit.csv"))], { type: "text/csv" }));
    link.download = `audit-${session}.csv`; link.click(); URL.revokeObjectURL(link.href);
  };
  const shown = (data ?? []).filter((each) => (!operation || each.operation.includes(operation)) && (!result || each.result === result));
  return html`<${Page} title="Audit" error=${error}><${SessionTabs} session=${session} on="Audit"/>
    <div class="bar"><label for="op">Operation</label><input id="op" ...${bind(operation, setOperation)}/><label for="result">Result</label><select id="result" ...${bind(result, setResult)}><option value="">every</option>${options([...new Set((data ?? []).map((each) => each.result))])}</select><button onClick=${download}>Export CSV</button></div>
    ${data && (shown.length ? html`<${Table} label="calls" heads=${["Call", "Operation", "Decision", "Result", "Approved by", "#Took", "When"]} rows=${shown.slice(-1000).map((each) => [html`<span class="mono">${each.call}</span>`, html`<span class="mono">${each.operation}<div class="dim">${JSON.stringify(each.arguments).slice(0, 200)}</div></span>`, html`${each.decision.verdict}<div class="dim">${each.decision.rule}: ${each.decision.reason}</div>`, html`<${Tag} kind=${TONES[each.result]}>${each.result}<//>${each.error && html`<div class="dim">${each.error.slice(0, 200)}</div>`}`, html`${each.approver ? `${each.approver}, ${each.transport}` : ""}`, each.duration_ms ? span(each.duration_ms) : "", when(each.at_ms)])}/>` : html`<${Empty} title="No calls"/>`)}<//>`;
}
