// Messages that were given up: why, and another chance for one, some, or all that match.

import { button, code, column, count, empty, get, h, heading, link, paged, pageLink, patch, table, time, vhostFilter, wrapped } from "../lib/kit.js";
import { removeLetters, replayLetters } from "./dead_letter_acts.js";
import { reasonOf, sourceLink } from "./hub_words.js";

const AGES = [["", "Any time"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last week"]];
const KNOWN = ["reason", "exchange", "queue", "routing_key", "max_age_s", "min_age_s", "vhost", "subscription", "callback", "webhook_id"];
const FILTERS = [
  { name: "reason", label: "Reason", placeholder: "Reason has …" }, { name: "exchange", label: "Exchange" }, { name: "routing_key", label: "Routing key" }, { name: "max_age_s", label: "Time", options: AGES },
  ...["subscription", "callback", "queue"].map((name) => ({ name, label: name[0].toUpperCase() + name.slice(1), chip: true })), { name: "webhook_id", label: "Message", chip: true }, { name: "min_age_s", label: "Older than", chip: true },
];

export default function deadLetters({ signal }) {
  const picked = new Map();
  const bar = h("div", { class: "actions" });
  let matching = 0;
  const list = table({
    noun: "dead letter", signal, search: null, key: (row) => `${row.vhost}/${row.id}`, columns: columns(picked, tools), filters: [...FILTERS, ...vhostFilter()],
    source: async (query, gone) => {
      const found = await get("/hub/dead-letters", { ...conditions(query), page: query.page, page_size: query.page_size }, gone);
      matching = found.filtered_count;
      tools();
      return paged(found, found.dead_letters);
    },
    empty: () => empty("No message was given up", "A message that a callback has refused in all attempts waits here, with the last reason, until it is replayed or deleted."),
  });

  // What is picked, or else all that match.
  function tools() {
    const given = conditions(list.query);
    const some = [...picked.values()];
    const filters = some.length ? { ids: some.map((one) => one.id) } : given;
    const [number, which] = some.length ? [some.length, "Those picked"] : [matching, Object.keys(given).length ? "All that match the filter" : "All of them"];
    const act = (text, perform, kind) => button(`${text} ${some.length || number === 1 ? "" : "all "}${count(number)}`, () => perform(number, filters, which).then((is_done) => is_done && clear()), kind, { disabled: !number });
    patch(bar, some.length > 0 && h("span", { class: "quiet" }, `${count(some.length)} picked`), act("Replay", replayLetters, "main"), act("Delete", removeLetters, "danger"));
  }
  function clear() {
    picked.clear();
    list.reload();
  }
  list.addEventListener("filter", () => { picked.clear(); tools(); });
  tools();
  return [heading("Dead letters", { about: "Messages that no attempt could deliver, oldest first.", actions: [bar] }), list];
}

function columns(picked, changed) {
  const pick = (row) => (event) => {
    if (event.target.checked) picked.set(row.id, row);
    else picked.delete(row.id);
    changed();
  };
  return [
    column("pick", "Pick", (row) => h("input", { type: "checkbox", "aria-label": `Pick ${row.webhook_id}`, checked: picked.has(row.id), onchange: pick(row) })),
    column("since", "Since", (row) => pageLink(time(row.dead_at), "/dead-letters", row.vhost, row.id), { tight: true }),
    column("reason", "Why", (row) => h("span", { title: row.reason }, reasonOf(row)), { clip: true }),
    column("callback", "Callback", (row) => (row.callback ? h("a", { class: "url", href: link("/subscriptions", row.subscription) }, wrapped(row.callback)) : "subscription has ended"), { wide: true }),
    column("source", "From", (row) => [row.source ? sourceLink(row.source) : row.exchange, " ", code(row.routing_key)], { optional: true }),
    column("attempts", "Attempts", (row) => count(row.attempts), { end: true, optional: true }),
    column.bytes("size", "Size", { sort: undefined, optional: true }),
    column("message", "Message", (row) => code(row.webhook_id), { hidden: true }),
    column.vhost({ sort: undefined, hidden: true }),
  ];
}

function conditions(query) {
  return Object.fromEntries(KNOWN.filter((name) => query[name]).map((name) => [name, query[name]]));
}
