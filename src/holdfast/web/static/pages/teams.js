// Teams: who is on the roster, what every pair does now, and how much they talk.
import { Bars, Empty, Page, Table, Tag, ago, href, number, span, useData } from "../parts.js";
import { afterNews } from "../stream.js";
import { html, useEffect } from "../vendor/preact.js";

const LIFETIMES = { hour: "an hour", day: "a day", week: "a week", month: "30 days", longer: "longer" };
const state = (pair) => pair.in_flight ? ["answering", "good"] : pair.queued ? ["queued", "ask"] : pair.is_archived ? ["archived", ""] : pair.last_failed ? [pair.last_outcome, "bad"] : [pair.last_outcome || "new", ""];
const seconds = (value) => value == null ? "" : span(value * 1000);
function line(each, own) {
  const [words, kind] = state(each);
  return [html`<a href=${href(each.session)}>${each.pair}</a>${each.in_flight && html`<div class="dim">${each.in_flight}</div>`}`, html`<${Tag} kind=${kind}>${words}<//>`, each.queued, own.messages ?? 0, number(own.tokens), seconds(own.median_seconds), seconds(own.slow_seconds), `${ago(each.last_ms)} ago`];
}

export function Teams() {
  const { data, error, reload } = useData("/api/teams");
  useEffect(() => afterNews((news) => /^(team|mail)-/.test(news.session), reload), []);
  if (!data) return html`<${Page} title="Teams" error=${error}/>`;
  const { stats, pairs } = data.overview, talk = Object.fromEntries((stats.pairs ?? []).map((each) => [each.pair, each]));
  const active = [...pairs].sort((a, b) => (talk[b.pair]?.messages ?? 0) - (talk[a.pair]?.messages ?? 0));
  const lasted = Object.entries(LIFETIMES).map(([key, words]) => [words, stats.lifetimes?.[key] ?? 0]);
  const sum = (name) => pairs.reduce((all, each) => all + (name === "queued" ? each.queued : each[name] ? 1 : 0), 0);
  return html`<${Page} title="Teams" error=${error ?? (data.problem ? { message: data.problem } : null)}>
    ${!data.teams.length && !pairs.length ? html`<${Empty} title="There are no teams">Create a roster with <code>holdfast teams init</code>.<//>` : html`
    <dl class="figures"><div><dt>Messages a session</dt><dd>${stats.messages_a_pair}</dd></div><div><dt>Tokens a session</dt><dd>${number(Math.round(stats.tokens_a_pair ?? 0))}</dd></div><div><dt>In flight</dt><dd>${sum("in_flight")}</dd></div><div><dt>Queued</dt><dd>${sum("queued")}</dd></div><div><dt>Failed</dt><dd>${stats.failed - sum("in_flight")} of ${stats.messages}</dd></div></dl>
    ${pairs.length > 0 && html`<h2>Pairs, the most active first</h2><${Table} label="pairs" heads=${["Pair", "Now", "#Queued", "#Messages", "#Tokens", "#Answers in", "#Slowest 5 %", "Last"]} rows=${active.map((each) => line(each, talk[each.pair] ?? {}))}/>
      <h2>How long conversations last</h2><${Bars} rows=${lasted.map(([key, value]) => ({ key, value }))} unit="pairs"/>
      <${Table} label="lifetimes" heads=${["At most", "#Pairs"]} rows=${lasted}/>`}
    ${(stats.damaged ?? []).map((each) => html`<p class="problem" key=${each}>The journal of ${each} is damaged: holdfast verify</p>`)}
    ${data.teams.length > 0 && html`<h2>Roster</h2><ul>${data.teams.map((each) => html`<li key=${each.name}><strong>${each.name}</strong> <${Tag}>${each.member}<//> <span class="dim">${each.policy} · ${each.project} · ${each.description}</span></li>`)}</ul>`}`}<//>`;
}
