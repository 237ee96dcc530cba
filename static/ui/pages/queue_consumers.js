// Who takes messages from a queue, and who holds some of them unacknowledged.

import { count, counted, cut, empty, get, grid, h, pageLink, patch, path, refresh, section, stack, table, time } from "../lib/kit.js";
import { channelOf, consumerColumns } from "./consumer_columns.js";

const HOLDERS = 50;
const COLUMNS = [{ label: "Consumer tag" }, { label: "Channel" }, { label: "Messages", end: true }, { label: "Oldest delivered", end: true }];

export function queueConsumers({ vhost, name, where, signal }) {
	const holders = h("div");
	refresh(async (gone) => {
		const { items, total_count: total } = await get(path`/warren/queues/${vhost}/${name}/unacknowledged`, { page: 1, page_size: HOLDERS }, gone);
		const rest = total > items.length && h("span", { class: "quiet" }, `the first ${count(items.length)} of ${counted(total, "holder")}`);
		patch(holders, items.length > 0 && section("Who holds unacknowledged messages", rest, grid("Holders of messages", COLUMNS, items.map(held))));
	}, signal);
	return stack(table({
		noun: "consumer", columns: consumerColumns("channel"), signal, search: "Filter by tag", sort: { by: "consumer_tag" },
		key: (row) => `${row.channel_details.name} ${row.consumer_tag}`,
		source: async (query, gone) => cut((await get(where, { columns: "consumer_details" }, gone)).consumer_details ?? [], query, (row) => row.consumer_tag),
		empty: () => empty("Nobody consumes this queue", "Messages wait here until an AMQP client consumes them, or a webhook is subscribed to the queue.",
			h("p", {}, pageLink("Subscriptions", "/subscriptions", { resource_type: "queue", resource_name: name }))),
	}), holders);
}

function held(one) {
	return [one.consumer_tag ?? "basic.get", channelOf(one.channel, one.user), count(one.messages), one.since ? time(one.since) : one.user ? "just now" : "–"];
}
