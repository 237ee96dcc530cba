import { card, fill, form, h, notice, path, post, stack, state } from "../lib/kit.js";

const PROPERTIES = [["priority", "0 to 255"], ["expiration", "Milliseconds, as a text"], ["correlation_id", ""], ["reply_to", ""], ["message_id", ""], ["timestamp", "Seconds since 1970"], ["type", ""], ["user_id", ""], ["app_id", ""]];

export function publishing({ vhost, exchange, queue }) {
	const where = path`/exchanges/${vhost}/${exchange}/publish`;
	const outcome = h("div", { role: "status" });
	const key = queue === undefined ? [{ name: "routing_key", label: "Routing key" }] : [];
	const body = form({
		name: `publish:${where}${queue ?? ""}`, keep: true, button: "Publish message",
		fields: [
			...key, { name: "payload", label: "Payload", type: "textarea" },
			{ name: "payload_encoding", label: "Payload is", type: "select", options: [["string", "Text"], ["base64", "Base64"]] },
			{ name: "delivery_mode", label: "After a restart", type: "select", options: [["2", "Still there (persistent)"], ["1", "Gone (transient)"]] },
			{ name: "content_type", label: "Content type", placeholder: "application/json" },
			{ name: "headers", label: "Headers", type: "table" }, { name: "properties", label: "Other properties", type: "table", known: PROPERTIES },
		],
		submit: async (values) => {
			const { routed } = await post(where, messageOf(values, queue));
			fill(outcome, routed ? notice("good", state("Routed", "good"), h("span", {}, `Published at ${new Date().toLocaleTimeString("en-GB")}; at least one queue has it, and it is stored.`))
				: notice("warn", state("Not routed", "warn"), h("span", {}, `No queue has got it: no binding of ${exchange} matches it. The message is gone.`)));
		},
	});
	return stack(card("Publish a message", body, outcome));
}

function messageOf({ routing_key, payload, payload_encoding, delivery_mode, content_type, headers, properties }, queue) {
	const given = { ...properties, delivery_mode: Number(delivery_mode) };
	if (content_type) given.content_type = content_type;
	if (Object.keys(headers).length) given.headers = headers;
	return { routing_key: queue ?? routing_key, payload, payload_encoding, properties: given };
}
