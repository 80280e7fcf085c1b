// What sessions used, as a chart of our own and the same figures as a table below it.
import { get } from "/static/api.js";
import { Empty, Page, modelName, money, span, useData } from "/static/parts.js";
import { html, useState } from "/static/vendor/preact.js";

const GROUPS = ["day", "model", "folder", "session"], number = (n) => (n ?? 0).toLocaleString("en");
const tokens = (row) => (row.input_tokens ?? 0) + (row.output_tokens ?? 0);
function Chart({ rows }) {
  const shown = rows.slice(-60), most = Math.max(1, ...shown.map(tokens)), width = 720, height = 180, step = Math.min(72, width / Math.max(shown.length, 1));
  return html`<svg class="chart" viewBox=${`0 0 ${width} ${height + 24}`} role="img" aria-label=${`tokens of ${shown.length} rows; the table below has the figures`}><line class="axis" x1="0" y1=${height} x2=${width} y2=${height}/>
    ${shown.map((row, i) => { const tall = tokens(row) / most * (height - 16); return html`<rect key=${row.key} x=${i * step + step * 0.15} y=${height - tall} width=${step * 0.7} height=${Math.max(tall, 1)} rx="2"/>`; })}
    <text x="0" y="11">${number(most)} tokens</text>${shown.length > 0 && html`<text x="0" y=${height + 17}>${shown[0].key.slice(0, 24)}</text>`}${shown.length > 1 && html`<text x=${Math.max(step * shown.length, 300)} y=${height + 17} text-anchor="end">${shown.at(-1).key.slice(0, 24)}</text>`}</svg>`;
}

export function Usage() {
  const [by, setBy] = useState("day"), [days, setDays] = useState("30");
  const { data, error } = useData(() => get(`/api/usage?by=${by}&days=${days}`), [by, days]);
  const line = (row, name) => html`<tr key=${name}><td>${name}</td><td class="number">${money(row.cost_usd === undefined ? 0 : row.cost_usd)}</td><td class="number">${number(row.input_tokens)}</td><td class="number">${number(row.output_tokens)}</td><td class="number">${number(row.requests)}</td><td class="number">${number(row.calls)}</td><td class="number">${number(row.refused)}</td><td class="number">${number(row.prompts)}</td><td class="number">${row.answered ? span(row.answer_ms / row.answered) : ""}</td></tr>`;
  return html`<${Page} title="Usage" error=${error}><div class="bar"><label for="by">By</label><select id="by" value=${by} onChange=${(event) => setBy(event.currentTarget.value)}>${GROUPS.map((each) => html`<option key=${each}>${each}</option>`)}</select>
    <label for="days">Days</label><select id="days" value=${days} onChange=${(event) => setDays(event.currentTarget.value)}>${["7", "30", "90", "365"].map((each) => html`<option key=${each}>${each}</option>`)}</select></div>
    ${data && (data.rows.length ? html`<${Chart} rows=${data.rows}/><div class="table" tabindex="0" role="region" aria-label="usage"><table><thead><tr><th>${by}</th><th class="number">Cost</th><th class="number">Input</th><th class="number">Output</th><th class="number">Requests</th><th class="number">Calls</th><th class="number">Refused</th><th class="number">Prompts</th><th class="number">Answered in</th></tr></thead><tbody>${data.rows.map((row) => line(row, by === "model" && row.key !== "no model" ? modelName(row.key) : row.key))}</tbody><tfoot>${line(data.total, "total")}</tfoot></table></div>` : html`<${Empty} title="Nothing was used in this time"/>`)}<//>`;
}
