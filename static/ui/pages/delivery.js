// One attempt: what was sent, what was answered, every attempt of the message, and the next one.

import { card, code, command, date, duration, facts, get, h, heading, instant, notice, outside, pageLink, path, quiet, side, state, tag, time, watch } from "../lib/kit.js";
import { requestCurl, requestView, responseView } from "./hub_request.js";
import { answerOf, nextTry, outcome, sourceLink } from "./hub_words.js";
import { resendButton } from "./resend.js";

// `id` is the attempt that the page is about; `next` says when the next one comes.
export function timeline(attempts, { id, next } = {}) {
	const rows = [...attempts].sort((a, b) => instant(a.at) - instant(b.at));
	return h("ol", { class: "timeline" }, rows.map((one, at) => h("li", { "aria-current": one.id === id ? "step" : null },
		h("span", {}, outcome(one), " ", one.id === id ? h("b", {}, `Attempt ${one.number}`) : pageLink(`Attempt ${one.number}`, "/deliveries", String(one.id))),
		h("span", {}, answerOf(one)),
		h("small", {}, time(one.at), at ? `, ${duration((instant(one.at) - instant(rows[at - 1].at)) / 1000)} after the one before` : "", `, took ${duration(one.latency_ms / 1000)}`))),
	next && h("li", {}, h("span", {}, state("Next try", "info")), h("small", {}, next)));
}

const EVERY_S = 2;
const ADVICE = {
	410: "410 says that the callback is gone for good, so the subscription has ended. Subscribe again if that was a mistake.",
	508: "508 says that the message has come back to where it was before. Look for two hubs that subscribe to each other.",
	401: "The callback refuses who asks. Check its credentials, and whether it verifies the signature with the same secret.",
	404: "Nothing answers at this path. Check the callback's address.",
	429: "The callback asks for fewer requests. A Retry-After in its answer is respected; max_tps limits the rate.",
};

export default async function delivery({ params, signal }) {
	const where = path`/hub/attempts/${params.id}`;
	const found = await get(where, {}, signal);
	const same = [requestView(found), responseView(found)];
	const line = found.request && h("details", { class: "card" }, h("summary", {}, "Send the same request yourself"), quiet("Its signature is from the time above."), command(requestCurl(found.request)));
	return watch((gone) => get(where, {}, gone), ({ attempts, next_attempt_at: next, condition }) => [
		heading(`Attempt ${found.number} for ${host(found.callback)}`, {
			list: ["Deliveries", "#/deliveries"], states: outcome(found), about: `${date(found.at)}, ${duration(found.latency_ms / 1000)}: ${answerOf(found)}`,
			actions: resendButton(found, found.outcome === "delivered" ? null : "main"),
		}),
		advice(found, attempts[0]),
		card("All attempts of this message", timeline(attempts, { id: found.id, next: found.source && next && nextTry(next, condition) })),
		side(card("Request", same[0]), card("Response", same[1])),
		card(null, facts([
			["Callback", outside(found.callback)], ["Subscription", pageLink(code(found.subscription), "/subscriptions", found.subscription)],
			["Source", found.source && [sourceLink(found.source), " ", found.topic && tag(found.topic)]],
			["Message", [pageLink(code(found.webhook_id), "/deliveries", { webhook_id: found.webhook_id }), h("small", {}, " its webhook-id, the same in all attempts")]],
		])),
		line,
	], signal, EVERY_S);
}

function host(url) {
	try {
		return new URL(url).host;
	} catch {
		return url; // a callback that is not a URL, such as the name of a queue here
	}
}

// What to do about the usual answers, until a later attempt has arrived.
function advice({ id, outcome: how, status }, last) {
	if (how === "delivered") return null;
	if (last.outcome === "delivered" && last.id !== id) return notice("good", h("span", {}, "The message has arrived: ", pageLink(`attempt ${last.number}`, "/deliveries", String(last.id)), ` was answered ${answerOf(last)}.`));
	return notice(how === "retried" ? "warn" : "bad", h("span", {}, ADVICE[status === 403 ? 401 : status] ?? ofClass(status)));
}

function ofClass(status) {
	if (status >= 500) return "The callback failed. Check its log.";
	if (status >= 400) return "The callback refuses the request. Its answer may say why.";
	if (status >= 300) return "Redirects are not followed. Subscribe the address that the callback redirects to.";
	return "The callback did not answer. Check that it runs, that its name resolves, and that it answers within 15 s.";
}
