// What sessions used, as a chart and the same figures as a table below it.
import { Bars, Page, Select, Table, bind, modelName, money, number, some, span, useData } from "../parts.js";
import { html, useState } from "../vendor/preact.js";

const GROUPS = ["day", "model", "folder", "team", "session"];
const tokens = (row) => (row.input_tokens ?? 0) + (row.output_tokens ?? 0);
function everyDay(rows) {
  const known = new Map(rows.map((row) => [row.key, row])), days = [], last = rows.at(-1).key;
  for (const day = new Date(rows[0].key); days.at(-1)?.key !== last && days.length < 400; day.setUTCDate(day.getUTCDate() + 1)) { const key = day.toISOString().slice(0, 10); days.push(known.get(key) ?? { key }); }
  return days;
}

export function Usage() {
  const [by, setBy] = useState("day"), [days, setDays] = useState("30");
  const { data, error } = useData(`/api/usage?by=${by}&days=${days}`);
  const line = (row, name) => [name, money(row.cost_usd), ...["input_tokens", "output_tokens", "requests", "calls", "refused", "prompts"].map((each) => number(row[each])), row.answered ? span(row.answer_ms / row.answered) : ""];
  return html`<${Page} title="Usage" error=${error}><div class="bar"><${Select} label="By" of=${GROUPS} ...${bind(by, setBy)}/><${Select} label="Days" of=${["7", "30", "90", "365"]} ...${bind(days, setDays)}/></div>
    ${some(data?.rows, "Nothing was used in this time", (rows) => html`<${Bars} rows=${(by === "day" ? everyDay(rows) : rows).map((row) => ({ key: row.key, value: tokens(row) }))} unit="tokens"/><${Table} label="usage" heads=${[by[0].toUpperCase() + by.slice(1), "#Cost", "#Input", "#Output", "#Requests", "#Calls", "#Refused", "#Prompts", "#Answered in"]} rows=${rows.map((row) => line(row, by === "model" && row.key !== "no model" ? modelName(row.key) : row.key))} foot=${line(data.total, "total")}/>`, "What sessions cost, how often they asked and how long people took appears here.")}<//>`;
}
