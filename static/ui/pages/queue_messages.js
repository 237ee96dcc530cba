// Messages of a queue: looked at without taking them, or got as RabbitMQ's page does.

import { act, asText, attempt, button, buttons, bytes, card, count, counted, date, done, empty, facts, fill, form, get, h, path, payload, post, quiet, select, setQuery, stack, tag } from "../lib/kit.js";

const SHOWN_BYTES = 65_536;
const MODES = [["ack_requeue_true", "Nack and requeue"], ["ack_requeue_false", "Ack: take them"], ["reject_requeue_true", "Reject and requeue"], ["reject_requeue_false", "Reject: drop or dead-letter"]];
const TAKES = ["ack_requeue_false", "reject_requeue_false"];
const PLACES = [["first", "the first"], ["last", "the last"], ["position", "from position"]];

export function queueMessages({ vhost, name, where, query, found }) {
	const list = h("div", { class: "stack" });
	return stack(lookTools(path`/warren/queues/${vhost}/${name}/messages`, query, list, found), list, found.type !== "stream" && getCard(name, where));
}

function lookTools(look, query, list, found) {
	const start = query.from ?? "first";
	const from = select(PLACES, ["first", "last"].includes(start) ? start : "position", { name: "from", "aria-label": "Which messages" });
	const position = h("input", { type: "number", name: "position", min: "0", "aria-label": "Position", value: from.value === "position" ? start : "0" });
	const number = h("input", { type: "number", name: "count", min: "1", max: "250", "aria-label": "How many", value: query.count ?? "10" });
	const showPosition = () => { position.hidden = from.value !== "position"; };
	const show = () => attempt(async () => {
		const wanted = { from: from.value === "position" ? position.value : from.value, count: number.value };
		setQuery(wanted);
		fill(list, shown(await get(look, { ...wanted, truncate: SHOWN_BYTES })));
	});
	const go = (first) => () => {
		from.value = "position";
		position.value = first;
		showPosition();
		show();
	};
	function shown({ ready, messages }) {
		if (!messages.length) return card(null, ready ? empty("No message there", `The queue has ${counted(ready, "message")}.`) : empty("No message is ready", "What is published and routed here is shown here until a consumer takes it."));
		const [first, last] = [messages[0].position, messages.at(-1).position];
		return [
			quiet(`${counted(messages.length, "message")} of ${count(ready)} that are ready. They stay where they are.`),
			messages.map((one) => messageCard(one, `${found.type === "stream" ? "Offset" : "Position"} ${count(one.position)}`)),
			buttons(button("Previous", go(Math.max(0, first - Number(number.value))), "small", { disabled: first === 0 }), button("Next", go(last + 1), "small")),
		];
	}
	showPosition();
	show();
	return h("form", { class: "tools", onchange: showPosition, onsubmit: (event) => { event.preventDefault(); show(); } },
		h("span", {}, "Look at"), from, position, number, h("span", {}, "messages"), h("button", { type: "submit", class: "main" }, "Show"));
}

function messageCard(message, name) {
	const { headers = {}, ...properties } = message.properties;
	const death = headers["x-death"]?.[0];
	return h("article", { class: "card" },
		h("header", {}, h("h2", {}, name), message.redelivered && tag("redelivered"), death && tag(`dead-lettered: ${death.reason}`, `${counted(death.count, "time")} from ${death.queue}`), h("span", { class: "quiet" }, bytes(message.payload_bytes))),
		h("div", { class: "grid message" },
			stack(facts([["Exchange", message.exchange || "(default exchange)"], ["Routing key", message.routing_key || "(empty)"], ...entriesOf(properties)]),
				Object.keys(headers).length > 0 && h("section", {}, h("h3", {}, "Headers"), facts(entriesOf(headers)))),
			payload({ payload: message.payload, encoding: message.payload_encoding, size: message.payload_bytes, label: `Payload of ${name.toLowerCase()}` })));
}

function entriesOf(table) {
	return Object.entries(table).map(([key, value]) => [key, worded(key, value)]);
}

function worded(key, value) {
	if (key === "timestamp" && typeof value === "number") return date(value * 1000);
	if (key === "delivery_mode") return value === 2 ? "2, persistent" : "1, transient";
	if (key === "x-death" && Array.isArray(value)) return value.map((one) => h("div", {}, `${count(one.count)} × ${one.reason} in ${one.queue}${one.time?.$timestamp ? `, ${date(one.time.$timestamp * 1000)}` : ""}`));
	return asText(value);
}

function getCard(name, where) {
	const list = h("div", { class: "stack" });
	const fields = [{ name: "ackmode", label: "Then", type: "select", options: MODES, help: "Putting back marks messages as redelivered." }, { name: "count", label: "How many", type: "number", value: 1 },
		{ name: "encoding", label: "Encoding", type: "select", options: [["auto", "Text where it is UTF-8"], ["base64", "Base64"]] }];
	return h("details", { class: "card" }, h("summary", {}, "Get messages as a consumer does"), form({ name: `get:${where}`, keep: true, button: "Get messages", fields, submit: async (values) => {
		const take = async () => fill(list, (await post(`${where}/get`, { ...values, truncate: SHOWN_BYTES })).map((one, at) => messageCard(one, `Got ${count(at + 1)}`)));
		if (TAKES.includes(values.ackmode)) return act({ act: `Take ${counted(values.count, "message")} from ${name}`, text: "They leave the queue." }, take, () => `Took ${counted(list.children.length, "message")} from ${name}.`);
		await take();
		return done(list.children.length ? `Got ${counted(list.children.length, "message")} and put them back.` : `${name} has no ready message.`);
	} }), list);
}
