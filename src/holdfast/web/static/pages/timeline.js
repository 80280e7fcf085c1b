// What happened when: turns, model requests, calls and waits as bars on one scale, in a table that reads without the bars.
import { get } from "/static/api.js";
import { Empty, Page, Tag, span, useData, when } from "/static/parts.js";
import { Points } from "/static/pages/points.js";
import { SessionTabs, path } from "/static/pages/session.js";
import { html, useLayoutEffect, useRef } from "/static/vendor/preact.js";

function Bar({ from, to, start, length, kind }) {
  const node = useRef(), whole = Math.max(1, to - from);
  useLayoutEffect(() => { node.current.style.left = `${(start - from) / whole * 100}%`; node.current.style.width = `${Math.max(0.4, (length ?? to - start) / whole * 100)}%`; });
  return html`<span class="bar-track" aria-hidden="true"><span ref=${node} class=${"bar-fill " + (kind === "wait" ? "wait" : "")}></span></span>`;
}

export function Timeline({ session }) {
  const { data, error, reload } = useData(() => get(path(session, "/timeline")), [session]);
  const from = Math.min(...(data ?? []).map((each) => each.start_ms)), to = Math.max(...(data ?? []).map((each) => each.start_ms + (each.length_ms ?? 0)));
  return html`<${Page} title="Timeline" error=${error}><${SessionTabs} session=${session} on="Timeline"/>
    ${data && (data.length ? html`<div class="table" tabindex="0" role="region" aria-label="timeline"><table><thead><tr><th>Kind</th><th>What</th><th>Start</th><th class="number">Length</th><th>Result</th><th>When</th></tr></thead><tbody>
    ${data.map((each, i) => html`<tr key=${i}><td><${Tag}>${each.kind}<//></td><td>${each.what?.slice(0, 160)}</td><td>${when(each.start_ms)}</td><td class="number">${each.length_ms == null ? "not over" : each.length_ms ? span(each.length_ms) : ""}</td><td>${each.result}</td><td><${Bar} from=${from} to=${to} start=${each.start_ms} length=${each.length_ms} kind=${each.kind}/></td></tr>`)}</tbody></table></div>` : html`<${Empty} title="Nothing happened yet"/>`)}<${Points} session=${session} onDone=${reload}/><//>`;
}
