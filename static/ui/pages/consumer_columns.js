// Columns of lists of consumers: of a queue, with their channels, or of a channel, with their queues.

import { column, count, duration, h, link, pageLink, state, tag } from "../lib/kit.js";
import { argumentTags } from "./bindings.js";
import { shortName } from "./channels.js";

const STATES = { up: ["Active", "good"], single_active: ["Single active", "good"], waiting: ["Waiting its turn"] };

export function consumerColumns(other) {
	return [
		column.text("consumer_tag", "Consumer tag", { name: true }),
		other === "queue" ? column("queue", "Queue", ({ queue }) => pageLink(queue.name, "/queues", queue.vhost, queue.name), { sort: "queue.name" })
			: column("channel", "Channel", ({ channel_details: given }) => channelOf(given.name, given.user), { sort: "channel_details.name" }),
		column("state", "State", (row) => state(...(STATES[row.activity_status] ?? [row.activity_status]))),
		column("ack", "Acknowledges", (row) => [tag(row.ack_required ? "yes" : "no: automatic"), row.exclusive && [" ", tag("exclusive")]], { optional: true }),
		column("prefetch", "Prefetch", (row) => (row.prefetch_count ? count(row.prefetch_count) : "no limit"), { sort: "prefetch_count", end: true }),
		column("timeout", "Must ack within", (row) => (row.ack_required && row.consumer_timeout ? duration(row.consumer_timeout / 1000) : "–"), { end: true, hidden: true }),
		column("arguments", "Arguments", (row) => argumentTags(row.arguments), { optional: true }),
	];
}

// A link to a channel; consumers of this server itself have none.
export function channelOf(name, user) {
	if (!user) return "this server: a subscription or a reader over HTTP";
	return [h("a", { href: link("/channels", name), title: name }, shortName(name)), h("small", {}, ` ${user}`)];
}
