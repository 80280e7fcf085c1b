// What was said and done in a session, item by item.
import { Hold } from "./hold.js";
import { Markdown } from "./markdown.js";
import { State, modelName, region, when } from "./parts.js";
import { html } from "./vendor/preact.js";

const LONG = 400;

// The later item of a key adds to the earlier one: a call keeps what it was and gains how it ended. After a rewind, keys come again.
export function merge(items, more) {
  const known = new Map(items.map((each) => [each.key, each]));
  for (const each of more) {
    let old = known.get(each.key);
    if (old && each.seq > old.seq && !/running|waiting/.test(old.state) && (each.state === "waiting" || each.kind === "call" && each.title)) {
      const key = `${old.key} ${old.seq}`;
      known.set(key, { ...old, key }); old = null;
    }
    known.set(each.key, old && old.kind === "call" && !each.title ? { ...old, state: each.state, result: each.text } : old && old.kind === "approval" ? { ...each, seq: old.seq, effect: old.effect ?? old.title } : each);
  }
  return [...known.values()].sort((a, b) => a.seq - b.seq);
}

export const Text = ({ text, label }) => text ? html`<pre ...${text.length > LONG ? region(label) : {}}>${text}</pre>` : null;

export function Item({ item, live, onReveal }) {
  const state = item.state && html`<${State} of=${item.state}/>`;
  if (item.kind === "call") return html`<${Call} item=${item} state=${state} live=${live}/>`;
  if (item.kind === "thinking") return html`<div class="said thinking"><details><summary>${item.title}</summary><${Text} text=${item.text} label="reasoning"/></details></div>`;
  const title = item.kind === "reply" ? modelName(item.title) : item.effect ? `${item.effect}: ${item.title}` : item.title;
  const head = html`<div class="who"><span>${title} ${item.state !== "ok" && state}</span><span>${when(item.at_ms)}</span></div>`;
  return html`<div class=${"said " + item.kind}>${head}${["message", "reply"].includes(item.kind) ? html`<${Markdown} text=${item.text}/>` : html`<${Text} text=${item.text} label=${item.title}/>`}${item.hidden && onReveal && html`<div class="acts"><${Hold} act=${() => onReveal(item.hidden)} words=${"let the model read " + item.hidden}/></div>`}</div>`;
}

// A call is one line with the value that says most; its arguments and its result are folded below it.
function Call({ item, state, live }) {
  const [first = "", ...rest] = item.text.split("\n"), value = first.slice(first.indexOf(": ") + 2);
  const result = resultText(item.result ?? ""), isLive = item.state === "running" && live;
  return html`<div class="said call"><details open=${isLive || undefined}><summary><span class="mono">${item.title}</span> <span class="brief mono">${value}</span> ${state}</summary>
    ${(rest.length > 0 || value.length > 60) && html`<${Text} text=${item.text} label=${"arguments of " + item.title}/>`}
    ${isLive ? html`<${Text} text=${live} label="output so far"/>` : result ? html`<p class="dim">Result</p><${Text} text=${result} label=${"result of " + item.title}/>` : html`<p class="dim">${item.state === "running" ? "It runs." : "It gave nothing back."}</p>`}</details></div>`;
}

// A program gives an object with its output in it; the output is what a person wants to read.
function resultText(text) {
  if (text[0] !== "{") return text;
  try {
    const { stdout, stderr, output, ...rest } = JSON.parse(text), parts = [output, stdout, stderr].filter((each) => typeof each === "string" && each);
    return parts.length ? [...parts, JSON.stringify(rest)].join("\n") : JSON.stringify(JSON.parse(text), null, 2);
  } catch { return text; }
}
