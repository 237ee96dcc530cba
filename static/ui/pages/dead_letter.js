// One dead letter: what it says, why it was given up, and what was tried.

import { asText, button, bytes, card, code, count, date, facts, get, h, heading, notice, outside, pageLink, payload, quiet, side, state, time } from "../lib/kit.js";
import { address, drop, replay } from "./dead_letters.js";
import { timeline } from "./delivery.js";
import { reasonOf, sourceLink } from "./hub_words.js";

const ATTEMPTS = 100;

export default async function deadLetter({ params, signal }) {
	const letter = await get(address(params), {}, signal);
	const { attempts } = await get("/hub/attempts", { subscription: letter.subscription, webhook_id: letter.webhook_id, limit: ATTEMPTS }, signal);
	return [
		heading("Dead letter", {
			list: ["Dead letters", "#/dead-letters"], states: state(reasonOf(letter), "bad"), about: letter.dead_at && ["Given up ", time(letter.dead_at), `, ${date(letter.dead_at)}`],
			actions: [button("Replay", () => replay(letter), "main", { disabled: letter.callback === null }), button("Delete", () => drop(letter), "danger")],
		}),
		letter.callback === null && notice("warn", h("span", {}, "Its subscription has ended, so it can't be replayed. It can be read, and deleted.")),
		side(
			card("Where it comes from", facts([
				["Callback", letter.callback && pageLink(letter.callback, "/subscriptions", letter.subscription)], ["Address", letter.callback && outside(letter.callback)],
				["Source", letter.source && sourceLink(letter.source)], ["Exchange", letter.exchange || "(default)"], ["Routing key", code(letter.routing_key)], ["Virtual host", letter.vhost],
				["Message", code(letter.webhook_id)], ["Attempts", count(letter.attempts)], ["Size", bytes(letter.size)],
			])),
			card("What was tried", attempts.length ? timeline(attempts) : quiet("Its attempts are not in the log any more."))),
		card("Message", payload({ payload: letter.payload, encoding: letter.payload_encoding }),
			h("h3", {}, "Properties"), facts([["content_type", letter.content_type], ...Object.entries(letter.properties).map(plain)]),
			Object.keys(letter.headers).length > 0 && [h("h3", {}, "Headers"), facts(Object.entries(letter.headers).map(plain))]),
	];
}

function plain([name, value]) {
	return [name, asText(value)];
}
