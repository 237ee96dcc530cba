// One queue: what waits in it, who takes it, and where it comes from.

import { count, get, heading, link, path, tabs, vhostTag, watch, windowOf } from "../lib/kit.js";
import { bindings } from "./bindings.js";
import { publishing } from "./publishing.js";
import { queueActs } from "./queue_acts.js";
import { queueConsumers } from "./queue_consumers.js";
import { queueMessages } from "./queue_messages.js";
import { queueOverview } from "./queue_overview.js";
import { condition, subscriptionLink } from "./queues.js";

const WINDOW = { ...windowOf("msg_rates"), ...windowOf("lengths") };
const BRIEF = { columns: "name,vhost,type,state,messages,messages_ready,messages_ready_details,messages_unacknowledged,consumers,idle_since,subscription" };
const TABS = [
	["", "Overview", queueOverview],
	["messages", "Messages", queueMessages],
	["consumers", "Consumers", queueConsumers],
	["bindings", "Bindings", ({ vhost, name, signal }) => bindings({ vhost, name, kind: "queue", signal })],
	["publish", "Publish", ({ vhost, name }) => publishing({ vhost, exchange: "amq.default", queue: name })],
];

// A tab is made once; the overview has `show` for what each refresh finds.
export default function queue({ params: { vhost, name }, query, signal }) {
	const where = path`/queues/${vhost}/${name}`;
	const [id, , make] = TABS.find(([one]) => one === (query.tab ?? "")) ?? TABS[0];
	let tab = null;
	return watch((gone) => get(where, id === "" ? WINDOW : BRIEF, gone), (found) => {
		const numbers = { messages: found.messages_ready, consumers: found.consumers };
		const entries = TABS.map(([one, text]) => [one in numbers ? `${text} (${count(numbers[one])})` : text, link("/queues", vhost, name, { tab: one })]);
		tab ??= make({ vhost, name, where, query, signal, found });
		return [
			heading(name, { list: ["Queues", "#/queues"], states: [vhostTag(vhost), condition(found)], about: found.subscription && subscriptionLink(found.subscription), actions: queueActs(found) }),
			tabs("Parts of the queue", entries, entries[TABS.findIndex(([one]) => one === id)][0]), tab.show ? tab.show(found) : tab,
		];
	}, signal);
}
