// The shell of the page: entering, navigation by the address behind the hash, and the pages.
import "/static/visible.js";
import { enter, get, token } from "/static/api.js";
import { Problem } from "/static/parts.js";
import { follow, link, onNews, onReset } from "/static/stream.js";
import { html, render, signal, useEffect, useRef, useState } from "/static/vendor/preact.js";
import { Audit } from "/static/pages/audit.js";
import { Changes } from "/static/pages/changes.js";
import { Devices } from "/static/pages/devices.js";
import { Doctor } from "/static/pages/doctor.js";
import { Answered, Inbox } from "/static/pages/inbox.js";
import { Limits } from "/static/pages/limits.js";
import { Session } from "/static/pages/session.js";
import { Sessions } from "/static/pages/sessions.js";
import { Timeline } from "/static/pages/timeline.js";
import { Usage } from "/static/pages/usage.js";

const ROUTES = [
  [/^\/$/, Inbox], [/^\/answered$/, Answered], [/^\/sessions$/, Sessions], [/^\/s\/([^/]+)$/, Session],
  [/^\/s\/([^/]+)\/changes$/, Changes], [/^\/s\/([^/]+)\/timeline$/, Timeline], [/^\/s\/([^/]+)\/audit$/, Audit], [/^\/s\/([^/]+)\/limits$/, Limits],
  [/^\/usage$/, Usage], [/^\/doctor$/, Doctor], [/^\/devices$/, Devices],
];
const MAIN = [["/", "Inbox"], ["/sessions", "Sessions"], ["/usage", "Usage"], ["/doctor", "Doctor"], ["/devices", "Devices"]];
const here = () => location.hash.slice(1) || "/";
export const waitingCount = signal(0);

async function countWaiting() {
  try { waitingCount.value = (await get("/api/waiting")).length; } catch { /* the page says what is wrong */ }
}

function useBadge() {
  useEffect(() => {
    countWaiting();
    const offs = [onReset(countWaiting), onNews((news) => { if (news.event === "escalation-opened" || news.settled) countWaiting(); })];
    return () => offs.forEach((off) => off());
  }, []);
}

function App() {
  const [path, setPath] = useState(here());
  useEffect(() => {
    const move = () => setPath(here());
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) { document.getElementById("main")?.focus({ preventScroll: true }); scrollTo(0, 0); }
    isFirst.current = false;
  }, [path]);
  useBadge();
  if (link.value === "signed out") return html`<${Outside}/>`;
  const [pattern, Page] = ROUTES.find(([each]) => each.test(path)) ?? [/^/, Missing];
  const words = path.match(pattern).slice(1).map(decodeURIComponent);
  const isCurrent = (route) => route === "/" ? path === "/" || path === "/answered" : path === route || (route === "/sessions" && path.startsWith("/s/"));
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="top"><a class="brand" href="#/"><img src="/static/icon.svg" alt=""/>Holdfast</a>
    <nav class="main" aria-label="Pages">${MAIN.map(([route, name]) => html`<a key=${route} href=${"#" + route} aria-current=${isCurrent(route) ? "page" : undefined}>${name}${route === "/" && waitingCount.value > 0 && html`<span class="badge">${waitingCount.value}<span class="visually-hidden"> waiting</span></span>`}</a>`)}</nav>
    <span role="status" class=${"link-state " + (link.value === "live" ? "live" : "")}>${link.value}</span></header>
    <${Page} key=${path} session=${words[0]}/>`;
}

const Missing = () => html`<main id="main" tabindex="-1"><h1>There is no such page</h1><p><a href="#/">Go to the inbox</a></p></main>`;
const Outside = ({ error }) => html`<main id="main" class="enter" tabindex="-1"><h1>Holdfast</h1><${Problem} error=${error}/>
  <p>This browser is not signed in. Run <code>holdfast web</code> on the machine and open the link that it prints. The link works once.</p></main>`;

async function start() {
  const root = document.getElementById("app");
  root.replaceChildren();
  try {
    await enter();
    if (!token()) throw null;
    await follow();
  } catch (error) {
    render(html`<${Outside} error=${error?.status === 401 ? null : error}/>`, root);
    return;
  }
  render(html`<${App}/>`, root);
}
start();
