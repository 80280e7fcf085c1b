// A diff as it is or side by side, hunk by hunk; a long one opens in slices so that the first lines are there at once.
import { count, region } from "./parts.js";
import { html, useMemo, useState } from "./vendor/preact.js";

const SLICE = 600;

// The parts of a unified diff: its head, and its hunks. Lines of a hunk never begin with "@@ ", so the split is exact.
export function hunks(text) {
  const parts = [{ lines: [] }], lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    if (line.startsWith("@@ ")) parts.push({ lines: [] });
    parts.at(-1).lines.push(line);
  }
  return { head: parts[0].lines, hunks: parts.slice(1).map((each) => each.lines) };
}
export const size = (diff) => { let add = 0, del = 0; for (const line of hunks(diff).hunks.flat()) { if (line[0] === "+") add++; else if (line[0] === "-") del++; } return `+${add} −${del}`; };

const kind = (line) => line[0] === "+" ? "add" : line[0] === "-" ? "del" : line[0] === "@" ? "meta" : "same";
const Unified = ({ lines }) => lines.map((line) => html`<div class=${kind(line)}>${line || " "}</div>`);

// Removed lines beside the added ones that take their place.
function pairs(lines) {
  const rows = [];
  for (let at = 0; at < lines.length;) {
    const left = [], right = [];
    while (lines[at]?.[0] === "-") left.push(lines[at++]);
    while (lines[at]?.[0] === "+") right.push(lines[at++]);
    for (let i = 0; i < Math.max(left.length, right.length); i++) rows.push([left[i], right[i]]);
    if (!left.length && !right.length) rows.push([lines[at], lines[at++]]);
  }
  return rows;
}
const Cell = ({ line }) => html`<td class=${line === undefined ? "none" : kind(line)}>${line === undefined ? "" : line.slice(1) || " "}</td>`;
const Split = ({ lines: [place, ...lines] }) => html`<table class="split"><tbody><tr><td class="meta" colspan="2">${place}</td></tr>
  ${pairs(lines).map(([left, right]) => html`<tr><${Cell} line=${left}/><${Cell} line=${right}/></tr>`)}</tbody></table>`;

export function Diff({ text, label, isSplit, choice }) {
  const [shown, setShown] = useState(SLICE), parsed = useMemo(() => hunks(text), [text]);
  let left = shown;
  const draw = (lines, number) => {
    if (left <= 0) return null;
    const some = lines.slice(0, left);
    left -= lines.length;
    return html`<div key=${number} class="hunk">${choice?.(number)}<div class="lines">${isSplit ? html`<${Split} lines=${some}/>` : html`<${Unified} lines=${some}/>`}</div></div>`;
  };
  const all = parsed.head.length + parsed.hunks.flat().length;
  return html`<div class="diff" ...${region(label)}>${!isSplit && html`<div class="lines">${parsed.head.map((line) => html`<div class="meta">${line}</div>`)}</div>`}
    ${parsed.hunks.map((lines, i) => draw(lines, i + 1))}
    ${all > shown && html`<button class="quiet" onClick=${() => setShown(shown + SLICE * 5)}>Show more of ${count(all - shown, "line")}</button>`}</div>`;
}
