// Markdown as elements. No HTML string exists, pictures are never loaded, and a link shows where it leads. What is not understood stays
// the text that it is.
import { region } from "./parts.js";
import { html } from "./vendor/preact.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/, HEADING = /^(#{1,6})\s+(.*)$/, RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/, QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^(\s*)(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/, ROW = /^\s*\|(.+)\|\s*$/, DIVIDER = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/;
const MAX_DEPTH = 6, SAFE_LINK = /^(?:https?:\/\/|mailto:)[^\s]+$/i;

export const Markdown = ({ text }) => html`<div class="markdown">${blocks(text.split("\n"), 0)}</div>`;

function blocks(lines, depth) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    const [node, next] = block(lines, at, depth);
    if (node) found.push(node);
    at = next;
  }
  return found;
}

function block(lines, at, depth) {
  const line = lines[at], fence = line.match(FENCE), heading = line.match(HEADING);
  if (!line.trim()) return [null, at + 1];
  if (fence) {
    const end = lines.findIndex((each, i) => i > at && each.trim().startsWith(fence[1]) && !each.trim().slice(fence[1].length).trim());
    const inside = lines.slice(at + 1, end < 0 ? lines.length : end);
    return [html`<pre class="block" ...${region(fence[2].trim() ? `code (${fence[2].trim().slice(0, 40)})` : "code")}>${inside.join("\n")}</pre>`, end < 0 ? lines.length : end + 1];
  }
  // One level for all: the headings of a reply are not those of the page.
  if (heading) return [html`<p class="heading">${inline(heading[2], 0)}</p>`, at + 1];
  if (RULE.test(line)) return [html`<hr/>`, at + 1];
  if (QUOTE.test(line) && depth < MAX_DEPTH) {
    const end = endOf(lines, at, (each) => QUOTE.test(each));
    return [html`<blockquote>${blocks(lines.slice(at, end).map((each) => each.match(QUOTE)[1]), depth + 1)}</blockquote>`, end];
  }
  if (ITEM.test(line) && depth < MAX_DEPTH) return list(lines, at, depth);
  if (ROW.test(line) && DIVIDER.test(lines[at + 1] ?? "")) return table(lines, at);
  const end = endOf(lines, at + 1, (each) => each.trim() && !FENCE.test(each) && !HEADING.test(each) && !QUOTE.test(each) && !ITEM.test(each) && !RULE.test(each));
  return [html`<p>${inline(lines.slice(at, end).join("\n"), 0)}</p>`, end];
}

function endOf(lines, at, belongs) {
  let end = at;
  while (end < lines.length && belongs(lines[end])) end++;
  return end;
}

function list(lines, at, depth) {
  const first = lines[at].match(ITEM), indent = first[1].length, isOrdered = first[3] !== undefined, items = [];
  while (at < lines.length) {
    const found = lines[at].match(ITEM);
    if (!found || found[1].length !== indent || (found[3] !== undefined) !== isOrdered) break;
    const end = endOf(lines, at + 1, (each) => each.trim() && each.search(/\S/) > indent);
    const rest = lines.slice(at + 1, end), less = Math.min(...rest.map((each) => each.search(/\S/)), Infinity);
    items.push(html`<li>${inline(found[4], 0)}${rest.length > 0 && blocks(rest.map((each) => each.slice(less)), depth + 1)}</li>`);
    at = end;
    if (!lines[at]?.trim() && ITEM.test(lines[at + 1] ?? "")) at++;
  }
  return [isOrdered ? html`<ol start=${first[3]}>${items}</ol>` : html`<ul>${items}</ul>`, at];
}

function table(lines, at) {
  const cells = (line) => line.match(ROW)[1].split("|").map((each) => inline(each.trim(), 0)), end = endOf(lines, at + 2, (each) => ROW.test(each));
  return [html`<div class="table" ...${region("table")}><table><thead><tr>${cells(lines[at]).map((each) => html`<th>${each}</th>`)}</tr></thead>
    <tbody>${lines.slice(at + 2, end).map((line) => html`<tr>${cells(line).map((each) => html`<td>${each}</td>`)}</tr>`)}</tbody></table></div>`, end];
}

// From left to right; a mark without its end is text. A mark that has no end anywhere is not looked for again.
function inline(text, depth) {
  const parts = [], missing = new Set();
  let plain = "";
  const flush = () => { if (plain) parts.push(plain); plain = ""; };
  for (let at = 0; at < text.length;) {
    const found = missing.size < 3 || "[!".includes(text[at]) ? span(text, at, depth, missing) : null;
    if (!found) { plain += text[at++]; continue; }
    flush();
    parts.push(found[0]);
    at = found[1];
  }
  flush();
  return parts;
}

function span(text, at, depth, missing) {
  const mark = ["`", "**", "*"].find((each) => text.startsWith(each, at));
  if (mark && !missing.has(mark) && depth < MAX_DEPTH) {
    const end = text.indexOf(mark, at + mark.length + 1);
    if (end < 0) { missing.add(mark); return null; }
    const inside = text.slice(at + mark.length, end);
    if (mark === "`") return [html`<code>${inside}</code>`, end + 1];
    if (/^\s|\s$/.test(inside)) return null;
    const inner = inline(inside, depth + 1);
    return [mark === "**" ? html`<strong>${inner}</strong>` : html`<em>${inner}</em>`, end + mark.length];
  }
  const start = text.startsWith("![", at) ? at + 2 : text[at] === "[" ? at + 1 : 0;
  const middle = start ? text.indexOf("](", start) : -1, end = middle > 0 && middle - start < 500 ? text.indexOf(")", middle) : -1;
  if (end < 0 || end - middle > 2000) return null;
  const words = text.slice(start, middle), target = text.slice(middle + 2, end);
  if (start === at + 2) return [html`<span class="dim">[picture: ${words || target}]</span>`, end + 1];
  if (!SAFE_LINK.test(target)) return null;
  return [html`<a href=${target} target="_blank" rel="noopener noreferrer">${words === target ? words : `${words} (${target})`}</a>`, end + 1];
}
