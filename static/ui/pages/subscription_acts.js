// What can be done to a subscription.

import { act, attempt, done, duration, fill, form, formDialog, h, open, path, post, remove, stack } from "../lib/kit.js";
import { requestView, responseView } from "./hub_request.js";

const SAMPLE = { test: true, message: "Hello from Warren" };

export function sendTest(row) {
	return open("Send a test", (close) => {
		const shown = h("div", { class: "stack", "aria-live": "polite" });
		const fields = [
			{ name: "body", label: "Body", type: "textarea", value: JSON.stringify(SAMPLE, null, 2), help: `Sent to ${row.callback} at once, signed like any delivery and marked as a test. It goes through no exchange.` },
			{ name: "content_type", label: "Content type", value: "application/json" },
		];
		return [form({ name: "send-test", keep: true, fields, button: "Send", cancel: () => close(true), submit: async (values) => show(shown, await post(address(row, "/test"), values)) }), shown];
	}, { wide: true });
}

function show(shown, attempt) {
	fill(shown, h("h3", {}, `Answered after ${duration(attempt.latency_ms / 1000)}`),
		h("div", { class: "grid" }, stack(h("h3", {}, "Response"), responseView(attempt)), stack(h("h3", {}, "Request"), requestView(attempt))));
	shown.scrollIntoView({ block: "start" });
}

export const LEASES = [["3600", "An hour"], ["86400", "A day"], ["604800", "A week"], ["864000", "10 days"], ["2592000", "30 days"], ["7776000", "90 days"], ["31536000", "A year"]];

export const address = ({ id }, verb = "") => path`/hub/subscriptions/${id}` + verb;

export const isPaused = (row) => Boolean(row.paused_reason) || row.status === "inactive" && !row.suspended_reason;

const say = (perform, text) => attempt(() => perform().then(() => done(text)));

export const pause = (row) => say(() => post(address(row, "/pause")), `Paused ${row.callback}. Its messages wait.`);

export const resume = (row) => say(() => post(address(row, "/resume")), `Resumed ${row.callback}.`);

// Asks a callback that has never agreed: what a listing has can be subscribed again.
export const ask = (row) => say(() => post("/hub/subscriptions", { ...row, status: "active" }), `${row.callback} has confirmed.`);

export function renew(row) {
	return formDialog("Renew the lease", {
		button: "Renew", fields: [{ name: "lease_seconds", label: "From now on for", type: "select", options: LEASES, value: String(row.lease_seconds), wide: true }],
		submit: async ({ lease_seconds: seconds }) => {
			await post(address(row, "/renew"), { lease_seconds: Number(seconds) });
			done(`Renewed the lease of ${row.callback}.`);
		},
	});
}

export function end(row, to) {
	return act({
		title: "End the subscription?", act: `End the subscription of ${row.callback}`, to,
		text: "Its callback is told so. Messages that wait for it are dropped; those of a shared queue go back to it. Only a new subscription starts it again.",
	}, () => remove(address(row)), `Ended the subscription of ${row.callback}.`);
}
