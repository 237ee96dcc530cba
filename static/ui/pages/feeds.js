// The catalogue of feeds: how each is, when it was polled, what comes from it.

import { address, attempt, below, button, code, column, count, done, empty, get, h, heading, link, paged, pageLink, patch, path, post, table, tabs, tiles, time, urlOf, vhostFilter } from "../lib/kit.js";
import { addFeed, importFeeds } from "./feed_forms.js";
import { feedState, isStopped, pushState, STATE_OPTIONS } from "./feed_words.js";

export const FEED_TABS = [["Feeds", "#/feeds"], ["Outputs", "#/outputs"]];

const COLUMNS = [
  column.named("name", "Name", (row) => [pageLink(row.name, "/feeds", row.vhost, row.name), row.title !== row.name && below(row.title)]),
  column.vhost({ hidden: true }),
  column("state", "State", (row) => [feedState(row), row.error && below(row.error)], { sort: "state" }),
  column("health", "Health", (row) => row.health, { hidden: true }),
  column.time("checked_at", "Last poll", { optional: true }),
  column("next", "Next poll", (row) => (isStopped(row) ? "–" : time(row.next_poll_at)), { sort: "next_poll_at", optional: true }),
  column("push", "Push", (row) => pushState(row.push), { sort: "push", optional: true }),
  column.count("entries", "Entries", { optional: true, help: "In its document at the last poll" }),
  column.count("entries_a_week", "A week", { optional: true, help: "New entries a week" }),
  column.count("published", "Published", { hidden: true }),
  column.text("format", "Format", { hidden: true }),
  column.text("owner", "Owner", { hidden: true }),
  column.acts(({ name }) => button("Poll now", (event) => poll(name, event.currentTarget), "small", { "aria-label": `Poll now: ${name}` })),
];

export default function feeds({ signal }) {
  const figures = h("div");
  async function source({ name, ...query }, gone) {
    const found = await get("/hub/feeds", { ...query, search: name }, gone);
    patch(figures, found.total_count > 0 && summary(found.statistics));
    return paged(found);
  }
  const list = table({
    noun: "feed", columns: COLUMNS, signal, source, sort: { by: "name" }, search: "Filter by name, title or URL", key: (row) => `${row.vhost}/${row.name}`,
    filters: [{ name: "state", label: "State", options: STATE_OPTIONS }, ...vhostFilter()],
    empty: () => empty("No feeds yet", ["Warren polls a feed of any format, publishes each new entry as a message on the exchange ", code("hub.feeds"), ", and offers it as Atom, RSS and JSON Feed."], button("Add the first feed", addFeed, "main")),
    actions: [h("a", { class: "button small", href: exported(), download: "feeds.opml", onclick: (event) => { event.currentTarget.href = exported(); } }, "Export OPML"), button("Import OPML", () => importFeeds(signal), "small")],
  });
  return [heading("Feeds", { actions: [button("Add feed", addFeed, "main")] }), tabs("Kinds", FEED_TABS, "Feeds"), figures, list];
}

async function poll(name, pressed) {
  pressed.disabled = true;
  await attempt(async () => {
    const { health } = await post(path`/hub/feeds/${name}/poll`);
    done(`Polled ${name}. ${health}`);
  });
  pressed.disabled = false;
}

// The export has the filter of the list.
function exported() {
  const { name, state, vhost } = address().query;
  return urlOf("/hub/feeds.opml", { search: name, state, vhost });
}

function summary({ feeds: total, states, push, entries_a_week }) {
  const either = (label, one, other) => [label, count(states[one] + states[other]), link("/feeds", { state: states[one] ? one : other })];
  return tiles([["Feeds", count(total)], ["OK", count(states.ok), link("/feeds", { state: "ok" })], either("Failing", "failing", "dead"), either("Paused or gone", "paused", "gone"), ["Pushed", count(push.active)], ["Entries a week", count(entries_a_week)]]);
}
