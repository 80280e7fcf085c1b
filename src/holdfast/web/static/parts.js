// Parts that several pages share.
import { get } from "./api.js";
import { onNews } from "./stream.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

export const ago = (ms) => {
  const s = Math.max(0, Math.floor((Date.now() - ms) / 1000));
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
};
export const span = (ms) => ms < 1000 ? `${Math.round(ms)} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : ms < 3600000 ? `${Math.round(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
export const number = (n) => (n ?? 0).toLocaleString("en");
export const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
// A cost that is left out is nothing; one that is null is not known.
export const money = (cost = 0) => cost === null ? "price unknown" : Number(cost) === 0 ? "$0" : `$${Number(cost).toFixed(Number(cost) < 1 ? 4 : 2)}`;
export const clip = (text, length) => text?.length > length ? text.slice(0, length) + "…" : text;
export const when = (ms, timeStyle = "short") => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle });

// A model without the folder of its file and without the address of its server, as the terminal shows it.
export const modelName = (model) => { if (!model) return "no model"; const [provider, ...rest] = model.split(":"), name = rest.join(":").split("#").at(-1).split("/").at(-1); return name ? `${provider}:${name}` : provider; };
// What a person calls a session: its name, its title, its first words, or the four letters at the end of its id, which every command takes.
export const shortId = (id) => id.split("-").at(-1).slice(-8);
export const sessionName = ({ name, title, description, first_words: words, id, session }) => name || title || (id?.startsWith("team-") && description) || clip(words, 80) || `session ${shortId(id ?? session)}`;

export const Problem = ({ error }) => error && html`<p class="problem" role="alert">${error.message}${error.hint && html`<span class="dim"> ${error.hint}</span>`}</p>`;
export const Empty = ({ title, children }) => html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p class="dim">${children}</p>`}</div>`;
export const Tag = ({ kind, children }) => html`<span class=${"tag " + (kind ?? "")}>${children}</span>`;
// A word that has the same colour on every page.
const WORDS = { good: "ok approved proposed allow stage", ask: "waiting running begun escalate note", bad: "error refused denied limit failed nonconverged timeout deny bad" };
export const State = ({ of }) => html`<${Tag} kind=${Object.keys(WORDS).find((kind) => WORDS[kind].split(" ").includes(of))}>${of}<//>`;

// A list that is loaded, or words that say that it is empty.
export const some = (rows, title, draw, hint) => rows && (rows.length ? draw(rows) : html`<${Empty} title=${title}>${hint}<//>`);

// A field and the state behind it, with its name before it.
export const bind = (value, set) => ({ value, onInput: (event) => set(event.currentTarget.value) });
export const Field = ({ label, ...rest }) => html`<label>${label} <input ...${rest}/></label>`;
// The choices are words, or pairs of value and words.
export const Select = ({ label, of, ...rest }) => html`<label>${label} <select ...${rest}>${of.map((each) => html`<option key=${each} value=${[each].flat()[0]}>${[each].flat().at(-1)}</option>`)}</select></label>`;
export const Check = ({ label, value, set }) => html`<label><input type="checkbox" checked=${value} onChange=${(event) => set(event.currentTarget.checked)}/> ${label}</label>`;
// What scrolls is reached by keyboard, and has a name.
export const region = (label) => ({ tabindex: 0, role: "region", "aria-label": label });
export const Tabs = ({ label, on, links, kind = "tabs" }) => html`<nav class=${kind} aria-label=${label}>${links.map(([href, name, more]) => html`<a key=${href} href=${href} aria-current=${on === name ? "page" : undefined}>${name}${more}</a>`)}</nav>`;
// A table that scrolls by itself where it is too wide: rows of cells. A head with # stands over numbers.
const cells = (heads, row, i) => html`<tr key=${i}>${row.map((each, at) => html`<td key=${at} class=${heads[at][0] === "#" ? "number" : undefined} data-head=${heads[at].replace("#", "")}>${each}</td>`)}</tr>`;
export const Table = ({ label, heads, rows, foot }) => html`<div class="table data" ...${region(label)}><table><thead><tr>${heads.map((each) => html`<th key=${each} class=${each[0] === "#" ? "number" : undefined}>${each.replace("#", "")}</th>`)}</tr></thead><tbody>${rows.map((row, i) => cells(heads, row, i))}</tbody>${foot && html`<tfoot>${cells(heads, foot, 0)}</tfoot>`}</table></div>`;
export const href = (session, part = "") => `#/s/${encodeURIComponent(session)}${part}`;

