// A yes is held, not clicked: pressed for half a second to three seconds, after a pause and with nothing else in between. A key that was
// meant for something else, a double click and a thing that lies on a key approve nothing.
import { html, useRef, useState } from "./vendor/preact.js";

export const HOLD_MS = 500, LONGEST_MS = 3000, QUIET_MS = 300, SETTLE_MS = 700;
let lastInput = -1e9, quiet = 1e9, inputs = 0;
for (const kind of ["keydown", "pointerdown"]) {
  addEventListener(kind, (event) => {
    if (event.repeat) return;
    const now = performance.now();
    quiet = now - lastInput; lastInput = now; inputs++;
  }, { capture: true });
}

// There is one press at a time, and it belongs to a button of the page, which may be drawn again meanwhile.
let press = null;
function held(act, isOff, onHold) {
  const stop = (event) => { if (press && press.button === event.currentTarget) { press = null; onHold(false); } };
  const down = (kind) => (event) => {
    if (event.repeat) return;
    const isMeant = kind === "key" ? event.key === "Enter" || event.key === " " : event.isPrimary && event.button === 0;
    if (!event.isTrusted || !isMeant || isOff() || quiet < QUIET_MS) { stop(event); return; }
    if (kind === "key") event.preventDefault();
    press = { button: event.currentTarget, kind, began: performance.now(), count: inputs };
    onHold(true);
  };
  const up = (kind) => (event) => {
    const mine = press && press.button === event.currentTarget && press.kind === kind ? press : null;
    stop(event);
    const lasted = mine ? performance.now() - mine.began : 0;
    if (mine && event.isTrusted && inputs === mine.count && lasted >= HOLD_MS && lasted <= LONGEST_MS && !isOff()) act();
  };
  return {
    onPointerDown: down("pointer"), onPointerUp: up("pointer"), onPointerLeave: stop, onPointerCancel: stop, onBlur: stop,
    onKeyDown: down("key"), onKeyUp: up("key"), onContextMenu: (event) => event.preventDefault(),
    onClick: (event) => event.preventDefault(),
  };
}

export const prefersTyping = () => localStorage.getItem("holdfast.approve") === "type";

// A yes: a button that is held or, for those who cannot hold one, a number to type. `words` say what it does: "approve once".
export function Hold({ act, isOff = () => false, words }) {
  const [isHeld, setHeld] = useState(false), [typed, setTyped] = useState(""), number = useRef(String(100 + Math.floor(Math.random() * 900)));
  if (!prefersTyping()) return html`<button type="button" class=${isHeld ? "yes holding" : "yes"} aria-disabled=${!!isOff()} ...${held(act, isOff, setHeld)}>Hold to ${words}</button>`;
  const isWrong = () => isOff() || typed !== number.current;
  return html`<label class="typed">Type ${number.current} to ${words} <input inputmode="numeric" autocomplete="off" size="4" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)}/></label>
    <button type="button" class="primary" aria-disabled=${!!isWrong()} onClick=${meant(act, isWrong)}>${words[0].toUpperCase() + words.slice(1)}</button>`;
}

// A click that stands alone: nothing shortly before it, and nothing shortly after.
export const meant = (act, isOff = () => false) => async (event) => {
  if (!event.isTrusted || isOff() || quiet < QUIET_MS) return;
  const count = inputs;
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  if (inputs === count && !isOff()) act();
};
