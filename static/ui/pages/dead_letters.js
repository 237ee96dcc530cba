// Messages that were given up: why, and another chance for one, some, or all that match.

import { act, answer, attempt, button, code, column, count, counted, done, empty, get, h, heading, link, paged, pageLink, path, post, remove, table, ticks, time, vhostFilter, wrapped } from "../lib/kit.js";
import { reasonOf, sinceWhen, sourceLink } from "./hub_words.js";

const LIST = "#/dead-letters";
const noun = (number) => counted(number, "dead letter");

export const address = ({ vhost, id }) => path`/hub/dead-letters/${vhost}/${id}`;

// `which` says it as a sentence begins: "All that match the filter".
// Sends each filter, and adds up what the answers count.
async function each(verb, filters) {
	const total = {};
	for (const one of filters) for (const [name, value] of Object.entries(await post(`/hub/dead-letters/${verb}`, one))) total[name] = (total[name] ?? 0) + value;
	return total;
}

export function replayLetters(number, filters, which) {
	const text = `${which} return to their subscriptions, with their old webhook-id and as if they had never failed. Those of paused subscriptions stay.`;
	return act({ act: `Replay ${noun(number)}`, text, safe: true }, () => each("replay", filters), ({ replayed, skipped }) => `Replayed ${noun(replayed)}${skipped ? `; ${noun(skipped)} skipped, since the subscription is paused or has ended` : ""}.`);
}

export function removeLetters(number, filters, which) {
	const given = filters.map((one) => (Object.keys(one).length ? one : { all: true }));
	return act({ act: `Delete ${noun(number)}`, text: `${which} are dropped for good.` }, () => each("delete", given), ({ deleted }) => `Deleted ${noun(deleted)}.`);
}

export function replay(letter) {
	return attempt(async () => {
		await post(`${address(letter)}/replay`);
		done(`Replayed: it is delivered to ${letter.callback} as if it had never failed.`);
		location.hash = LIST;
	});
}

export function drop(letter) {
	return act({ act: "Delete 1 dead letter", text: `${letter.webhook_id} is dropped for good.`, to: LIST }, () => remove(address(letter)), "Deleted the dead letter.");
}

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
