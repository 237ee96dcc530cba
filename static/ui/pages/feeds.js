// The catalogue of feeds: how each is, when it was polled, what comes from it.

import { address, answer, attempt, below, button, code, column, counted, done, empty, entries, get, h, heading, HUB, paged, pageLink, part, path, post, state, table, tabs, time, urlOf, vhostFilter } from "../lib/kit.js";
import { addFeed, importFeeds } from "./feed_forms.js";

// The states of a feed: [words, kind of state].
export const STATES = { failing: ["Failing", "warn"], dead: ["Dead", "bad"], gone: ["Gone", "bad"], paused: ["Paused", ""], new: ["New", "info"], ok: ["OK", "good"] };
const PUSH = { active: ["Pushed", "good"], pending: ["Pending", "info"], broken: ["Broken", "warn"], failed: ["Failed", "warn"] };
export const FORMATS = ["atom", "rss", "json"];

export const isStopped = (feed) => feed.state === "paused" || feed.state === "gone";

export function feedState(feed) {
	return state(...STATES[feed.state]);
}

export function pushState({ state: now }) {
	return now === "none" ? "–" : state(...PUSH[now]);
}

// The address of a document of a feed or output: format is atom, rss or json.
export function documentUrl(vhost, name, format) {
	return `${HUB}${vhost === "/" ? "" : `${encodeURIComponent(vhost)}/`}feeds/${encodeURIComponent(name)}.${format}`;
}

export function documentLinks(vhost, name) {
	return FORMATS.map((format) => [h("a", { href: documentUrl(vhost, name, format), target: "_blank", rel: "noopener noreferrer" }, `.${format}`), " "]);
}

export const FEED_TABS = [["Feeds", "#/feeds"], ["Outputs", "#/outputs"]];

const COLUMNS = [
	column.named("name", "Name", (row) => [pageLink(row.name, "/feeds", row.vhost, row.name), row.title !== row.name && below(row.title)]),
	column.vhost({ hidden: true }),
	column("state", "State", (row) => [feedState(row), below(row.error || row.health)], { sort: "state", wide: true }),
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
	const says = answer("Feeds of other sites, whose new entries become messages.");
	async function source({ name, ...query }, gone) {
		const found = await get("/hub/feeds", { ...query, search: name }, gone);
		const { statistics } = found;
		if (statistics.feeds) says.say(...summary(statistics));
		return { ...paged(found), chips: [["state", "State", entries(statistics.states, STATES)]] };
	}
	const list = table({
		noun: "feed", columns: COLUMNS, signal, source, sort: { by: "name" }, search: "Filter by name, title or URL", key: (row) => `${row.vhost}/${row.name}`,
		filters: [{ name: "state", counted: true }, ...vhostFilter()],
		empty: () => empty("No feeds yet", ["Warren polls a feed of any format, publishes each new entry as a message on the exchange ", code("hub.feeds"), ", and offers it as Atom, RSS and JSON Feed."], button("Add the first feed", addFeed, "main")),
		actions: [h("a", { class: "button small", href: exported(), download: "feeds.opml", onclick: (event) => { event.currentTarget.href = exported(); } }, "Export OPML"), button("Import OPML", () => importFeeds(signal), "small")],
	});
	return [heading("Feeds", { about: says, actions: [button("Add feed", addFeed, "main")] }), tabs("Kinds", FEED_TABS, "Feeds"), list];
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

function summary({ feeds: all, states: { failing, dead, gone }, push, entries_a_week: week }) {
	const bad = failing + dead + gone;
	return [bad > 0 && `${part(bad, all, "feed", "needs", "need")} a look.`, `${bad ? "" : `${counted(all, "feed")}, all well. `}${counted(week, "new entry", "new entries")} a week${push.active ? `, ${counted(push.active, "feed")} pushed` : ""}.`];
}
