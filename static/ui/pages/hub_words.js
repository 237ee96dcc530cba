// What subscriptions, attempts and dead letters are, in words, and links between their pages.

import { ago, clock, date, day, duration, h, instant, meter, pageLink, state, tag, time } from "../lib/kit.js";

// How an attempt ended: [words, kind of state].
export const OUTCOMES = { retried: ["Failed, retried", "warn"], failed: ["Failed, not repeated", "bad"], dead: ["Failed for good", "bad"], gone: ["Ended by 410", "bad"], delivered: ["Delivered", "good"] };
const SHORT_LEASE = 0.15;
const DAYS_S = 2 * 86400;

export function outcome(attempt) {
	const test = attempt.webhook_id.startsWith("test_") ? [" ", tag("test")] : [];
	return [state(...OUTCOMES[attempt.outcome]), test];
}

// Returns "503 Service Unavailable", or why there was no answer.
export function answerOf({ status, response }) {
	const first = (response ?? "").split("\n")[0].trim();
	if (status === null || status === undefined) return first ? `No answer: ${first.replace(/^\w+Error: /, "")}` : "No answer";
	return first.replace(/^HTTP\/[\d.]+ /, "").startsWith(String(status)) ? first.replace(/^HTTP\/[\d.]+ /, "") : String(status);
}

// Returns why a message was given up: the last reason, without how often it was tried.
export function reasonOf({ reason }) {
	return reason.replace(/^\d+ (attempts|failures), the last: /, "");
}

// How a subscription is: [words, kind of state, why], by the server's word; the worst first.
export const CONDITIONS = {
	suspended: ["Source is gone", "bad"], blocked: ["Blocked", "bad"], open: ["Breaker open", "bad"], failing: ["Failing", "warn"],
	unconfirmed: ["Not confirmed", "warn"], paused: ["Paused", "warn"], idle: ["Nothing sent yet", ""], delivering: ["Delivering", "good"],
};

export function condition(row) {
	const why = row.suspended_reason ?? row.paused_reason ?? row.blocked?.reason ?? (row.errors?.error_count ? row.errors.last_error_msg : "");
	return [...CONDITIONS[row.condition], why];
}

const WAITS = { suspended: "until its source is there again", unconfirmed: "until the callback agrees", paused: "until the subscription is resumed" };

// When a message is tried next, or what it waits for.
export function nextTry(at, how) {
	const waits = WAITS[how] ?? (instant(at) <= Date.now() && "for its turn");
	return waits ? `waits ${waits}` : [time(at), how === "open" && ", once the breaker lets a message through"];
}

export const isConfirmed = (row) => row.condition !== "unconfirmed";

// Returns "09:14", or the day of what is older.
export function sinceWhen(value) {
	return Date.now() - instant(value) < DAYS_S * 500 ? clock(value).slice(0, 5) : day(value);
}

// How much of a lease is left: a bar, and when it ends.
export function lease(row) {
	const left = (instant(row.expires_at) - Date.now()) / 1000;
	const share = row.lease_seconds ? left / row.lease_seconds : 0;
	const kind = left <= 0 ? "bad" : share < SHORT_LEASE ? "warn" : "rest";
	const text = left <= 0 ? `ended ${ago(row.expires_at)}` : left > DAYS_S ? `until ${day(row.expires_at)}` : `${duration(Math.ceil(left / 60) * 60)} left`;
	return [meter(share, kind, `${Math.round(Math.max(0, share) * 100)} % of the lease is left`),
		h("small", { class: "whole" }, h("time", { datetime: row.expires_at, title: `${date(row.expires_at)}, ${ago(row.expires_at)}` }, text))];
}

export function ratio(value) {
	if (value === null || value === undefined) return "–";
	const percent = value * 100;
	return `${percent === 100 || percent === 0 ? percent : Math.min(99.9, percent).toFixed(1)} %`;
}

// The share that succeeded as a bar and in figures; the rest of the bar has failed.
export function success({ success_ratio: value }) {
	return value === null ? "–" : h("span", { class: "line" }, meter(value, "parts", `${ratio(1 - value)} of the last attempts failed`), ratio(value));
}

export function sourceLink({ vhost, resource_type: kind, resource_name: name }) {
	return pageLink(name || "(default)", kind === "queue" ? "/queues" : "/exchanges", vhost, name || "amq.default");
}
