// The box that publishes to an exchange, with the curl line of what it does.

import { clock, command, endpoint, fill, form, h, path, post, quoted, session, state } from "../lib/kit.js";

// `place()` is what the console listens to: {vhost, kind, name}.
export function publishBox(place) {
	const line = command();
	const outcome = h("p", { role: "status" });
	const fields = form({
		name: "console-publish", button: "Publish", keep: true,
		fields: [
			{ name: "exchange", label: "Exchange", placeholder: "the one that is listened to" }, { name: "routing_key", label: "Routing key" },
			{ name: "type", label: "Content type", value: "application/json" }, { name: "headers", label: "Headers", type: "table" },
			{ name: "body", label: "Payload", type: "textarea", value: '{"hello": "world"}' },
		],
		submit: async (values) => {
			const { vhost, exchange, key } = target(values);
			const properties = { content_type: values.type, delivery_mode: 2, headers: values.headers };
			const { routed } = await post(path`/exchanges/${vhost}/${exchange || "amq.default"}/publish`, { properties, routing_key: key, payload: values.body, payload_encoding: "string" });
			fill(outcome, routed ? state("Published", "good") : state("Not routed", "warn"), ` at ${clock(Date.now())}${routed ? ", and confirmed to be stored." : ": no queue and no reader wants it."}`);
		},
	});

	// Without an exchange it goes to what is listened to: a queue by the default exchange.
	function target(values) {
		const { vhost, kind, name } = place();
		if (values.exchange) return { vhost, exchange: values.exchange, key: values.routing_key };
		return kind === "q" ? { vhost, exchange: "", key: name } : { vhost, exchange: name, key: values.routing_key };
	}
	function draw() {
		const field = (name) => fields.querySelector(`[name=${name}]`).value;
		const values = { exchange: field("exchange"), routing_key: field("routing_key"), type: field("type"), body: field("body") };
		const { vhost, exchange, key } = target(values);
		const url = exchange ? `${endpoint("endpoint", vhost, "x", exchange)}?hub.topic=${encodeURIComponent(key)}` : endpoint("endpoint", vhost, "q", key || "NAME");
		const headers = Object.entries(JSON.parse(field("headers"))).map(([name, value]) => ` -H ${quoted(`X-AMQP-Header-${name}: ${value}`)}`).join("");
		line.set(`curl -u ${quoted(session.name)} -H ${quoted(`Content-Type: ${values.type}`)}${headers} --data-binary ${quoted(values.body)} ${quoted(url)}`);
	}
	fields.addEventListener("input", draw);
	return { element: [fields, outcome, line], draw };
}

export function listenLine({ vhost, kind, name, keys }) {
	const query = keys.map((key) => `key=${encodeURIComponent(key)}`).join("&");
	return `curl -N -u ${quoted(session.name)} ${quoted(`${endpoint("stream", vhost, kind, name || "NAME")}${query ? `?${query}` : ""}`)}`;
}
