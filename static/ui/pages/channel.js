// One channel: what is published and consumed on it.

import { card, count, counted, cut, empty, facts, get, h, heading, history, pageLink, path, rate, side, table, tiles, vhostTag, watch, windowOf } from "../lib/kit.js";
import { channelState, mode, prefetch, shortName } from "./channels.js";
import { consumerColumns } from "./consumer_columns.js";

const PUBLISHING = [["publish", "Published", 1], ["confirm", "Confirmed", 3], ["return_unroutable", "Returned", 5]];
const CONSUMING = [["deliver_get", "Delivered", 2], ["ack", "Acked", 3], ["redeliver", "Redelivered", 5]];
const TOTALS = [...PUBLISHING, ["drop_unroutable", "Dropped as unroutable"], ...CONSUMING, ["get_empty", "basic.get, empty"], ["reject", "Rejected"]];

export default function channel({ params: { name }, signal }) {
	const where = path`/channels/${name}`;
	const charts = [history("Publishing", PUBLISHING, rate), history("Consuming", CONSUMING, rate)];
	const consumers = table({
		noun: "consumer", columns: consumerColumns("queue"), signal, search: null, sort: { by: "consumer_tag" }, key: (row) => row.consumer_tag,
		source: async (query, gone) => cut((await get(where, { columns: "consumer_details" }, gone)).consumer_details ?? [], query),
		empty: () => empty("Nothing is consumed on this channel", "Its client only publishes, or gets single messages."),
	});
	return watch((gone) => get(where, windowOf("msg_rates"), gone), (found) => {
		const { connection_details: { name: connection }, message_stats: stats } = found;
		charts.forEach((chart) => chart.draw(stats));
		return [
			heading(shortName(name), { list: ["Channels", "#/channels"], states: [vhostTag(found.vhost), channelState(found)] }),
			tiles([["Unacked", count(found.messages_unacknowledged)], ["Unconfirmed", count(found.messages_unconfirmed)], ["Consumers", count(found.consumer_count)], ["Prefetch", prefetch(found)],
				["Published", rate(stats.publish_details.rate)], ["Delivered", rate(stats.deliver_get_details.rate)]]),
			side(charts.map((chart) => card(null, chart))), h("h2", {}, "Consumers"), consumers,
			side(card("Channel", facts([["Connection", pageLink(connection, "/connections", connection)], ["User", found.user], ["Number", count(found.number)],
				["Mode", found.confirm || found.transactional ? mode(found) : "neither confirms nor transactions"],
				["Prefetch of each consumer", found.prefetch_count || "no limit"], ["Prefetch of all together", found.global_prefetch_count || "no limit"],
				["Uncommitted", found.transactional && `${counted(found.messages_uncommitted, "message")}, ${counted(found.acks_uncommitted, "ack")}`]])),
			card("Totals", facts(TOTALS.map(([one, label]) => [label, count(stats[one])])))),
		];
	}, signal);
}
