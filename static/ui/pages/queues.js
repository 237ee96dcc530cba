// The list of queues: what is stuck comes first.

import { answer, below, button, column, count, counted, duration, empty, follow, h, heading, link, live, pageLink, patch, path, session, SPARK, spark, state, table, tabs, tag, ticks, vhostFilter, vhostPages, wrapped } from "../lib/kit.js";
import { declareQueue } from "./declare.js";
import { tickedActs } from "./queue_acts.js";

export const OWN_FILTER = { name: "own", label: "Whose", options: [["", "Without the hub's own"], ["shown", "With the hub's own"]] };
const GROWING_MESSAGES = 100;
const TROUBLES = [["no_consumer", "No consumer", "has no consumer", "have no consumer"], ["growing", "Growing", "grows", "grow"], ["paused", "Paused", "is paused", "are paused"]];

const speed = (name) => `message_stats.${name}_details.rate`;
const COLUMNS = [
	column.named("name", "Name", (row) => [pageLink(row.name, "/queues", row.vhost, row.name), row.type !== "classic" && [" ", tag(row.type)], row.subscription && below(subscriptionLink(row.subscription))]),
	column.vhost({ optional: true }),
	column.text("type", "Type", { hidden: true }),
	column("features", "Features", features, { hidden: true }),
	column("state", "State", condition, { sort: "trouble", help: "Queues with messages that nobody takes come first, then those that grow" }),
	column.count("messages_ready", "Ready"),
	column("oldest", "Oldest", (row) => duration(row.oldest_message_age_s), { sort: "oldest_message_age_s", end: true, hidden: true, help: "Age of the first ready message" }),
	column("trend", "10 min", (row) => spark(row.messages_ready_details, stuck(row) ? "warn" : ""), { end: true, optional: true, help: "Ready messages in the last ten minutes" }),
	column.count("messages_unacknowledged", "Unacked"),
	column.count("consumers", "Consumers", { optional: true }),
	column.rate(speed("publish"), "In", { optional: true }),
	column.rate(speed("deliver_get"), "Out", { optional: true }),
	column.rate(speed("ack"), "Acked", { hidden: true }),
	column.bytes("message_bytes", "Bytes", { hidden: true }),
	column.bytes("memory", "Memory", { hidden: true }),
	column.text("policy", "Policy", { hidden: true }),
];

// As RabbitMQ's management abbreviates them.
const FEATURES = [["D", "durable", (row) => row.durable], ["AD", "auto-delete", (row) => row.auto_delete], ["Excl", "exclusive", (row) => row.exclusive],
	...[["DLX", "dead-letter exchange", "x-dead-letter-exchange"], ["TTL", "message TTL", "x-message-ttl"], ["Lim", "maximum length", "x-max-length"], ["Pri", "priorities", "x-max-priority"]]
		.map(([short, long, key]) => [short, long, (row) => row.arguments[key] !== undefined])];

export default function queues({ signal }) {
	const says = answer("What waits, and who takes it.");
	const key = (row) => `${row.vhost}/${row.name}`;
	const picks = ticks({ key, name: (row) => row.name, acts: (rows) => rows.length > 0 && tickedActs(rows, picks.clear) });
	let all;
	const find = withoutOwn(vhostPages("/queues", (vhost) => path`/queues/${vhost}`, SPARK));
	const list = table({
		noun: "queue", columns: [picks.column, ...COLUMNS.filter((one) => one.id !== "vhost" || session.vhosts.length > 1)], signal, sort: { by: "trouble", reverse: true },
		key, filters: [{ name: "trouble", counted: true }, OWN_FILTER, ...vhostFilter()],
		source: async (query, gone) => {
			const found = await find(query, gone);
			if (!query.trouble) all = found.total;
			return { ...found, chips: query.vhost ? [] : chipsOf(all) };
		},
		empty: () => empty("No queues yet", "A queue keeps messages until a consumer, or a webhook, has taken them.", h("p", {}, h("a", { href: "#/welcome" }, "Send a first message"))),
	});
	list.addEventListener("filter", picks.clear);
	follow(({ snapshot }) => snapshot && says.say(...summary(snapshot)), signal);
	return [heading("Queues", { about: says, actions: [picks.bar, button("New queue", declareQueue, "main")] }), kindTabs("Queues", list), list];
}

// What the live stream counts of all virtual hosts.
function chipsOf(all) {
	const { objects, troubled_queues: numbers } = live.snapshot ?? {};
	return numbers ? [["trouble", "Trouble", [["", "All", all ?? objects.queues], ...TROUBLES.map(([value, text]) => [value, text, numbers[value], "warn"])]]] : [];
}

function summary({ objects, troubled_queues: numbers }) {
	const [first, ...rest] = TROUBLES.map(([value, , one, many]) => [numbers[value], numbers[value] === 1 ? one : many]).filter(([number]) => number);
	return first ? [`${counted(first[0], "queue")} ${first[1]}.`, rest.map(([number, words]) => `${count(number)} ${words}. `)] : ["", `${counted(objects.queues, "queue")}, the hub's own among them; none is stuck.`];
}

// Queues and exchanges are two tabs of one table: what both are filtered by goes along.
export function kindTabs(current, list) {
	const bar = h("div");
	const draw = () => {
		const { name, own, vhost } = list.query;
		patch(bar, tabs("Kinds", ["Queues", "Exchanges"].map((text) => [text, link(`/${text.toLowerCase()}`, { name, own, vhost })]), current));
	};
	list.addEventListener("filter", draw);
	draw();
	return bar;
}

export function withoutOwn(source) {
	return ({ own, ...query }, signal) => source({ ...query, without_hub: own ? undefined : "true" }, signal);
}

function features(row) {
	return FEATURES.filter(([, , has]) => has(row)).map(([short, long]) => [tag(short, long), " "]);
}

export function subscriptionLink({ id, callback }) {
	return ["subscription of ", pageLink(wrapped(callback), "/subscriptions", id)];
}

// What is the hub's is made, bound and deleted by the hub alone.
export function isOwn(name) {
	return name.startsWith("hub.");
}

// Ready messages that nobody takes, or more and more of them, are what people look for.
function stuck(row) {
	if (!row.messages_ready || row.type === "stream") return "";
	if (!row.consumers) return "No consumer";
	return row.messages_ready >= GROWING_MESSAGES && row.messages_ready_details.rate >= 1 ? "Growing" : "";
}

export function condition(row) {
	if (row.state === "paused") return state("Paused", "warn");
	if (row.state && row.state !== "running") return state(row.state, "warn");
	if (isOwn(row.name) && !row.consumers) return state("Kept by the hub");
	const trouble = stuck(row);
	if (trouble) return state(trouble, "warn");
	return row.idle_since ? state("Idle") : state("Running", "good");
}
