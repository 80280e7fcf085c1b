// Every call of a session with its decision and result, refused calls included.
import { get } from "../api.js";
import { Field, Select, State, Table, bind, clip, path, some, span, useAttempt, useSessionData, when } from "../parts.js";
import { SessionPage } from "./session.js";
import { html, useState } from "../vendor/preact.js";

const HEADS = ["Call", "Operation", "Decision", "Result", "Answered by", "#Took", "When"];
const line = (each) => [html`<span class="mono">${each.call}</span>`, html`<span class="mono">${each.operation}<div class="dim">${clip(JSON.stringify(each.arguments), 200)}</div></span>`, html`${each.decision.verdict}<div class="dim">${each.decision.rule}: ${each.decision.reason}</div>`,
  html`<${State} of=${each.result}/>${each.error && html`<div class="dim">${clip(each.error, 200)}</div>`}`, each.approver ? `${each.approver}, ${each.transport}` : "", each.duration_ms ? span(each.duration_ms) : "", when(each.at_ms)];

export function Audit({ session }) {
  const { data, error } = useSessionData(session, "/audit", (event) => event.startsWith("call-"));
  const [operation, setOperation] = useState(""), [result, setResult] = useState("");
  const [problem, attempt] = useAttempt(), download = attempt(async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await get(path(session, "/audit.csv"))], { type: "text/csv" }));
    link.download = `audit-${session}.csv`; link.click(); URL.revokeObjectURL(link.href);
  });
  const shown = data?.filter((each) => each.operation.includes(operation) && (!result || each.result === result));
  return html`<${SessionPage} session=${session} title="Audit" error=${problem ?? error}>
    <div class="bar"><${Field} label="Operation" ...${bind(operation, setOperation)}/><${Select} label="Result" of=${[["", "every"], ...new Set(data?.map((each) => each.result))]} ...${bind(result, setResult)}/><button onClick=${download}>Export CSV</button></div>
    ${some(shown, "No calls", (rows) => html`<${Table} label="calls" heads=${HEADS} rows=${rows.slice(-1000).map(line)}/>`)}<//>`;
}
