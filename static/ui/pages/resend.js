// Sends messages again that were attempted before: one, those ticked, or all that match.

import { act, attempt, button, count, counted, date, done, instant, post, report } from "../lib/kit.js";
import { answerOf } from "./hub_words.js";

const WAYS = { replayed: "The dead letter is back in its queue, to be delivered anew.", hastened: "It waits no longer: it is tried now." };
const TIMES = ["since", "until"];

// A button that sends the message of an attempt at once: its receiver can tell by the webhook-id what it has seen.
export function resendButton({ id, webhook_id }, kind) {
	return button("Resend", async (event) => {
		const pressed = event.currentTarget;
		pressed.disabled = true;
		await attempt(async () => {
			const { way, attempt: made } = await post(`/hub/attempts/${id}/resend`);
			done(WAYS[way] ?? `Sent again. The callback answered ${answerOf(made)}.`);
		});
		pressed.disabled = false;
	}, kind, { "aria-label": `Resend ${webhook_id}` });
}

// Counts first, with the same bounds in time as the resend that follows.
export async function resend(filters, picked) {
	const which = picked ? `Those of the ${counted(picked, "attempt")} picked.` : Object.keys(filters).length ? `Those with ${words(filters)}.` : "Everything that the log has is meant. A filter above narrows it.";
	filters.until ??= new Date().toISOString();
	const { matching, resendable } = await post("/hub/attempts/resend", { ...filters, dry_run: true });
	if (!resendable) return report(Object.assign(new Error(matching ? `None of the ${counted(matching, "message")} can be sent again: their requests are not kept (setting attempt_requests).` : "No attempt matches this filter."), { status: 404 }));
	const rest = matching - resendable;
	const text = [which, rest > 0 && `${count(rest)} more can't be sent again, since the request is not kept or the subscription is over.`, "A receiver gets each message with its old webhook-id, so it can tell what it has seen."].filter(Boolean).join(" ");
	return act({ act: `Resend ${counted(resendable, "message")}`, text, safe: true }, () => post("/hub/attempts/resend", filters), ({ resent }) => `Sending ${counted(resent, "message")} again.`);
}

function words(filters) {
	return Object.entries(filters).map(([name, value]) => `${name.replace("_", " ")} ${TIMES.includes(name) ? date(instant(value)) : value}`).join(", ");
}
