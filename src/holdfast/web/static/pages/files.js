// The files of a session's workspace with what is staged, read as text.
import { Block, Field, Problem, Tag, bind, count, some, useSessionData } from "../parts.js";
import { SessionPage } from "./session.js";
import { html, useState } from "../vendor/preact.js";

export function Files({ session }) {
  const { data, error } = useSessionData(session, "/files");
  const [open, setOpen] = useState(null), [words, setWords] = useState("");
  const shown = data?.files.filter((each) => each.shown.includes(words));
  return html`<${SessionPage} session=${session} title="Files" error=${error}>
    ${some(data?.files, "No files", (files) => html`<div class="bar"><${Field} label="Name" type="search" ...${bind(words, setWords)}/><span class="dim">${data.is_whole ? count(shown.length, "file") : `the first ${count(files.length, "file")}`}</span></div>
      <ul class="files" aria-label="files">${shown.slice(0, 500).map((each) => html`<li key=${each.path}><button class="quiet" aria-expanded=${open === each.path} onClick=${() => setOpen(open === each.path ? null : each.path)}>${each.shown}</button> <span class="dim">${count(each.size, "byte")}</span> ${each.is_staged && html`<${Tag} kind="ask">staged<//>`}${open === each.path && html`<${Content} session=${session} name=${each.path}/>`}</li>`)}</ul>`)}<//>`;
}

function Content({ session, name }) {
  const { data, error } = useSessionData(session, `/file?path=${encodeURIComponent(name)}`);
  return html`<${Problem} error=${error}/>${data && (data.kind === "binary" ? html`<p class="dim">Not text.</p>` : html`<${Block} label=${"content of " + data.path}>${data.text || "(empty)"}<//>${!data.is_whole && html`<p class="dim">Only the start is shown.</p>`}`)}`;
}
