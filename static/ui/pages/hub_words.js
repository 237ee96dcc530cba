// What subscriptions, attempts and dead letters are, in words, and links between their pages.

import { ago, date, day, duration, h, instant, meter, pageLink, state, tag } from "../lib/kit.js";

export const OUTCOMES = [["delivered", "Delivered"], ["retried", "Failed, retried"], ["failed", "Failed, not repeated"], ["dead", "Failed for good"], ["gone", "Ended by 410"]];
const KINDS = { delivered: "good", retried: "warn", failed: "bad", dead: "bad", gone: "bad" };
const SHORT_LEASE = 0.15;
const DAYS_S = 2 * 86400;

export function outcome(attempt) {
  const test = attempt.webhook_id.startsWith("test_") ? [" ", tag("test")] : [];
  return [state(OUTCOMES.find(([word]) => word === attempt.outcome)?.[1] ?? attempt.outcome, KINDS[attempt.outcome] ?? ""), test];
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

const NOT_CONFIRMED = "its callback has not agreed yet"; // the server's words for a reason to pause

export const isConfirmed = (row) => row.paused_reason !== NOT_CONFIRMED;

// Says how a subscription is, and why: what keeps messages from arriving comes first.
export function condition(row) {
  if (row.suspended_reason) return ["Source is gone", "bad", row.suspended_reason];
  if (!isConfirmed(row)) return ["Not confirmed", "warn", row.paused_reason];
  if (row.paused_reason || row.status === "inactive") return ["Paused", "warn", row.paused_reason ?? ""];
  if (row.blocked) return ["Blocked", "bad", row.blocked.reason];
  if (row.breaker === "open") return ["Breaker open", "bad", row.errors?.last_error_msg ?? ""];
  if (row.errors?.error_count) return ["Failing", "warn", row.errors.last_error_msg];
  if (!row.last_success_at) return ["Nothing sent yet", "", ""];
  return ["Delivering", "good", ""];
}

// How much of a lease is left: a bar, and when it ends.
export function lease(row) {
  const left = (instant(row.expires_at) - Date.now()) / 1000;
  const share = row.lease_seconds ? left / row.lease_seconds : 0;
  const kind = left <= 0 ? "bad" : share < SHORT_LEASE ? "warn" : "";
  const text = left <= 0 ? `ended ${ago(row.expires_at)}` : left > DAYS_S ? `until ${day(row.expires_at)}` : `${duration(Math.ceil(left / 60) * 60)} left`;
  return [meter(share, kind, `${Math.round(Math.max(0, share) * 100)} % of the lease is left`),
    h("small", { class: "whole" }, h("time", { datetime: row.expires_at, title: `${date(row.expires_at)}, ${ago(row.expires_at)}` }, text))];
}

export function ratio(value) {
  if (value === null || value === undefined) return "–";
  const percent = value * 100;
  return `${percent === 100 || percent === 0 ? percent : Math.min(99.9, percent).toFixed(1)} %`;
}

export function sourceLink({ vhost, resource_type: kind, resource_name: name }) {
  return pageLink(name || "(default)", kind === "queue" ? "/queues" : "/exchanges", vhost, name || "amq.default");
}
