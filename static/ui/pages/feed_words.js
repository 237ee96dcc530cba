// How a feed is, in words and shapes, and the links to its documents.

import { h, HUB, state } from "../lib/kit.js";

const KINDS = { ok: "good", new: "info", failing: "warn", dead: "bad", gone: "bad", paused: "" };
const STATES = { ok: "OK", new: "New", failing: "Failing", dead: "Dead", gone: "Gone", paused: "Paused" };
const PUSH_KINDS = { active: "good", pending: "info", broken: "warn", failed: "warn", none: "" };
const PUSH = { active: "Pushed", pending: "Pending", broken: "Broken", failed: "Failed" };
export const FORMATS = ["atom", "rss", "json"];

export const isStopped = (feed) => feed.state === "paused" || feed.state === "gone";

export const STATE_OPTIONS = [["", "All states"], ...Object.entries(STATES)];

export function feedState(feed) {
  return state(STATES[feed.state] ?? feed.state, KINDS[feed.state]);
}

export function pushState({ state: now }) {
  return now === "none" ? "–" : state(PUSH[now] ?? now, PUSH_KINDS[now]);
}

// The address of a document of a feed or output: format is atom, rss or json.
export function documentUrl(vhost, name, format) {
  return `${HUB}${vhost === "/" ? "" : `${encodeURIComponent(vhost)}/`}feeds/${encodeURIComponent(name)}.${format}`;
}

export function documentLinks(vhost, name) {
  return FORMATS.map((format) => [h("a", { href: documentUrl(vhost, name, format), target: "_blank", rel: "noopener noreferrer" }, `.${format}`), " "]);
}
