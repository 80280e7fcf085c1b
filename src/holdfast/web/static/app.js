// The shell of the page: entering, navigation by the address behind the hash, and the pages.
import "./visible.js";
import { enter, token } from "./api.js";
import { Page, Problem, Tabs, useSignal } from "./parts.js";
import { follow, link } from "./stream.js";
import { list, load } from "./waiting.js";
import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { Audit } from "./pages/audit.js";
import { Changes } from "./pages/changes.js";
import { Devices } from "./pages/devices.js";
import { Doctor } from "./pages/doctor.js";
import { Files } from "./pages/files.js";
import { Answered, Inbox } from "./pages/inbox.js";
import { Limits } from "./pages/limits.js";
import { Policy } from "./pages/policy.js";
import { Session } from "./pages/session.js";
import { Sessions } from "./pages/sessions.js";
import { Teams } from "./pages/teams.js";
import { Timeline } from "./pages/timeline.js";
import { Usage } from "./pages/usage.js";

const PAGES = { __proto__: null, inbox: Inbox, answered: Answered, sessions: Sessions, teams: Teams, policy: Policy, usage: Usage, doctor: Doctor, devices: Devices };
const OF_SESSION = { __proto__: null, conversation: Session, changes: Changes, timeline: Timeline, files: Files, audit: Audit, limits: Limits };
const MAIN = ["Inbox", "Sessions", "Teams", "Policy", "Usage", "Doctor", "Devices"];
// The page of an address: `/usage`, `/s/SESSION`, `/s/SESSION/changes`.
function find(path) {
  const [, first, session, part] = path.split("/");
  return first === "s" && session ? [OF_SESSION[part || "conversation"], decodeURIComponent(session), "sessions"] : [PAGES[first || "inbox"], undefined, first === "answered" ? "inbox" : first || "inbox"];
}
const here = () => location.hash.slice(1) || "/";

function App() {
  const [path, setPath] = useState(here());
  useEffect(() => {
    const move = () => setPath(here());
    addEventListener("hashchange", move);
    move(); // the address may have changed since the first drawing
    return () => removeEventListener("hashchange", move);
  }, []);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) { document.getElementById("main")?.focus({ preventScroll: true }); scrollTo(0, 0); }
    isFirst.current = false;
  }, [path]);
  const waiting = useSignal(list).calls?.length, state = useSignal(link);
  const isBefore = state === "connecting"; // what loads now could miss news
  useEffect(() => { if (!isBefore) load(); }, [isBefore]);
  if (state === "signed out") return html`<${Outside}/>`;
  const [Shown = Missing, session, place] = find(path);
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="top"><a class="brand" href="#/"><img src="/static/icon.svg" alt=""/>Holdfast</a>
    <${Tabs} kind="main" label="Pages" on=${MAIN.find((name) => name.toLowerCase() === place)} links=${MAIN.map((name, i) => i ? ["#/" + name.toLowerCase(), name] : ["#/", name, waiting > 0 && html`<span class="badge">${waiting}<span class="visually-hidden"> waiting</span></span>`])}/>
    <span role="status" class=${"link-state " + (state === "live" ? "live" : "")}>${state}</span></header>
    ${isBefore ? html`<main id="main" tabindex="-1"></main>` : html`<${Shown} key=${path} session=${session}/>`}`;
}

const Missing = () => html`<${Page} title="There is no such page"><p><a href="#/">Go to the inbox</a></p><//>`;
const Outside = ({ error }) => html`<main id="main" class="enter" tabindex="-1"><h1>Holdfast</h1><${Problem} error=${error}/>
  <p>This browser is not signed in. Run <code>holdfast web</code> on the machine and open the link that it prints. The link works once.</p></main>`;

async function start() {
  const root = document.getElementById("app");
  root.replaceChildren();
  try {
    await enter();
    if (!token()) throw null;
    render(html`<${App}/>`, root);
    await follow();
  } catch (error) { render(html`<${Outside} error=${error?.status === 401 ? null : error}/>`, root); }
}
start();
