// The log of attempts: what was sent where, what was answered, and sending it again.

import { act, attempt, button, code, column, counted, date, duration, empty, get, h, heading, instant, link, pageLink, post, precise, report, table, tag, vhostFilter, wrapped } from "../lib/kit.js";
import { OUTCOMES, answerOf, outcome, sourceLink } from "./hub_words.js";

const STATUSES = [["", "Any answer"], ["2xx", "2xx: accepted"], ["3xx", "3xx: redirected"], ["4xx", "4xx: refused"], ["5xx", "5xx: failed"], ["none", "No answer"]];
const SPANS = [["", "Any time"], ["900", "Last 15 minutes"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last week"], ["between", "Between …"]];
const isBetween = ({ span }) => span === "between";
const KNOWN = ["subscription", "webhook_id", "outcome", "status", "callback", "source", "topic", "vhost"];
const TIMES = ["since", "until"];
const WITHOUT_BOUND = "Everything that the log has is meant. A filter above narrows it.";
const FILTERS = [
  { name: "callback", label: "Callback", placeholder: "Callback has …" }, { name: "source", label: "Exchange or queue" }, { name: "topic", label: "Topic" },
  { name: "outcome", label: "Outcome", options: [["", "Any outcome"], ...OUTCOMES] }, { name: "status", label: "Status", options: STATUSES }, { name: "span", label: "Time", options: SPANS },
  { name: "since", label: "From", type: "datetime-local", when: isBetween }, { name: "until", label: "Until", type: "datetime-local", when: isBetween },
  { name: "subscription", label: "Subscription", chip: true }, { name: "webhook_id", label: "Message", chip: true },
];
const COLUMNS = [
  column("at", "When", (row) => pageLink(precise(row.at), "/deliveries", String(row.id)), { tight: true }),
  column("outcome", "Outcome", outcome),
  column("answer", "Answer", (row) => h("span", { title: answerOf(row) }, answerOf(row)), { clip: true }),
  column("callback", "Callback", (row) => h("a", { class: "url", href: link("/subscriptions", row.subscription) }, wrapped(row.callback)), { wide: true }),
  column("topic", "Source and topic", (row) => row.source && [sourceLink(row.source), " ", row.topic && tag(row.topic)], { optional: true, wide: true }),
  column("number", "Attempt", (row) => row.number, { end: true, optional: true }),
  column("latency", "Took", (row) => duration(row.latency_ms / 1000), { end: true, optional: true }),
  column("message", "Message", (row) => pageLink(code(row.webhook_id), "/deliveries", { webhook_id: row.webhook_id }), { hidden: true }),
];

export default function deliveries({ signal }) {
  const again = button("Resend all that match", () => attempt(() => resend(list)), null, { disabled: true });
  const list = table({
    noun: "attempt", signal, search: null, key: (row) => row.id, columns: COLUMNS, filters: [...FILTERS, ...vhostFilter()],
    source: async (query, gone) => {
      const found = await get("/hub/attempts", { ...conditions(query), before: query.before, limit: query.page_size }, gone);
      again.disabled = !found.attempts.length;
      return { items: found.attempts, next: found.next_before };
    },
    empty: () => empty("Nothing was delivered yet", "Each request to a callback is listed here for a week, with what it answered.", h("p", {}, h("a", { href: "#/subscriptions" }, "Subscribe a callback"), " and publish a message to its source.")),
  });
  return [heading("Deliveries", { about: "Requests to callbacks, newest first.", actions: [again] }), list];
}

// Returns the server's filters: a span of time begins so long before now.
function conditions(query) {
  const given = Object.fromEntries(KNOWN.filter((name) => query[name]).map((name) => [name, query[name]]));
  if (isBetween(query)) for (const bound of TIMES) if (query[bound]) given[bound] = new Date(query[bound]).toISOString();
  if (Number(query.span)) given.since = new Date(Date.now() - Number(query.span) * 1000).toISOString();
  return given;
}

// Counts first, with the same bounds in time as the resend that follows.
async function resend(list) {
  const filters = conditions(list.query);
  const bounded = Object.keys(filters).length > 0;
  filters.until ??= new Date().toISOString();
  const { matching, resendable } = await post("/hub/attempts/resend", { ...filters, dry_run: true });
  if (!resendable) return report(Object.assign(new Error(matching ? `None of the ${counted(matching, "message")} can be sent again: their requests are not kept (setting attempt_requests).` : "No attempt matches this filter."), { status: 404 }));
  const rest = matching - resendable;
  const text = [bounded ? `Those with ${words(filters)}.` : WITHOUT_BOUND, rest > 0 && `${counted(rest, "more message")} can't be sent again, since the request is not kept or the subscription is over.`, "A receiver gets each message with its old webhook-id, so it can tell what it has seen."].filter(Boolean).join(" ");
  return act({ act: `Resend ${counted(resendable, "message")}`, text, safe: true }, () => post("/hub/attempts/resend", filters), ({ resent }) => `Sending ${counted(resent, "message")} again.`);
}

function words(filters) {
  return Object.entries(filters).map(([name, value]) => `${name.replace("_", " ")} ${TIMES.includes(name) ? date(instant(value)) : value}`).join(", ");
}
