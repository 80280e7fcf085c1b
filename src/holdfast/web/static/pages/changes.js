// Staged changes as diffs, decided by file or by hunk. A commit carries the digest of each diff that was shown, and is held.
import { post } from "../api.js";
import { Diff, hunks, size } from "../diff.js";
import { Hold, meant } from "../hold.js";
import { Empty, Page, Tag, bind, count, path, useSessionData } from "../parts.js";
import { SessionTabs } from "./session.js";
import { onNews } from "../stream.js";
import { html, useEffect, useState } from "../vendor/preact.js";

const NEWS = ["call-settled", "proposals-committed", "proposals-rejected", "proposals-split", "session-rewound", "turn-ended"];
const VIEW = "holdfast.diff";

export function Changes({ session }) {
  const { data, error, reload } = useSessionData(session, "/changes");
  const [left, setLeft] = useState(new Set()), [marks, setMarks] = useState({}), [problem, setProblem] = useState(null), [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false), [check, setCheck] = useState(""), [isSplit, setSplit] = useState(localStorage.getItem(VIEW) === "split");
  useEffect(() => onNews((news) => { if (news.session === session && NEWS.includes(news.event)) reload(); }), [session]);
  const chosen = (data ?? []).filter((each) => !left.has(each.path));
  const act = async (part, body, done) => {
    setBusy(true); setProblem(null); setSaid(body.check ? "the check runs" : "");
    try { const answer = await post(path(session, part), body); setMarks({}); setSaid(answer.check ? `${done}; the check took ${answer.check.seconds.toFixed(1)} s` : done); }
    catch (found) { setProblem(found); setSaid(""); }
    setBusy(false); reload();
  };
  // What was decided about a diff that has changed since does not count.
  const decisions = (data ?? []).map((each) => ({ path: each.path, shown: each.digest, ...picked(marks[each.digest]) })).filter((each) => each.accepted.length + each.rejected.length);
  const commit = () => act("/commit", { shown: Object.fromEntries(chosen.map((each) => [each.path, each.digest])), check: check.trim() }, "committed");
  const isOff = () => isBusy || !chosen.length;
  const choose = (name, on) => setLeft((old) => { const changed = new Set(old); if (on) changed.delete(name); else changed.add(name); return changed; });
  const mark = (digest, number, word) => setMarks((old) => ({ ...old, [digest]: { ...old[digest], [number]: old[digest]?.[number] === word ? undefined : word } }));
  return html`<${Page} title="Changes" error=${problem ?? error}><${SessionTabs} session=${session} on="Changes"/><p role="status" class="dim">${said}</p>
    ${data && !data.length && html`<${Empty} title="Nothing is staged">Changes that the agent proposes appear here.<//>`}
    ${data?.length > 0 && html`<div class="bar">${decisions.length ? html`<${Hold} key="hunks" act=${() => act("/hunks", { decisions }, "done")} isOff=${() => isBusy} words=${words(decisions)}/>`
      : html`<${Hold} key="commit" act=${commit} isOff=${isOff} words=${"commit " + count(chosen.length, "file")}/><button type="button" class="no" aria-disabled=${isOff()} onClick=${meant(() => act("/reject", { paths: chosen.map((each) => each.path) }, "rejected"), isOff)}>Reject ${count(chosen.length, "file")}</button>
        <label for="check">Only if this succeeds</label><input id="check" placeholder="such as pytest -q" ...${bind(check, setCheck)}/>`}
      <label><input type="checkbox" checked=${isSplit} onChange=${(event) => { setSplit(event.currentTarget.checked); localStorage.setItem(VIEW, event.currentTarget.checked ? "split" : "unified"); }}/> Side by side</label></div>
      ${check.trim() && html`<p class="dim">It runs in the command sandbox, without a network, over a copy with all changes.</p>`}
      ${data.map((each) => html`<${File} key=${each.path} change=${each} isChosen=${!left.has(each.path)} choose=${choose} marks=${marks[each.digest] ?? {}} mark=${mark} isSplit=${isSplit}/>`)}`}<//>`;
}

const picked = (marks = {}) => { const of = (word) => Object.keys(marks).filter((each) => marks[each] === word).map(Number); return { accepted: of("accept"), rejected: of("reject") }; };
const words = (decisions) => { const sum = (name) => decisions.reduce((all, each) => all + each[name].length, 0); return `commit ${count(sum("accepted"), "hunk")} and drop ${sum("rejected")}`; };

function File({ change: { path: name, digest, proposal }, isChosen, choose, marks, mark, isSplit }) {
  const button = (number, word, label) => html`<button type="button" class=${"small " + (marks[number] === word ? word : "")} aria-pressed=${marks[number] === word} aria-label=${`${label} hunk ${number} of ${proposal.path}`} onClick=${() => mark(digest, number, word)}>${label}</button>`;
  const choice = hunks(proposal.diff).hunks.length > 1 ? (number) => html`<div class="choice"><span class="dim">Hunk ${number}</span>${button(number, "accept", "Accept")}${button(number, "reject", "Reject")}</div>` : undefined;
  return html`<section class="file" aria-label=${proposal.path}><div class="file-head"><input type="checkbox" id=${"c-" + name} checked=${isChosen} onChange=${(event) => choose(name, event.currentTarget.checked)}/><label for=${"c-" + name}><strong>${proposal.path}</strong></label>
    <${Tag} kind=${proposal.kind === "deleted" ? "bad" : "good"}>${proposal.kind}<//><span class="dim">${proposal.diff && size(proposal.diff)}${proposal.renamed_from ? ` · renamed from ${proposal.renamed_from}` : ""}</span></div>
    ${proposal.runs_when && html`<p class="runs">This runs when you ${proposal.runs_when}</p>`}${proposal.asks && html`<p class="runs">A program changed it: ${proposal.asks}</p>`}
    ${proposal.diff ? html`<${Diff} text=${proposal.diff} label=${"changes of " + proposal.path} isSplit=${isSplit} choice=${choice}/>` : html`<p class="dim">${proposal.is_binary ? "Not text." : "No lines differ."}</p>`}</section>`;
}
