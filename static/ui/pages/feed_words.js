// How a feed is, in words and shapes, and the links to its documents.

import { h, HUB, state } from "../lib/kit.js";

// The states of a feed: [words, kind of state].
export const STATES = { failing: ["Failing", "warn"], dead: ["Dead", "bad"], gone: ["Gone", "bad"], paused: ["Paused", ""], new: ["New", "info"], ok: ["OK", "good"] };
const PUSH = { active: ["Pushed", "good"], pending: ["Pending", "info"], broken: ["Broken", "warn"], failed: ["Failed", "warn"] };
export const FORMATS = ["atom", "rss", "json"];

export const isStopped = (feed) => feed.state === "paused" || feed.state === "gone";

export function feedState(feed) {
  return state(...STATES[feed.state]);
}

export function pushState({ state: now }) {
  return now === "none" ? "–" : state(...PUSH[now]);
}

// The address of a document of a feed or output: format is atom, rss or json.
export function documentUrl(vhost, name, format) {
  return `${HUB}${vhost === "/" ? "" : `${encodeURIComponent(vhost)}/`}feeds/${encodeURIComponent(name)}.${format}`;
}

export function documentLinks(vhost, name) {
  return FORMATS.map((format) => [h("a", { href: documentUrl(vhost, name, format), target: "_blank", rel: "noopener noreferrer" }, `.${format}`), " "]);
}
