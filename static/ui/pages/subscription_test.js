// Sends a test event to a callback, and shows what was sent and answered.

import { duration, fill, form, h, open, post, stack } from "../lib/kit.js";
import { requestView, responseView } from "./hub_request.js";
import { address } from "./subscription_acts.js";

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
