// Staged changes as diffs, decided by file or by hunk. A commit carries the digest of each diff that was shown, and is held.
import { post } from "../api.js";
import { Diff, hunks, size } from "../diff.js";
import { Hold, meant } from "../hold.js";
import { Check, Field, Tag, bind, count, path, some, useAttempt, useSessionData } from "../parts.js";
import { SessionPage } from "./session.js";
import { html, useState } from "../vendor/preact.js";

const NEWS = ["call-settled", "proposals-committed", "proposals-rejected", "proposals-split", "session-rewound", "turn-ended"];
const VIEW = "holdfast.diff";

export function Changes({ session }) {
  const { data, error, reload } = useSessionData(session, "/changes", (event) => NEWS.includes(event));
  const [left, setLeft] = useState(new Set()), [marks, setMarks] = useState({}), [said, setSaid] = useState(""), [problem, attempt, isBusy] = useAttempt();
  const [check, setCheck] = useState(""), [isSplit, setSplit] = useState(localStorage.getItem(VIEW) === "split");
  const chosen = (data ?? []).filter((each) => !left.has(each.path));
  const act = (part, body, done) => attempt(async () => {
    setSaid("");
    try { const answer = await post(path(session, part), body); setMarks({}); setSaid(answer.check ? `${done}; the check took ${answer.check.seconds.toFixed(1)} s` : done); }
    finally { reload(); }
  })();
  // What was decided about a diff that has changed since does not count.
  const decisions = (data ?? []).map((each) => ({ path: each.path, shown: each.digest, ...picked(marks[each.digest]) })).filter((each) => each.accepted.length + each.rejected.length);
  const commit = () => act("/commit", { shown: Object.fromEntries(chosen.map((each) => [each.path, each.digest])), check: check.trim() }, "committed");
  const isOff = () => isBusy || !chosen.length, shown = (data ?? []).map((each) => each.digest).join();
  const choose = (name, on) => setLeft((old) => { const changed = new Set(old); if (on) changed.delete(name); else changed.add(name); return changed; });
  const mark = (digest, number, word) => setMarks((old) => ({ ...old, [digest]: { ...old[digest], [number]: old[digest]?.[number] === word ? undefined : word } }));
  return html`<${SessionPage} session=${session} title="Changes" error=${problem ?? error}><p role="status" class="dim">${isBusy && check.trim() ? "the check runs" : said}</p>
    ${some(data, "Nothing is staged", () => html`<div class="bar">${decisions.length ? html`<${Hold} key="hunks" shown=${shown} act=${() => act("/hunks", { decisions }, "done")} isOff=${() => isBusy} words=${words(decisions)}/>`
      : html`<${Hold} key="commit" shown=${shown} act=${commit} isOff=${isOff} words=${"commit " + count(chosen.length, "file")}/><button type="button" class="no" aria-disabled=${isOff()} onClick=${meant(() => act("/reject", { paths: chosen.map((each) => each.path) }, "rejected"), isOff)}>Reject ${count(chosen.length, "file")}</button>
        <${Field} label="Only if this succeeds" placeholder="such as pytest -q" ...${bind(check, setCheck)}/>`}
      <${Check} label="Side by side" value=${isSplit} set=${(on) => { setSplit(on); localStorage.setItem(VIEW, on ? "split" : "unified"); }}/></div>
      ${check.trim() && html`<p class="dim">It runs in the command sandbox, without a network, over a copy with all changes.</p>`}
      ${data.map((each) => html`<${File} key=${each.path} change=${each} isChosen=${!left.has(each.path)} choose=${choose} marks=${marks[each.digest] ?? {}} mark=${mark} isSplit=${isSplit}/>`)}`, "Changes that the agent proposes appear here.")}<//>`;
}

const picked = (marks = {}) => { const of = (word) => Object.keys(marks).filter((each) => marks[each] === word).map(Number); return { accepted: of("accept"), rejected: of("reject") }; };
const words = (decisions) => { const part = (verb, name) => { const sum = decisions.reduce((all, each) => all + each[name].length, 0); return sum ? [`${verb} ${count(sum, "hunk")}`] : []; }; return [...part("commit", "accepted"), ...part("drop", "rejected")].join(" and "); };

function File({ change: { path: name, digest, proposal }, isChosen, choose, marks, mark, isSplit }) {
  const button = (number, word, label) => html`<button type="button" class=${"small " + (marks[number] === word ? word : "")} aria-pressed=${marks[number] === word} aria-label=${`${label} hunk ${number} of ${proposal.path}`} onClick=${() => mark(digest, number, word)}>${label}</button>`;
  const choice = hunks(proposal.diff).hunks.length > 1 ? (number) => html`<div class="choice"><span class="dim">Hunk ${number}</span>${button(number, "accept", "Accept")}${button(number, "reject", "Reject")}</div>` : undefined;
  return html`<section class="file" aria-label=${proposal.path}><div class="file-head"><input type="checkbox" id=${"c-" + name} checked=${isChosen} onChange=${(event) => choose(name, event.currentTarget.checked)}/><label for=${"c-" + name}><strong>${proposal.path}</strong></label>
    <${Tag} kind=${proposal.kind === "deleted" ? "bad" : "good"}>${proposal.kind}<//><span class="dim">${proposal.diff && size(proposal.diff)}${proposal.renamed_from ? ` · renamed from ${proposal.renamed_from}` : ""}</span></div>
    ${proposal.runs_when && html`<p class="runs">This runs when you ${proposal.runs_when}</p>`}${proposal.asks && html`<p class="runs">A program changed it: ${proposal.asks}</p>`}
    ${proposal.diff ? html`<${Diff} text=${proposal.diff} label=${"changes of " + proposal.path} isSplit=${isSplit} choice=${choice}/>` : html`<p class="dim">${proposal.is_binary ? "Not text." : "No lines differ."}</p>`}</section>`;
}
