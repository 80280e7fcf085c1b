// Parts that several pages share.
import { get } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

export const ago = (ms) => {
  const s = Math.max(0, Math.floor((Date.now() - ms) / 1000));
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
};
export const span = (ms) => ms < 1000 ? `${Math.round(ms)} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : ms < 3600000 ? `${Math.round(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
export const count = (n, noun, plural = noun + "s") => `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
export const money = (cost) => cost == null ? "price unknown" : Number(cost) === 0 ? "$0" : `$${Number(cost).toFixed(Number(cost) < 1 ? 4 : 2)}`;
export const when = (ms, timeStyle = "short") => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle });

// A model without the folder of its file and without the address of its server, as the terminal shows it.
export const modelName = (model) => { if (!model) return "no model"; const [provider, ...rest] = model.split(":"), name = rest.join(":").split("#").at(-1).split("/").at(-1); return name ? `${provider}:${name}` : provider; };
// What a person calls a session: its name, its title, its first words, or the four letters at the end of its id, which every command takes.
export const shortId = (id) => id.split("-").at(-1).slice(-8);
export const sessionName = ({ name, title, description, first_words: words, id, session }) => name || title || (id?.startsWith("team-") && description) || words?.slice(0, 80) || `session ${shortId(id ?? session)}`;

export const Problem = ({ error }) => error && html`<p class="problem" role="alert">${error.message}${error.hint && html`<span class="dim"> ${error.hint}</span>`}</p>`;
export const Empty = ({ title, children }) => html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p class="dim">${children}</p>`}</div>`;
export const Tag = ({ kind, children }) => html`<span class=${"tag " + (kind ?? "")}>${children}</span>`;

// A field and the state behind it.
export const bind = (value, set) => ({ value, onInput: (event) => set(event.currentTarget.value) });
// A table that scrolls by itself where it is too wide: rows of cells. A head with # stands over numbers.
const cells = (heads, row, i) => html`<tr key=${i}>${row.map((each, at) => html`<td key=${at} class=${heads[at][0] === "#" ? "number" : undefined} data-head=${heads[at].replace("#", "")}>${each}</td>`)}</tr>`;
export const Table = ({ label, heads, rows, foot }) => html`<div class="table data" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${heads.map((each) => html`<th key=${each} class=${each[0] === "#" ? "number" : undefined}>${each.replace("#", "")}</th>`)}</tr></thead><tbody>${rows.map((row, i) => cells(heads, row, i))}</tbody>${foot && html`<tfoot>${cells(heads, foot, 0)}</tfoot>`}</table></div>`;
export const href = (session, part = "") => `#/s/${encodeURIComponent(session)}${part}`;

// An act that may fail: what went wrong, and a wrapper that remembers it.
export function useAttempt() {
  const [problem, setProblem] = useState(null);
  return [problem, (work) => async (...given) => { setProblem(null); try { await work(...given); } catch (found) { setProblem(found); } }];
}

// The value of a signal, drawn again when it changes.
export function useSignal(of) {
  const [value, setValue] = useState(of.value);
  useEffect(() => of.subscribe(setValue), [of]);
  return value;
}

export const options = (words) => words.map((each) => html`<option key=${each}>${each}</option>`);
// Text as it is, in a box that scrolls.
export const Block = ({ label, children }) => html`<pre class="call" tabindex="0" role="region" aria-label=${label}>${children}</pre>`;

// Data of a page: loaded when the page opens and again when asked to.
export function useData(load, keys = []) {
  const [state, setState] = useState({ data: null, error: null });
  const turn = useRef(0);
  const reload = async () => {
    const mine = ++turn.current;
    try { const data = await load(); if (mine === turn.current) setState({ data, error: null }); }
    catch (error) { if (mine === turn.current) setState((old) => ({ data: old.data, error })); }
  };
  useEffect(() => { setState({ data: null, error: null }); reload(); return () => { turn.current++; }; }, keys);
  return { ...state, reload };
}

// The same of one session, by the part of its address.
export const path = (session, part = "") => `/api/sessions/${encodeURIComponent(session)}${part}`;
export const useSessionData = (session, part) => useData(() => get(path(session, part)), [session, part]);

export function Page({ title, error, actions, children }) {
  useEffect(() => { document.title = `${title} · Holdfast`; }, [title]);
  return html`<main id="main" tabindex="-1"><div class="page-head"><h1>${title}</h1>${actions}</div><${Problem} error=${error}/>${children}</main>`;
}

// Only the rows in sight are in the page.
export function VirtualList({ items, rowHeight, label, row, onEnd }) {
  const box = useRef(), pad = useRef(), [range, setRange] = useState([0, 30]);
  const look = () => {
    const node = box.current;
    if (!node) return;
    const first = Math.max(0, Math.floor(node.scrollTop / rowHeight) - 8), shown = Math.ceil(node.clientHeight / rowHeight) + 16;
    setRange((old) => old[0] === first && old[1] === first + shown ? old : [first, first + shown]);
    if (onEnd && node.scrollTop + node.clientHeight > items.length * rowHeight - 600) onEnd();
  };
  useLayoutEffect(() => { pad.current.style.height = `${items.length * rowHeight}px`; look(); }, [items.length]);
  return html`<div class="scroll" ref=${box} onScroll=${look} tabindex="0" role="region" aria-label=${label}>
    <div class="pad" ref=${pad} role="list">${items.slice(range[0], range[1]).map((item, i) =>
      html`<${Row} key=${item.key ?? item.id} top=${(range[0] + i) * rowHeight} height=${rowHeight} at=${range[0] + i + 1} of=${items.length}>${row(item)}<//>`)}</div></div>`;
}
function Row({ top, height, at, of, children }) {
  const node = useRef();
  useLayoutEffect(() => { node.current.style.transform = `translateY(${top}px)`; node.current.style.height = `${height}px`; }, [top, height]);
  return html`<div class="row" role="listitem" ref=${node} aria-posinset=${at} aria-setsize=${of}>${children}</div>`;
}