// An act that may fail: what went wrong, a wrapper that remembers it, and whether it runs.
export function useAttempt() {
  const [problem, setProblem] = useState(null), [isBusy, setBusy] = useState(false);
  return [problem, (work) => async (...given) => { setProblem(null); setBusy(true); try { await work(...given); } catch (found) { setProblem(found); } setBusy(false); }, isBusy];
}

// The value of a signal, drawn again when it changes.
export function useSignal(of) {
  const [value, setValue] = useState(of.value);
  useLayoutEffect(() => of.subscribe(setValue), [of]);
  return value;
}

// Text as it is, in a box that scrolls.
export const Block = ({ label, children }) => html`<pre class="call" ...${region(label)}>${children}</pre>`;

// The data of an address: loaded when the page opens, when asked to, and when news concern it.
export function useData(address, concerns) {
  const [state, setState] = useState({}), turn = useRef(0), own = (of) => of.address === address ? of.data : null;
  const reload = async () => {
    const mine = ++turn.current;
    try { const data = await get(address); if (mine === turn.current) setState({ address, data }); }
    catch (error) {
      if (mine !== turn.current) return;
      setState((old) => ({ address, data: own(old), error }));
      if (!error.status) setTimeout(() => mine === turn.current && reload(), 1000); // it was not reached
    }
  };
  useLayoutEffect(() => { // an effect would ask a frame later
    reload();
    const off = concerns && onNews((news) => { if (concerns(news)) reload(); });
    return () => { turn.current++; off?.(); };
  }, [address]);
  return { data: own(state), error: state.error, reload };
}
export const path = (session, part = "") => `/api/sessions/${encodeURIComponent(session)}${part}`;
export const useSessionData = (session, part, concerns) => useData(path(session, part), concerns && ((news) => news.session === session && concerns(news.event)));

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
  return html`<div class="scroll" ref=${box} onScroll=${look} ...${region(label)}>
    <div class="pad" ref=${pad} role="list">${items.slice(range[0], range[1]).map((item, i) =>
      html`<${Row} key=${item.key ?? item.id} top=${(range[0] + i) * rowHeight} height=${rowHeight} at=${range[0] + i + 1} of=${items.length}>${row(item)}<//>`)}</div></div>`;
}
function Row({ top, height, at, of, children }) {
  const node = useRef();
  useLayoutEffect(() => { node.current.style.transform = `translateY(${top}px)`; node.current.style.height = `${height}px`; }, [top, height]);
  return html`<div class="row" role="listitem" ref=${node} aria-posinset=${at} aria-setsize=${of}>${children}</div>`;
}

// Bars of our own, as SVG. A table below every chart has the same figures for those who cannot see it.
const WIDTH = 720, HEIGHT = 130;
export function Bars({ rows, unit }) {
  const shown = rows.slice(-60), most = Math.max(1, ...shown.map((each) => each.value)), step = Math.min(72, WIDTH / Math.max(shown.length, 1));
  const label = (row, i, more) => html`<text class="key" x=${more ? Math.max(step * shown.length, 300) : (i + 0.15) * step} y=${HEIGHT + 17} text-anchor=${more ? "end" : "start"}>${row.key.slice(0, shown.length < 8 ? 10 : 24)}</text>`;
  return html`<svg class="chart" viewBox=${`0 0 ${WIDTH} ${HEIGHT + 24}`} role="img" aria-label=${`${unit} of ${shown.length} rows; the table below has the figures`}><line class="axis" x1="0" y1=${HEIGHT} x2=${WIDTH} y2=${HEIGHT}/>
    ${shown.map((row, i) => { const tall = row.value / most * (HEIGHT - 16); return html`<rect key=${row.key} x=${i * step + step * 0.15} y=${HEIGHT - tall} width=${step * 0.7} height=${Math.max(tall, 1)} rx="2"/>`; })}
    <text x="0" y="11">${number(most)} ${unit}</text>${shown.length < 8 ? shown.map((row, i) => label(row, i)) : html`${label(shown[0], 0)}${label(shown.at(-1), 0, true)}`}</svg>`;
}
