// Staged changes as diffs. A commit carries the digest of each diff that was shown, and is held like an approval.
import { get, post } from "/static/api.js";
import { held, meant } from "/static/hold.js";
import { Diff, Empty, Page, Tag, count, useData } from "/static/parts.js";
import { SessionTabs, path } from "/static/pages/session.js";
import { onNews } from "/static/stream.js";
import { html, useEffect, useState } from "/static/vendor/preact.js";

const size = (diff) => { let add = 0, del = 0; for (const line of diff.split("\n")) { if (line[0] === "+" && !line.startsWith("+++")) add++; else if (line[0] === "-" && !line.startsWith("---")) del++; } return `+${add} −${del}`; };

export function Changes({ session }) {
  const { data, error, reload } = useData(() => get(path(session, "/changes")), [session]);
  const [left, setLeft] = useState(new Set()), [problem, setProblem] = useState(null), [isBusy, setBusy] = useState(false), [holding, setHolding] = useState(false);
  useEffect(() => onNews((news) => { if (news.session === session && ["call-settled", "proposals-committed", "proposals-rejected", "session-rewound", "turn-ended"].includes(news.event)) reload(); }), [session]);
  const chosen = (data ?? []).filter((each) => !left.has(each.path));
  const act = async (part, body) => { setBusy(true); setProblem(null); try { await post(path(session, part), body); } catch (found) { setProblem(found); } setBusy(false); reload(); };
  const isOff = () => isBusy || !chosen.length;
  const choose = (name, on) => setLeft((old) => { const changed = new Set(old); if (on) changed.delete(name); else changed.add(name); return changed; });
  return html`<${Page} title="Changes" error=${problem ?? error}><${SessionTabs} session=${session} on="Changes"/>
    ${data && !data.length && html`<${Empty} title="Nothing is staged">Changes that the agent proposes appear here.<//>`}
    ${data?.length > 0 && html`<div class="bar"><button type="button" aria-disabled=${isOff()} class=${"yes" + (holding ? " holding" : "")} ...${held(() => act("/commit", { shown: Object.fromEntries(chosen.map((each) => [each.path, each.digest])) }), { isOff, onHold: setHolding })}>Hold to commit ${count(chosen.length, "file")}</button>
      <button type="button" class="no" aria-disabled=${isOff()} onClick=${meant(() => act("/reject", { paths: chosen.map((each) => each.path) }), isOff)}>Reject ${count(chosen.length, "file")}</button></div>
      ${data.map(({ path: name, proposal }) => html`<section class="file" key=${name} aria-label=${proposal.path}><div class="file-head"><input type="checkbox" id=${"c-" + name} checked=${!left.has(name)} onChange=${(event) => choose(name, event.currentTarget.checked)}/><label for=${"c-" + name}><strong>${proposal.path}</strong></label>
        <${Tag} kind=${proposal.kind === "deleted" ? "bad" : "good"}>${proposal.kind}<//><span class="dim">${proposal.diff && size(proposal.diff)}${proposal.renamed_from ? ` · renamed from ${proposal.renamed_from}` : ""}</span></div>
        ${proposal.runs_when && html`<p class="runs">This runs when you ${proposal.runs_when}</p>`}${proposal.asks && html`<p class="runs">A program changed it: ${proposal.asks}</p>`}
        ${proposal.diff && html`<${Diff} text=${proposal.diff} label=${"changes of " + proposal.path}/>`}</section>`)}`}<//>`;
}
