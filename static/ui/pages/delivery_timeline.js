// The attempts of a message in order of time, and the next one.

import { date, duration, h, instant, pageLink, state, time } from "../lib/kit.js";
import { answerOf, outcome } from "./hub_words.js";

// `id` is the attempt that the page is about; `next` is when the next one is due.
export function timeline(attempts, { id, next } = {}) {
  const rows = [...attempts].sort((a, b) => instant(a.at) - instant(b.at));
  return h("ol", { class: "timeline" }, rows.map((one, at) => h("li", { "aria-current": one.id === id ? "step" : null },
    h("span", {}, outcome(one), " ", one.id === id ? h("b", {}, `Attempt ${one.number}`) : pageLink(`Attempt ${one.number}`, "/deliveries", String(one.id))),
    h("span", {}, answerOf(one)),
    h("small", {}, time(one.at), at ? `, ${duration((instant(one.at) - instant(rows[at - 1].at)) / 1000)} after the one before` : "", `, took ${duration(one.latency_ms / 1000)}`))),
  next && h("li", {}, h("span", {}, state("Next try", "info")), h("small", {}, time(next), ` (${date(next)})`)));
}
