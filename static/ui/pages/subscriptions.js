// The list of subscriptions: which callbacks get what, and which of them are in trouble.

import { answer, below, button, column, count, empty, entries, get, h, heading, link, menu, paged, part, state, table, tag, vhostFilter, wrapped } from "../lib/kit.js";
import { condition, CONDITIONS, isConfirmed, lease, sinceWhen, sourceLink, success } from "./hub_words.js";
import { newSubscription } from "./subscribe.js";
import { ask, end, isPaused, pause, renew, resume } from "./subscription_acts.js";

const COLUMNS = [
	column.named("callback", "Callback", (row) => [h("a", { class: "url", href: link("/subscriptions", row.id) }, wrapped(row.callback)), row.verification === "none" && [" ", tag("never asked")]]),
	column("source", "Source", (row) => [sourceLink(row), " ", row.topic && tag(row.topic, "Topic: the keys it wants")], { sort: "resource_name", wide: true }),
	column.vhost({ hidden: true }),
	column("state", "State", words, { sort: "condition", wide: true }),
	column("success", "Success", success, { sort: "success_ratio", optional: true, help: "Attempts that succeeded, of those lately" }),
	column("lease", "Lease", lease, { sort: "expires_at", optional: true }),
	column("owner", "Owner", (row) => row.owner || "anonymous", { sort: "owner", hidden: true }),
	column("dialect", "Made at", (row) => (row.dialect === "websub" ? "/hub" : "/subscribe"), { hidden: true }),
	column.time("last_success_at", "Last success", { hidden: true }),
	column.acts(acts),
];
const FILTERS = [
	{ name: "condition", counted: true }, { name: "status", label: "Status", chip: true },
	{ name: "hub.expires", label: "Lease", options: [["", "Any lease"], ["1", "Ends within a day"], ["7", "Ends within a week"], ["30", "Ends within 30 days"]] },
	{ name: "resource_type", label: "Kind", chip: true }, { name: "resource_name", label: "Source", chip: true },
];

const TROUBLES = ["suspended", "blocked", "open", "failing"];

export default function subscriptions({ signal }) {
	const says = answer("URLs that get messages of exchanges and queues by POST.");
	const list = table({
		noun: "subscription", signal, search: "Filter by callback or source", sort: { by: "condition" }, key: (row) => row.id, columns: COLUMNS, filters: [...FILTERS, ...vhostFilter()],
		source: async (query, gone) => {
			const found = await get("/hub/subscriptions", query, gone);
			const { conditions: numbers } = found;
			const chips = entries(numbers, CONDITIONS);
			const [[, , all]] = chips;
			if (all) says.say(...summary(numbers, all, found.failing_since));
			return { ...paged(found, found.subscriptions), chips: [["condition", "State", chips]] };
		},
		empty: () => empty("No callback is subscribed yet", "A subscription sends each message of an exchange or queue to a URL, signed, and again until it is accepted.", button("Subscribe a callback", newSubscription, "main")),
	});
	return [heading("Subscriptions", { about: says, actions: [button("New subscription", newSubscription, "main")] }), list];
}

function summary(numbers, all, since) {
	const bad = TROUBLES.reduce((sum, word) => sum + (numbers[word] ?? 0), 0);
	const rest = [["delivering", "delivering"], ["idle", "without a message yet"], ["paused", "paused"], ["unconfirmed", "not confirmed"]].filter(([word]) => numbers[word]).map(([word, text]) => `${count(numbers[word])} ${text}`);
	const more = rest.length ? `${rest.join(", ")}.` : "";
	return bad ? [`${part(bad, all, "subscription", "is", "are")} in trouble${since ? `, the first since ${sinceWhen(since)}` : ""}.`, more] : ["", `No callback fails: ${more}`];
}

function words(row) {
	const [text, kind, why] = condition(row);
	return [state(text, kind), why && why !== text && below(why)];
}

function acts(row) {
	const to = (page) => () => { location.hash = link(page, { subscription: row.id }); };
	return menu(`Acts on ${row.callback}`, () => [
		!isConfirmed(row) ? ["Ask the callback", () => ask(row)] : isPaused(row) ? ["Resume", () => resume(row)] : ["Pause", () => pause(row)],
		["Renew the lease", () => renew(row)], ["Deliveries", to("/deliveries")], ["Dead letters", to("/dead-letters")], ["End", () => end(row), "danger"],
	]);
}
