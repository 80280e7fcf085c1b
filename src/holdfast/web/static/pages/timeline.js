// What happened when, as bars on one scale, in a table that reads without the bars.
import { Table, Tag, clip, some, span, useSessionData, when } from "../parts.js";
import { Points, isTurn } from "./points.js";
import { SessionPage } from "./session.js";
import { html } from "../vendor/preact.js";

const Bar = ({ from, whole, start, length, kind }) => html`<svg class=${"bar-track " + kind} viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect x=${(start - from) / whole * 100} width=${Math.max(0.4, length / whole * 100)} height="1"/></svg>`;

export function Timeline({ session }) {
  const { data, error } = useSessionData(session, "/timeline", isTurn), view = useSessionData(session);
  const from = Math.min(...(data ?? []).map((each) => each.start_ms)), to = Math.max(...(data ?? []).map((each) => each.start_ms + (each.length_ms ?? 0)));
  return html`<${SessionPage} session=${session} title="Timeline" error=${error}>
    ${some(data, "Nothing happened yet", () => html`<${Table} label="timeline" heads=${["Kind", "What", "Start", "#Length", "Result", "Place"]} rows=${data.map((each) => [html`<${Tag}>${each.kind}<//>`, clip(each.what, 160), html`<span class="place">${when(each.start_ms, "medium")}</span>`, each.length_ms == null ? "not over" : each.length_ms ? span(each.length_ms) : "", each.result, html`<${Bar} from=${from} whole=${Math.max(1, to - from)} start=${each.start_ms} length=${each.length_ms ?? to - each.start_ms} kind=${each.kind}/>`])}/>`)}<${Points} session=${session} isFork=${!!view.data?.summary.parent}/><//>`;
}
