// The first page for newcomers: a sample message whose delivery shows, and lines to copy.

import { attempt, button, buttons, card, code, command, duration, facts, fill, firstVhost, h, heading, HUB, link, pageLink, path, payload, post, report, request, session, stack, state, time } from "../lib/kit.js";
import { amqpPlace } from "./amqp_place.js";

export const EXCHANGE = "amq.topic";
export const KEY = "first.message";
const LEASE_S = 600;
const TOKEN_S = 900; // a subscription ends no later than the token that made it

// Subscribes the page by a tunnel; `on(message)` is called for each. It ends with `signal`, as its token does.
export async function openCallback(on, signal) {
	const { subscribe } = await import(`${HUB}js/warren.js`);
	const vhost = firstVhost();
	const scopes = [{ read: `x/${EXCHANGE}`, vhost }, { tunnel: "page-*" }];
	const token = await post("/hub/tokens", { name: "first message", scopes, expires_in_s: TOKEN_S });
	const revoke = () => request("DELETE", path`/hub/tokens/${token.id}`, { keepalive: true }).catch(report);
	try {
		const subscription = await subscribe({ hub: HUB, auth: token.token, source: `x/${EXCHANGE}`, vhost, key: KEY, lease: LEASE_S }, on);
		signal.addEventListener("abort", () => subscription.unsubscribe().catch(report).finally(revoke));
		return { url: subscription.callback, vhost };
	} catch (error) {
		await revoke();
		throw error;
	}
}

export function publishSample() {
	const body = JSON.stringify({ hello: "world", at: new Date().toISOString() });
	const properties = { content_type: "application/json", delivery_mode: 2 };
	return post(path`/exchanges/${firstVhost()}/${EXCHANGE}/publish`, { properties, routing_key: KEY, payload: body, payload_encoding: "string" });
}

export default async function welcome({ signal }) {
	const shown = h("div", { class: "stack", role: "status" });
	const send = button("Send a sample message", () => sample(), "main");
	const place = await amqpPlace(signal);
	const user = session.name;
	let callback = null;
	let sent = 0;

	async function sample() {
		send.disabled = true;
		const is_done = await attempt(async () => {
			if (!callback) fill(shown, h("p", {}, state("Subscribing this page", "info")));
			callback ??= await openCallback(delivered, signal);
			sent = performance.now();
			fill(shown, h("p", {}, state("Published, confirmed to be stored", "info")));
			await publishSample();
			send.textContent = "Send another";
		});
		if (!is_done) fill(shown);
		send.disabled = false;
	}
	function delivered(message) {
		fill(shown,
			h("p", {}, state("Delivered", "good"), ` to this page ${duration((performance.now() - sent) / 1000)} after it was published, `, time(Date.now())),
			facts([["Callback", code(callback.url)], ["Exchange and key", [pageLink(EXCHANGE, "/exchanges", callback.vhost, EXCHANGE), " ", code(KEY)]]]),
			payload({ payload: message.body }),
			h("p", {}, h("a", { href: link("/deliveries", { webhook_id: message.id }), target: "_blank" }, "See this page's answer among the deliveries"), ", in a new tab"));
	}

	return [
		heading("First message", { about: "From an empty server to a delivered webhook in a minute." }),
		card("Here in the page", h("p", {}, "This page becomes a webhook target, by a tunnel: it subscribes to a key of the exchange ", code(EXCHANGE), ", publishes a message, and gets it as a POST. All of it ends when you leave the page."), buttons(send), shown),
		card("From a terminal", h("ol", { class: "stack" },
			step("Wait for messages of the exchange. This line stays open:", `curl -N -u ${user} '${HUB}stream/x/${EXCHANGE}?key=%23'`),
			step("Publish one, from another terminal:", `curl -u ${user} -d '{"hello": "world"}' '${HUB}endpoint/x/${EXCHANGE}?hub.topic=greeting'`),
			step("Let a webhook have each message of a key. The callback has to confirm first:", `curl -u ${user} -d hub.mode=subscribe -d hub.callback=https://example.com/hook -d hub.topic=greeting '${HUB}subscribe/x/${EXCHANGE}'`))),
		card("With a client library", h("p", {}, `AMQP 0-9-1 clients connect to ${place}. `, h("a", { href: "docs/tutorial/" }, "The tutorial"), " shows it in five languages.")),
	];
}

function step(text, line) {
	return h("li", {}, stack(h("p", {}, text), command(line)));
}
