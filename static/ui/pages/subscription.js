// One subscription: is it delivering, why not, and everything that can be done about it.

import { attempt, button, buttons, card, code, command, count, counted, date, duration, endpoint, facts, get, h, heading, link, notice, outside, pageLink, path, post, quoted, session, side, stack, state, tag, tiles, time, watch } from "../lib/kit.js";
import { condition, isConfirmed, lease, nextTry, ratio, sinceWhen, sourceLink } from "./hub_words.js";
import { isOwn } from "./queues.js";
import { recent } from "./recent.js";
import { FORMATS } from "./subscribe.js";
import { address, ask, end, isPaused, pause, renew, resume, sendTest } from "./subscription_acts.js";

const EVERY_S = 2;
const VERIFIED = { callback: "by its callback", token: "by a token", none: "no" };

export default function subscription({ params, signal }) {
	const last = recent(params.id, signal);
	return watch((gone) => get(address(params), {}, gone), (row) => {
		const [text, kind] = condition(row);
		return [
			heading(row.callback, { list: ["Subscriptions", "#/subscriptions"], states: state(text, kind), actions: acts(row) }),
			stack(troubles(row)), row.condition === "idle" && start(row), figures(row), last, side(leaseCard(row), about(row)),
		];
	}, signal, EVERY_S);
}

function acts(row) {
	return [
		button("Send a test", () => sendTest(row), row.condition === "idle" ? null : "main"),
		isConfirmed(row) && (isPaused(row) ? button("Resume", () => resume(row)) : button("Pause", () => pause(row))),
		button("Renew", () => renew(row)), button("End", () => end(row, "#/subscriptions"), "danger"),
	];
}

function figures(row) {
	return tiles([
		["Success lately", ratio(row.success_ratio), link("/deliveries", { subscription: row.id })],
		["Failures in a row", count(row.errors?.error_count ?? 0), link("/deliveries", { subscription: row.id, outcome: "retried" })],
		["Last success", time(row.last_success_at)], ["Breaker", row.breaker],
	]);
}

// What comes next, while nothing was sent.
function start({ vhost, resource_type: kind, resource_name: name, topic }) {
	const [page, letter, exchange, key] = kind === "queue" ? ["/queues", "q", "amq.default", name] : ["/exchanges", "x", name, topic.replace(/[*#]/g, "test")];
	const message = { properties: { content_type: "application/json" }, routing_key: key, payload: '{"hello": "world"}', payload_encoding: "string" };
	const url = endpoint("endpoint", vhost, letter, name) + (letter === "x" ? `?hub.topic=${encodeURIComponent(key)}` : "");
	return card("Publish a first message", h("p", {}, "What is published to ", pageLink(name, page, vhost, name, { tab: "publish" }), " is sent to the callback at once, and shows below."),
		buttons(button("Publish a sample", () => attempt(() => post(path`/exchanges/${vhost}/${exchange}/publish`, message)), "main")), command(`curl -u ${quoted(session.name)} -d hello ${quoted(url)}`));
}

// What is wrong, and what to do about it.
function troubles(row) {
	return [
		row.suspended_reason && notice("bad", state("Source is gone", "bad"), h("span", {}, `${row.suspended_reason}. It goes on by itself when an exchange or queue of that name is declared.`)),
		!isConfirmed(row) && notice("warn", state("Not confirmed", "warn"), h("span", {}, "The callback has not agreed yet, so nothing is sent. It has to answer a GET with the hub.challenge of the query."), button("Ask it now", () => ask(row), "small")),
		row.paused_reason && isConfirmed(row) && notice("warn", state("Paused", "warn"), h("span", {}, `${row.paused_reason}. Its messages wait until it is resumed.`)),
		row.blocked && blocked(row),
		row.condition === "open" && notice("bad", state("Breaker open", "bad"), h("span", {}, "Ten attempts in a row have failed, so nothing is sent for a while; then one message is tried.", " Next try: ", nextTry(row.breaker_until), ". Mend the callback, then send a test.")),
		row.condition === "failing" && notice("warn", state("Failing", "warn"), h("span", {}, `${counted(row.errors.error_count, "attempt has", "attempts have")} failed since ${sinceWhen(row.errors.first_error_time_microsec / 1000)}, the last with ${row.errors.last_error_msg}. What has failed is tried again by itself, later each time. Once the callback is mended, Resend does it at once.`)),
		row.verification === "none" && notice("", h("span", {}, "The callback was never asked whether it wants these messages (hub.verify=none).")),
	];
}

function blocked({ id, condition: how, blocked: { webhook_id, failures, next_attempt_at: next, reason } }) {
	return notice("bad", state("Blocked", "bad"),
		h("span", {}, "Its order is strict, so later messages wait for ", pageLink(code(webhook_id), "/deliveries", { subscription: id, webhook_id }), `, which has failed ${counted(failures, "time")}: ${reason}. `,
			"Mend the callback. Next try: ", nextTry(next, how), ". After its last attempt it becomes a dead letter and the next one is sent. To go on at once, subscribe again with the order loose."));
}

function leaseCard(row) {
	const { errors } = row;
	return card(errors ? "Lease and last error" : "Lease", lease(row)[0], facts([["Granted for", duration(row.lease_seconds)], ["Ends", [date(row.expires_at), " ", h("small", {}, time(row.expires_at))]],
		["Last error", errors && [errors.last_error_msg, " ", h("small", {}, time(errors.last_error_time_microsec / 1000))]]]));
}

function about(row) {
	const { options, contact } = row;
	const queue = row.pseudo_queue ?? (row.resource_type === "queue" ? row.resource_name : null);
	return stack(card("What is sent", facts([
		["Source", [sourceLink(row), " ", row.topic && tag(row.topic)]], ["Virtual host", row.vhost],
		["Waits in", queue && h("a", { href: link("/queues", row.vhost, queue), title: queue }, isOwn(queue) ? "a queue of the hub" : queue)],
		["Callback", outside(row.callback)], ["Topic URL", row.topic_url], ["Sink", row.sink && sourceLink(row.sink)],
		["Format", Object.fromEntries(FORMATS)[options.format] ?? options.format], ["Order", options.order], ["Concurrent requests", options.in_flight || "the default"],
		["Requests per second", row.max_tps || "no limit"], ["Signed", row.secret ? `yes${options.signature_method ? `, X-Hub-Signature by ${options.signature_method}` : ""}` : "no: the callback can't tell who has sent it"],
		["Credentials", row.outbound_auth && "sent (basic)"],
	])), card("Who", facts([["Owner", row.owner || "anonymous"], ["Made at", row.dialect === "websub" ? "/hub (WebSub)" : "/subscribe (RabbitHub)"],
		["Verified", isConfirmed(row) ? VERIFIED[row.verification] ?? row.verification : "not yet"],
		["Application", contact?.app_name], ["Contact", contact?.contact_name], ["Phone", contact?.phone], ["E-mail", contact?.email], ["Description", contact?.description]])));
}
