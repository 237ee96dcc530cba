import { column, count, empty, h, heading, link, path, state, table, tag, vhostFilter, vhostPages } from "../lib/kit.js";
import { connectionTabs, nobody } from "./connections.js";

const flow = (name, label, more) => column.rate(`message_stats.${name}_details.rate`, label, { optional: true, ...more });
export const CHANNELS = [
	column.named("name", "Channel", (row) => h("a", { href: link("/channels", row.name), title: row.name }, shortName(row.name))),
	column.vhost({ hidden: true }),
	column.text("user", "User", { optional: true }),
	column("mode", "Mode", mode, { optional: true, help: "Whether publishes are confirmed, or in a transaction" }),
	column("state", "State", channelState),
	column("prefetch", "Prefetch", prefetch, { sort: "prefetch_count", end: true, optional: true }),
	column.count("consumer_count", "Consumers", { hidden: true }),
	column.count("messages_unacknowledged", "Unacked"),
	column.count("messages_unconfirmed", "Unconfirmed", { hidden: true }),
	flow("publish", "Published"), flow("confirm", "Confirmed", { hidden: true }), flow("return_unroutable", "Unroutable", { hidden: true }),
	flow("deliver_get", "Delivered"), flow("ack", "Acked", { hidden: true }), flow("redeliver", "Redelivered", { hidden: true }),
];

export default function channels({ signal }) {
	return [heading("Channels"), connectionTabs("Channels"), table({
		noun: "channel", columns: CHANNELS, signal, search: "Filter by address", sort: { by: "messages_unacknowledged", reverse: true },
		filters: vhostFilter(), source: vhostPages("/channels", (vhost) => path`/vhosts/${vhost}/channels`),
		empty: () => empty(nobody("No channel is open", "You have no channel open"), "Clients publish and consume on channels of their connections."),
	})];
}

// The name without the end of this server, which all have in common.
export function shortName(name) {
	return name.replace(/ -> .* /, " ");
}

export function mode(row) {
	return [row.confirm && tag("confirm"), row.transactional && tag("transactions")];
}

export function channelState({ state: now }) {
	return now === "running" ? state("Running", "good") : state(now === "flow" ? "Stopped by the client" : now, "warn");
}

export function prefetch({ prefetch_count: each, global_prefetch_count: together }) {
	if (together) return `${count(together)} together`;
	return each ? count(each) : "no limit";
}
