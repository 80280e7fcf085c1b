// What waits in all sessions, loaded once for the navigation, the inbox and the pages of sessions.
import { get } from "./api.js";
import { useSignal } from "./parts.js";
import { onNews, onReset } from "./stream.js";
import { signal, useEffect, useRef, useState } from "./vendor/preact.js";

export const list = signal({ calls: null, error: null });
const CHANGES = ["escalation-opened", "session-rewound", "session-closed"], byAge = (a, b) => a.escalation.opened_ms - b.escalation.opened_ms;
const without = (isGone) => { list.value = { ...list.value, calls: list.value.calls?.filter((each) => !isGone(each.escalation.id)) ?? null }; };

// News that come while the list is on its way make one more request, not one each.
let isLoading = false, isOld = false;
export async function load() {
  isOld = true;
  if (isLoading) return;
  for (isLoading = true; isOld;) {
    isOld = false;
    try { list.value = { calls: (await get("/api/waiting")).sort(byAge), error: null }; } catch (error) { list.value = { ...list.value, error }; }
  }
  isLoading = false;
}
onReset(load);
onNews((news) => {
  if (news.settled) { without((id) => id === news.settled); isOld = true; }
  if (CHANGES.includes(news.event)) load();
});

// The list of a session or of all. What is settled leaves a stub with words until it is swept; one that needs you stays.
export function useWaiting(session) {
  const { calls, error } = useSignal(list), [stubs, setStubs] = useState({}), shown = useRef([]), swept = useRef();
  const own = (calls ?? []).filter((each) => (!session || each.session === session) && !stubs[each.escalation.id]);
  shown.current = [...own, ...Object.values(stubs).map((each) => each.call)].sort(byAge);
  // What the record says (1) counts more than what this page expects (0), and what it does not say (2) counts most.
  const settle = (id, words, weight = 0) => setStubs((old) => {
    const call = shown.current.find((each) => each.escalation.id === id);
    return !call || old[id]?.weight >= weight ? old : { ...old, [id]: { call, words, weight } };
  });
  swept.current = stubs;
  const sweep = () => { without((id) => swept.current[id]); setStubs((old) => Object.fromEntries(Object.entries(old).filter(([, each]) => each.weight > 1))); };
  useEffect(() => onNews((news) => { if (news.settled) settle(news.settled, news.items[0]?.title ?? "settled", 1); }), []);
  return { calls: calls && shown.current, error, settle, sweep, gone: (id) => stubs[id]?.words, isStill: !Object.keys(stubs).length };
}
