// Messages that were given up: why, and another chance for one, some, or all that match.

import { answer, button, code, column, count, counted, empty, get, h, heading, link, paged, pageLink, table, ticks, time, vhostFilter, wrapped } from "../lib/kit.js";
import { removeLetters, replayLetters } from "./dead_letter_acts.js";
import { reasonOf, sinceWhen, sourceLink } from "./hub_words.js";

const AGES = [["", "Any time"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last week"]];
const KNOWN = ["reason", "exchange", "queue", "routing_key", "max_age_s", "min_age_s", "vhost", "subscription", "callback", "webhook_id"];
const CHIPS = { subscription: "Subscription", callback: "Callback", queue: "Queue", webhook_id: "Message", min_age_s: "Older than" };
const FILTERS = [
  { name: "reason", label: "Reason", placeholder: "Reason has …" }, { name: "exchange", label: "Exchange" }, { name: "routing_key", label: "Routing key" }, { name: "max_age_s", label: "Time", options: AGES },
  ...Object.entries(CHIPS).map(([name, label]) => ({ name, label, chip: true })),
];
const COLUMNS = [
  column("since", "Since", (row) => pageLink(time(row.dead_at), "/dead-letters", row.vhost, row.id), { tight: true }),
  column("reason", "Why", (row) => h("span", { title: row.reason }, reasonOf(row)), { clip: true }),
  column("callback", "Callback", (row) => (row.callback ? h("a", { class: "url", href: link("/subscriptions", row.subscription) }, wrapped(row.callback)) : "subscription has ended"), { wide: true }),
  column("source", "From", (row) => [row.source ? sourceLink(row.source) : row.exchange, " ", code(row.routing_key)], { optional: true }),
  column("attempts", "Attempts", (row) => count(row.attempts), { end: true, optional: true }),
  column.bytes("size", "Size", { sort: undefined, optional: true }),
  column("message", "Message", (row) => code(row.webhook_id), { hidden: true }),
  column.vhost({ sort: undefined, hidden: true }),
];

export default function deadLetters({ signal }) {
  const says = answer("Messages that no attempt could deliver, oldest first.");
  let matching = 0;
  const picks = ticks({ key: (row) => `${row.vhost}/${row.id}`, name: (row) => row.webhook_id, acts });
  const list = table({
    noun: "dead letter", signal, search: null, key: (row) => `${row.vhost}/${row.id}`, columns: [picks.column, ...COLUMNS], filters: [...FILTERS, ...vhostFilter()],
    source: async (query, gone) => {
      const found = await get("/hub/dead-letters", { ...conditions(query), page: query.page, page_size: query.page_size }, gone);
      matching = found.filtered_count;
      picks.draw();
      says.say(...summary(found));
      return { ...paged(found, found.dead_letters), chips: chipsOf(found, query) };
    },
    empty: () => empty("No message was given up", "A message that a callback has refused in all attempts waits here, with the last reason, until it is replayed or deleted."),
  });

  // What is ticked, or else all that match.
  function acts(rows) {
    const given = conditions(list.query);
    const vhosts = [...new Set(rows.map((one) => one.vhost))]; // an id is of its virtual host
    const filters = rows.length ? vhosts.map((vhost) => ({ vhost, ids: rows.filter((one) => one.vhost === vhost).map((one) => one.id) })) : [given];
    const [number, which] = rows.length ? [rows.length, "Those picked"] : [matching, Object.keys(given).length ? "All that match the filter" : "All of them"];
    return [["Replay", replayLetters, "main"], ["Delete", removeLetters, "danger"]].map(([text, perform, kind]) => button(`${text} ${rows.length || number === 1 ? "" : "all "}${count(number)}`,
      () => perform(number, filters, which).then((is_done) => is_done && (picks.clear(), list.reload())), kind, { disabled: !number }));
  }
  list.addEventListener("filter", picks.clear);
  picks.draw();
  return [heading("Dead letters", { about: says, actions: picks.bar }), list];
}

function summary({ filtered_count: number, oldest_at: oldest, reasons: [first] }) {
  if (!number) return ["", "No message was given up."];
  const why = first && number > 1 ? `, ${first.dead_letters >= number ? "all" : count(first.dead_letters)} for ${reasonOf(first)}` : "";
  return [`${counted(number, "message")} could not be delivered${why}.`, oldest && `The oldest waits since ${sinceWhen(oldest)}.`];
}

function chipsOf({ reasons }, { reason }) {
  const all = reasons.reduce((total, one) => total + one.dead_letters, 0);
  return reasons.length > 1 || reason ? [["reason", "Why", [["", "All", all], ...reasons.map((one) => [one.reason, one.reason, one.dead_letters])]]] : [];
}

function conditions(query) {
  return Object.fromEntries(KNOWN.filter((name) => query[name]).map((name) => [name, query[name]]));
}
