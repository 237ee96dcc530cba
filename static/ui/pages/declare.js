import { done, formDialog, go, link, path, put, vhostField } from "../lib/kit.js";

// Arguments of queues, and the same as keys of policies, where they have one.
export const QUEUE_ARGUMENTS = [
	["x-message-ttl", "Milliseconds until a message expires"], ["x-expires", "Milliseconds without use until the queue is deleted"],
	["x-max-length", "Most ready messages"], ["x-max-length-bytes", "Most bytes of them"], ["x-overflow", "drop-head, reject-publish or reject-publish-dlx"],
	["x-dead-letter-exchange", "Gets what is rejected, expires or is dropped"], ["x-dead-letter-routing-key", "Its key then, if not its own"],
	["x-delivery-limit", "Most deliveries of a message"], ["x-max-priority", "Priorities from 0 to this"], ["x-single-active-consumer", "true: one consumer at a time"],
	["x-max-age", "Of streams, such as 7D"],
];
const TYPES = [["classic", "Classic"], ["quorum", "Quorum"], ["stream", "Stream: consuming removes nothing"]];
const DURABILITY = [["durable", "Still there (durable)"], ["transient", "Gone (transient)"]];
const EXCHANGE_TYPES = ["direct", "fanout", "topic", "headers", "x-consistent-hash", "x-delayed-message", "x-random", "x-local-random", "x-modulus-hash", "x-recent-history"];
const EXCHANGE_ARGUMENTS = [["alternate-exchange", "Gets what no binding matches"], ["x-delayed-type", "Of x-delayed-message: the type behind it"], ["hash-header", "Of x-consistent-hash: the header in the key's place"]];

const argumentsField = (known) => ({ name: "arguments", label: "Arguments", type: "table", known });

export function declareQueue() {
	return formDialog("New queue", {
		name: "declare-queue", button: "Create queue",
		fields: [
			{ name: "name", label: "Name", required: true }, vhostField(), { name: "type", label: "Type", type: "select", options: TYPES },
			{ name: "durability", label: "After a restart", type: "select", options: DURABILITY, when: ({ type }) => type === "classic" }, argumentsField(QUEUE_ARGUMENTS),
		],
		submit: async ({ vhost, name, type, durability, arguments: given }) => {
			await put(path`/queues/${vhost}/${name}`, { durable: durability !== "transient", arguments: { "x-queue-type": type, ...given } });
			done(`Created the queue ${name}.`);
			go(link("/queues", vhost, name));
		},
	});
}

export function declareExchange() {
	return formDialog("New exchange", {
		name: "declare-exchange", button: "Create exchange",
		fields: [
			{ name: "name", label: "Name", required: true }, vhostField(), { name: "type", label: "Type", type: "select", options: EXCHANGE_TYPES, value: "topic" },
			{ name: "durable", label: "Durable", type: "check", value: true }, { name: "auto_delete", label: "Delete with its last binding", type: "check" },
			{ name: "internal", label: "Internal: clients can't publish to it", type: "check" }, argumentsField(EXCHANGE_ARGUMENTS),
		],
		submit: async ({ vhost, name, ...body }) => {
			await put(path`/exchanges/${vhost}/${name}`, body);
			done(`Created the exchange ${name}.`);
			go(link("/exchanges", vhost, name));
		},
	});
}
