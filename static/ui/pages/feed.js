// One feed: how it is and why, its entries, its settings.

import { attempt, below, button, card, code, command, count, done, dropButton, duration, empty, facts, fill, get, h, heading, HUB, notice, outside, pageLink, path, post, quoted, session, side, tag, tiles, time, watch } from "../lib/kit.js";
import { editFeed } from "./feed_forms.js";
import { documentLinks, documentUrl, feedState, isStopped, pushState } from "./feeds.js";

const ENTRIES = 10;
const TEXT_CHARACTERS = 200;

export default async function feed({ params: { vhost, name }, signal }) {
	const where = path`/hub/feeds/${name}`;
	const entries = h("div");
	const settings = editFeed(await get(where, {}, signal));
	const terminal = card("From a terminal", command(`warren feeds poll ${quoted(name)} --url ${HUB.slice(0, -1)}`), command(`curl -u ${session.name} -X POST ${HUB}api/hub/feeds/${encodeURIComponent(name)}/poll`));
	let version = "";

	async function load(gone) {
		const now = await get(where, {}, gone);
		if (version !== `${now.changed_at} ${now.visibility}`) fill(entries, await newest(now, gone));
		version = `${now.changed_at} ${now.visibility}`;
		return now;
	}
	return watch(load, (now) => [
		heading(now.title || name, { list: ["Feeds", "#/feeds"], states: [feedState(now), now.visibility === "private" && tag("private")], actions: acts(where, now) }),
		health(now), tiles([["Entries", count(now.entries)], ["A week", count(now.entries_a_week)], ["Published", count(now.published)], ["Failures in a row", count(now.failures)], ["Interval", duration(now.interval_s)]]),
		side(card("Polls", facts(polls(now))), card("Feed", facts(about(now, vhost)))), card("Last entries", entries), card("Settings", settings), terminal,
	], signal);
}

function acts(where, now) {
	const { name } = now;
	const button_for = (text, verb, said) => button(text, (event) => perform(event.currentTarget, `${where}/${verb}`, said));
	const text = "Its documents answer 410 from then on, and subscriptions to them end. Messages that are in queues stay there.";
	return [
		button_for("Poll now", "poll", (found) => `Polled ${name}. ${found.health}`),
		isStopped(now) ? button_for("Resume", "resume", () => `Resumed ${name}.`) : button_for("Pause", "pause", () => `Paused ${name}.`),
		dropButton("Delete", `the feed ${name}`, where, { text, typed: name, to: "#/feeds", kind: "danger" }),
	];
}

async function perform(pressed, where, said) {
	pressed.disabled = true;
	await attempt(async () => done(said(await post(where))));
	pressed.disabled = false;
}

function health({ state, push, health: words }) {
	const kind = ["failing", "dead", "gone"].includes(state) ? "bad" : push.state === "broken" ? "warn" : "good";
	return notice(kind, h("span", {}, words));
}

function polls(now) {
	return [
		["Last poll", time(now.checked_at)], ["Last success", time(now.succeeded_at)], ["Last change", time(now.changed_at)], ["Next poll", isStopped(now) ? "none" : time(now.next_poll_at)],
		["Last error", now.error], ["Notices", now.notices.length > 0 && now.notices.map((one) => h("div", {}, one))], ["Registered", time(now.registered_at)],
	];
}

function about(now, vhost) {
	const { push } = now;
	return [
		["URL", outside(now.url)], ["Page", outside(now.home_page_url)], ["Title", now.title], ["Format", now.format], ["Folder", now.folder],
		["Messages", [pageLink(now.exchange, "/exchanges", vhost, now.exchange), " with the key ", code(now.routing_key)]], ["Documents", documentLinks(vhost, now.name)],
		["Push", [pushState(push), push.hub_url ? [" ", outside(push.hub_url)] : push.cloud && ` ${push.cloud}`, push.reason && below(push.reason)]],
		["Last push", push.received_at && time(push.received_at)], ["Owner", now.owner], ["Virtual host", vhost],
	];
}

// The entries as the feed's own document has them; a private one is read with a password only.
async function newest({ vhost, name, visibility }, signal) {
	const url = documentUrl(vhost, name, "json");
	if (visibility === "private") return [h("p", {}, "The documents of a private feed need a password:"), command(`curl -u ${session.name} ${url}`)];
	const answer = await fetch(url, { signal, cache: "no-cache", headers: { Accept: "application/json" } });
	if (!answer.ok) return h("p", { class: "problem" }, `The document ${url} answered ${answer.status}.`);
	const { items } = await answer.json();
	if (!items.length) return empty("No entries yet", "The next poll may find some.");
	return h("ul", { class: "stack" }, items.slice(0, ENTRIES).map((item) => h("li", {}, h("strong", {}, outside(item.url, item.title || item.id)), " ", item.date_published && h("small", {}, time(item.date_published)),
		h("div", { class: "quiet" }, excerpt(item)))));
}

// The beginning of an entry as plain text: its HTML is parsed, never shown.
function excerpt({ summary, content_text, content_html }) {
	const text = summary ?? content_text ?? plain(content_html ?? "");
	return text.length > TEXT_CHARACTERS ? `${text.slice(0, TEXT_CHARACTERS)}…` : text;
}

// A beginning of the text without its markup. It is shown as text, so what is missed here does no harm.
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": " " };
function plain(html) {
	return html.replace(/<(script|style)\b[^]*?<\/\1\s*>|<[^>]*>/gi, " ").replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (one) => ENTITIES[one]);
}
