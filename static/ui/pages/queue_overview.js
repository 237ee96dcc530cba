// The first view of a queue: figures, ten minutes of charts, and what the queue is.

import { asText, bytes, card, count, duration, facts, history, link, pageLink, rate, side, stack, tiles, time } from "../lib/kit.js";

const RATES = [["publish", "In", 1], ["deliver_get", "Out", 2], ["ack", "Acked", 3], ["redeliver", "Redelivered", 5]];
const LENGTHS = [["messages_ready", "Ready", 4], ["messages_unacknowledged", "Unacked", 6]];
const TOTALS = [["get_empty", "basic.get, empty"], ["reject", "Rejected"]];
const TIMES = /ttl$|expires$|timeout$|retry-m/;

export function queueOverview({ vhost, name }) {
	const lengths = history("Messages", LENGTHS, count, { raw: true });
	const rates = history("Rates", RATES, rate);
	const to = (tab, more) => link("/queues", vhost, name, { tab, ...more });
	return { show(found) {
		const { message_stats: stats } = found;
		lengths.draw(found);
		rates.draw(stats);
		return stack(
			tiles([
				["Ready", count(found.messages_ready), to("messages")], ["Unacked", count(found.messages_unacknowledged), to("consumers")], ["Consumers", count(found.consumers), to("consumers")],
				["In", rate(stats.publish_details.rate)], ["Out", rate(stats.deliver_get_details.rate)],
				["Oldest message", duration(found.oldest_message_age_s), to("messages", { from: "first" })],
			]),
			side(card(null, lengths), card(null, rates)),
			side(card("Queue", facts(queueFacts(found))), stack(card("Arguments and policy", facts(ruleFacts(found))),
				card("Totals", facts([...RATES.map(([one, label]) => [label, count(stats[one])]), ["basic.get", count(stats.get + stats.get_no_ack)], ...TOTALS.map(([one, label]) => [label, count(stats[one])])])))));
	} };
}

function queueFacts(found) {
	return [
		["Type", found.type], ["Durability", found.durable ? "durable: still there after a restart" : "transient: gone after a restart"],
		["Auto-delete", found.auto_delete ? "with its last consumer" : null],
		["Exclusive to", found.owner_pid_details && pageLink(found.owner_pid_details.name, "/connections", found.owner_pid_details.name)],
		["Messages", found.messages ? `${count(found.messages)}, ${bytes(found.message_bytes)}` : "none"],
		["In memory", found.messages ? `${count(found.messages_ram)}, ${bytes(found.message_bytes_ram)}` : null], ["On disk alone", found.messages_paged_out ? count(found.messages_paged_out) : null],
		["Consumer capacity", found.consumers ? `${Math.round(found.consumer_capacity * 100)} %` : null], ["Active consumer", found.single_active_consumer_tag ?? found.exclusive_consumer_tag],
		["Idle since", found.idle_since && time(found.idle_since)], ["Node", found.node],
	];
}

function ruleFacts(found) {
	const { policy, operator_policy: operator, effective_policy_definition: definition } = found;
	const worded = (table) => Object.entries(table ?? {}).map(([key, value]) => [key, valueOf(key, value, found)]);
	const rules = [...worded(found.arguments), ["Policy", policy && policyLink(policy)], ["Operator policy", operator && policyLink(operator, "operator")], ...worded(definition)].filter(([, value]) => value);
	return rules.length ? rules : [["None", "nothing limits this queue, and it dead-letters nothing"]];
}

export function policyLink(name, kind) {
	return pageLink(name, "/policies", { kind, name });
}

function valueOf(key, value, { vhost }) {
	if (typeof value === "number") return TIMES.test(key) ? `${count(value)} ms (${duration(value / 1000)})` : count(value);
	const text = asText(value);
	return key.replace(/^x-/, "") === "dead-letter-exchange" ? pageLink(text || "(default exchange)", "/exchanges", vhost, text || "amq.default") : text;
}
