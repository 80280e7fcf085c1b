// Policies: rules with file and line, why a call is judged as it is, and what the record says. Read-only.
import { get } from "../api.js";
import { Block, Page, Problem, Select, State, Table, bind, count, useAttempt, useData } from "../parts.js";
import { html, useState } from "../vendor/preact.js";

const SAMPLE = '{"operation": "world.write", "arguments": {"path": "a.txt", "content": "x"}}';

export function Policy() {
  const names = useData("/api/policies"), [name, setName] = useState("project");
  const { data, error } = useData(`/api/policies/${encodeURIComponent(name)}`);
  return html`<${Page} title="Policy" error=${error ?? names.error}><div class="bar"><${Select} label="Policy" of=${names.data?.names ?? [name]} ...${bind(name, setName)}/></div>
    ${data && html`<p>${data.description}</p><h2>Rules, in the order in which they are tried</h2><${Table} label="rules" heads=${["Rule", "Verdict", "Operations", "Where"]} rows=${data.rules.map((rule) => [html`${rule.name}<div class="dim">${rule.reason}</div>`, html`<${State} of=${rule.verdict}/>`, html`<span class="mono">${rule.operations.join(", ")}${rule.tests.map((each) => html`<div class="dim" key=${each}>${each}</div>`)}</span>`, html`<span class="mono place">${rule.source}</span>`])}/>
      ${data.findings.length > 0 && html`<h2>What its check finds</h2><ul>${data.findings.map((each, i) => html`<li key=${i}>${each.level}: ${each.message} <span class="dim">${each.source}</span></li>`)}</ul>`}
      <${Explain} key=${"e" + name} policy=${name}/><${Record} key=${"r" + name} policy=${name}/>`}<//>`;
}

function Explain({ policy }) {
  const [call, setCall] = useState(SAMPLE), [found, setFound] = useState(null), [error, attempt] = useAttempt();
  const ask = attempt(async (event) => { event.preventDefault(); setFound(null); setFound(await get(`/api/policies/${policy}/explain?call=${encodeURIComponent(call)}`)); });
  return html`<h2>Why a call is judged as it is</h2><form onSubmit=${ask}><label>A call; nothing is executed<textarea class="mono" ...${bind(call, setCall)}></textarea></label><button>Explain</button></form><${Problem} error=${error}/>
    ${found && html`<div role="status"><p><${State} of=${found.verdict}/></p><${Block} label="the reasons">${found.lines.join("\n")}<//></div>`}`;
}

function Record({ policy }) {
  const [past, setPast] = useState(null), [rules, setRules] = useState(null), [error, attempt] = useAttempt();
  const ask = (part, set) => attempt(async () => set(await get(`/api/policies/${policy}/${part}`)));
  return html`<h2>What the record says</h2><div class="bar"><button onClick=${ask("backtest", setPast)}>Test it on recorded calls</button><button onClick=${ask("suggestions", setRules)}>Suggest rules from my answers</button></div><${Problem} error=${error}/>
    <div role="status">${past && html`<p>${count(past.calls, "call")} of ${count(past.sessions, "session")}: ${past.changed} would be judged differently, ${past.looser} of them less strictly.</p>${past.changes.length > 0 && html`<ul>${past.changes.slice(0, 100).map((each, i) => html`<li key=${i}>${each.count} × ${each.operation}: <${State} of=${each.before}/> would be <${State} of=${each.after}/></li>`)}</ul>`}`}
    ${rules && html`<p>${rules.rules.length ? `${rules.answered} of ${count(rules.prompts, "approved prompt")} would not have been asked; nothing that was denied is allowed:` : "No rule to suggest."}</p>${rules.rules.map((each) => html`<${Block} key=${each.name} label=${each.name}># answers ${count(each.answers, "approved prompt")}\n${each.yaml}<//>`)}`}</div>`;
}
