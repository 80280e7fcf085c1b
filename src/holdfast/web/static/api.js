// Requests to the server. The token is in the storage of this origin, which includes the port; no cookie exists.
const KEY = "holdfast.token", RIGHT = "holdfast.right";
const RIGHTS = ["look", "answer", "operate"];
// Whether this device may do something. The server decides; the page does not offer what it would refuse.
export const may = (right) => RIGHTS.indexOf(localStorage.getItem(RIGHT) ?? "operate") >= RIGHTS.indexOf(right);
export const token = () => localStorage.getItem(KEY);

const problem = (status, text, hint) => Object.assign(new Error(text), { status, hint });

export function request(path, options = {}) {
  const headers = { ...options.headers, authorization: "Bearer " + (token() ?? "") };
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" }).catch(() => { throw problem(0, "the server does not answer", "start it again: holdfast web"); });
}

async function read(response) {
  if (response.ok) return response.headers.get("content-type").startsWith("application/json") ? response.json() : response.text();
  const { text, hint } = await response.json().catch(() => ({ text: "the server did not answer as expected" }));
  throw problem(response.status, text, hint);
}

export const get = async (path) => read(await request(path));
export const post = async (path, body) =>
  read(await request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));

// The code of the link is used once, and leaves the address at once, so that no history keeps it.
export async function enter() {
  const code = new URLSearchParams(location.hash.slice(1)).get("enter");
  if (!code) return;
  history.replaceState(null, "", "/#/");
  const entered = await post("/api/enter", { code });
  localStorage.setItem(KEY, entered.token); localStorage.setItem(RIGHT, entered.device.right);
}
