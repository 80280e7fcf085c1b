// A yes is held, not clicked: for half a second to three, after a pause, with nothing in between. A key that was meant for something else,
// a double click and a thing that lies on a key approve nothing.
import { bind } from "./parts.js";
import { html, useEffect, useRef, useState } from "./vendor/preact.js";

export const SETTLE_MS = 700;
const HOLD_MS = 500, LONGEST_MS = 3000, QUIET_MS = 300, FRAME_MS = 100;
let lastInput = -1e9, quiet = 1e9, inputs = 0;
for (const kind of ["keydown", "pointerdown"]) {
  addEventListener(kind, (event) => { if (!event.repeat) { quiet = event.timeStamp - lastInput; lastInput = event.timeStamp; inputs++; } }, { capture: true });
}

// There is one press at a time, and it belongs to a button of the page, which may be drawn again meanwhile. It is timed twice: by when
// the inputs were made, and by the frames that the page drew, each at most FRAME_MS. A page that is busy, hidden or asleep draws none.
let press = null;
const drawn = (now) => press.drawn + Math.min(now - press.frame, FRAME_MS);
function draw() {
  if (!press) return;
  if (!document.hasFocus()) { press.end(); return; }
  const now = performance.now();
  press.drawn = drawn(now); press.frame = now;
  requestAnimationFrame(draw);
}

// What happens is the act of the press: what changes while the button is held was not there to be approved.
function held(act, isOff, isNew, onHold) {
  const end = () => { press = null; onHold(false); };
  const stop = (event) => { if (press?.button === event.currentTarget) end(); };
  const down = (kind) => (event) => {
    if (event.repeat) return;
    const isMeant = kind === "key" ? event.key === "Enter" || event.key === " " : event.isPrimary && event.button === 0;
    if (!event.isTrusted || !isMeant || isOff() || isNew() || quiet < QUIET_MS) { stop(event); return; }
    if (kind === "key") event.preventDefault();
    press = { button: event.currentTarget, kind, act, end, began: event.timeStamp, count: inputs, frame: performance.now(), drawn: 0 };
    requestAnimationFrame(draw);
    onHold(true);
  };
  const up = (kind) => (event) => {
    const mine = press?.button === event.currentTarget && press.kind === kind ? press : null, frames = mine && drawn(performance.now()), lasted = event.timeStamp - mine?.began;
    stop(event);
    if (mine && event.isTrusted && inputs === mine.count && Math.min(lasted, frames) >= HOLD_MS && lasted <= LONGEST_MS && !isOff()) mine.act();
  };
  return {
    onPointerDown: down("pointer"), onPointerUp: up("pointer"), onPointerLeave: stop, onPointerCancel: stop, onBlur: stop,
    onKeyDown: down("key"), onKeyUp: up("key"), onContextMenu: (event) => event.preventDefault(),
  };
}

export const prefersTyping = () => localStorage.getItem("holdfast.approve") === "type";

// A yes: a button that is held or, for those who cannot hold one, a number to type. `words` say what it does: "approve once". What is
// `shown` beside it stands still for a moment before it can be approved.
export function Hold({ act, isOff = () => false, words, shown }) {
  const [isHeld, setHeld] = useState(false), [typed, setTyped] = useState(""), number = useRef(String(100 + Math.floor(Math.random() * 900))), changed = useRef(0);
  useEffect(() => { changed.current = performance.now(); }, [shown]);
  const isNew = () => performance.now() - changed.current < SETTLE_MS, isWrong = () => isOff() || typed !== number.current;
  if (!prefersTyping()) return html`<button type="button" class=${isHeld ? "yes holding" : "yes"} aria-disabled=${!!isOff()} ...${held(act, isOff, isNew, setHeld)}>Hold to ${words}</button>`;
  return html`<label>Type ${number.current} to ${words} <input inputmode="numeric" autocomplete="off" size="4" ...${bind(typed, setTyped)}/></label>
    <button type="button" class="primary" aria-disabled=${!!isWrong()} onClick=${meant(act, () => isWrong() || isNew())}>${words[0].toUpperCase() + words.slice(1)}</button>`;
}

// A click that stands alone: nothing shortly before it, and nothing shortly after.
export const meant = (act, isOff = () => false) => async (event) => {
  if (!event.isTrusted || isOff() || quiet < QUIET_MS) return;
  const count = inputs;
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  if (inputs === count && !isOff()) act();
};
