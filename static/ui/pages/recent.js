// The last attempts and the dead letters of a subscription.

import { code, count, duration, get, grid, h, pageLink, patch, precise, refresh, section, stack, time } from "../lib/kit.js";
import { answerOf, outcome, reasonOf } from "./hub_words.js";
import { resendButton } from "./resend.js";

const EVERY_S = 2;
const SHOWN = { attempts: 10, letters: 5 };
const ATTEMPTS = [{ label: "When" }, { label: "Outcome" }, { label: "Answer" }, { label: "Attempt", end: true }, { label: "Took", end: true }, { label: "", end: true }];
const LETTERS = [{ label: "Since" }, { label: "Why" }, { label: "Key" }, { label: "Attempts", end: true }];

export function recent(subscription, signal) {
	const page = h("div", { class: "stack" });
	const all = (where, number) => pageLink(number ? `All ${count(number)}` : "All", where, { subscription });
	refresh(async (gone) => {
		const [{ attempts }, { dead_letters: letters, filtered_count: number }] = await Promise.all([
			get("/hub/attempts", { subscription, limit: SHOWN.attempts }, gone), get("/hub/dead-letters", { subscription, page_size: SHOWN.letters }, gone)]);
		patch(page,
			section("Last attempts", all("/deliveries"), attempts.length ? grid("Last attempts", ATTEMPTS, attempts.map(attemptRow)) : h("p", { class: "loading" }, "Nothing was sent yet.")),
			letters.length > 0 && section("Dead letters", all("/dead-letters", number), grid("Dead letters", LETTERS, letters.map(letterRow))));
	}, signal, EVERY_S);
	return stack(page);
}

function attemptRow(one) {
	return [pageLink(precise(one.at), "/deliveries", String(one.id)), outcome(one), answerOf(one), one.number, duration(one.latency_ms / 1000), one.outcome !== "delivered" && resendButton(one, "small")];
}

function letterRow(one) {
	return [pageLink(time(one.dead_at), "/dead-letters", one.vhost, one.id), reasonOf(one), code(one.routing_key), count(one.attempts)];
}
