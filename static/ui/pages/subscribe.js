// The dialog that subscribes a callback.

import { done, FieldError, formDialog, get, go, link, post, vhostField } from "../lib/kit.js";
import { LEASES } from "./subscription_acts.js";

const SECRET_BYTES = 32;
const advanced = (values) => values.more;
const isExchange = (values) => values.resource_type === "exchange";

export const FORMATS = [["plain", "The message as it is"], ["cloudevents-binary", "CloudEvents, in headers"], ["cloudevents-structured", "CloudEvents, as JSON"]];
const ORDERS = [["loose", "Loose: a failure does not hold up others"], ["strict", "Strict: a failure blocks what comes later"]];
const KINDS = [["exchange", "An exchange"], ["queue", "A queue, shared with its consumers"]];

export function newSubscription() {
	return formDialog("New subscription", { name: "new-subscription", button: "Subscribe", fields: fields(), submit: subscribe, wide: true });
}

function fields() {
	return [
		{ name: "callback", label: "Callback", required: true, wide: true, placeholder: "https://example.com/hook", help: "Warren asks it first: it has to answer a GET with the hub.challenge of the query." },
		vhostField(), { name: "resource_type", label: "Messages of", type: "select", options: KINDS }, { name: "resource_name", label: "Its name", required: true, value: "amq.topic", help: "amq.topic is there from the start.", when: isExchange },
		{ name: "queue", label: "Its name", required: true, when: (values) => !isExchange(values) },
		{ name: "topic", label: "Topic", value: "#", help: "The binding key, such as order.*; # is every key of a topic exchange.", when: isExchange },
		{ name: "secret", label: "Secret", secret: true, value: newSecret(), wide: true, help: "Signs each delivery. Copy it into the receiver now, it is not shown again. Empty: not signed." },
		{ name: "more", label: "More options", type: "check", wide: true },
		{ name: "lease_seconds", label: "Lease", type: "select", options: LEASES, value: "2592000", when: advanced },
		{ name: "format", label: "Format", type: "select", options: FORMATS, when: advanced },
		{ name: "order", label: "Order", type: "select", options: ORDERS, when: advanced },
		{ name: "in_flight", label: "Concurrent requests", type: "number", placeholder: "1", when: (values) => advanced(values) && values.order !== "strict" },
		{ name: "max_tps", label: "Requests per second at most", type: "number", placeholder: "no limit", when: advanced },
		{ name: "app_name", label: "Application", when: advanced, help: "Who to ask about it; shown in lists." },
		{ name: "email", label: "Contact", type: "email", when: (values) => advanced(values) && values.app_name !== "" },
	];
}

function newSecret() {
	const octets = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
	return `whsec_${btoa(String.fromCharCode(...octets))}`;
}

async function subscribe(values) {
	const { callback, vhost, resource_type, queue, resource_name = queue, topic = "", secret, lease_seconds, format, order, in_flight, max_tps, app_name, email } = values;
	if (!/^https?:\/\//i.test(callback)) throw new FieldError("callback", "Callback is not a URL that begins with http:// or https://.");
	const options = Object.fromEntries(Object.entries({ format, order, in_flight }).filter(([, value]) => value));
	const contact = app_name ? { app_name, ...(email ? { email } : {}) } : undefined;
	await post("/hub/subscriptions", {
		vhost, resource_type, resource_name, callback, topic, options, contact, ...(secret ? { secret } : {}),
		...(max_tps ? { max_tps } : {}), ...(lease_seconds ? { lease_seconds: Number(lease_seconds) } : {}),
	});
	const { subscriptions } = await get("/hub/subscriptions", { vhost, resource_type, resource_name, topic, callback, page: 1, page_size: 1 });
	done(`Subscribed ${callback}: it has confirmed.`);
	go(subscriptions.length ? link("/subscriptions", subscriptions[0].id) : "#/subscriptions");
}
