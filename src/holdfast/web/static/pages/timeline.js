// What happened when, as bars on one scale, in a table that reads without the bars.
import { Empty, Page, Table, Tag, span, useSessionData, when } from "../parts.js";
import { Points } from "./points.js";
import { SessionTabs } from "./session.js";
import { html } from "../vendor/preact.js";

const Bar = ({ from, whole, start, length, kind }) => html`<svg class=${"bar-track " + kind} viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect x=${(start - from) / whole * 100} width=${Math.max(0.4, length / whole * 100)} height="1"/></svg>`;

export function Timeline({ session }) {
  const { data, error, reload } = useSessionData(session, "/timeline");
  const view = useSessionData(session);
  const from = Math.min(...(data ?? []).map((each) => each.start_ms)), to = Math.max(...(data ?? []).map((each) => each.start_ms + (each.length_ms ?? 0)));
  return html`<${Page} title="Timeline" error=${error}><${SessionTabs} session=${session} on="Timeline"/>
    ${data && (data.length ? html`<${Table} label="timeline" heads=${["Kind", "What", "Start", "#Length", "Result", "Place"]} rows=${data.map((each, i) => [html`<${Tag}>${each.kind}<//>`, each.what?.slice(0, 160), when(each.start_ms, "medium"), each.length_ms == null ? "not over" : each.length_ms ? span(each.length_ms) : "", each.result, html`<${Bar} from=${from} whole=${Math.max(1, to - from)} start=${each.start_ms} length=${each.length_ms ?? to - each.start_ms} kind=${each.kind}/>`])}/>` : html`<${Empty} title="Nothing happened yet"/>`)}<${Points} session=${session} isFork=${!!view.data?.summary.parent} onDone=${reload}/><//>`;
}
