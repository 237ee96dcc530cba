// The frame of every page: navigation, bar with the state of the server, and the page itself.

import { ApiError, request, SILENT } from "./lib/api.js";
import { copyButton } from "./lib/command.js";
import { button, fill, h, icon } from "./lib/dom.js";
import { duration } from "./lib/format.js";
import { select } from "./lib/forms.js";
import { find } from "./lib/find.js";
import { follow } from "./lib/live.js";
import { report } from "./lib/messages.js";
import { requestsCard } from "./lib/requests.js";
import { link } from "./lib/router.js";
import { has, may, session, signOut } from "./lib/session.js";
import { state } from "./lib/view.js";
import { NAVIGATION } from "./routes.js";

const THEMES = [["", "System"], ["light", "Light"], ["dark", "Dark"]];
const IS_WIDE = matchMedia("(min-width: 64.01rem)");

export function drawFrame(root, { signOut: ended }) {
	const main = h("main", { class: "page", id: "page", tabindex: "-1" });
	const links = new Map();
	const status = h("span", { id: "live" });
	const account = h("div", { class: "account" }, themeField(), h("span", { class: "quiet" }, session.name), button("Sign out", () => signOut().then(ended, report), "small"));
	const bar = h("section", { class: "bar", "aria-label": "Server" }, button([icon("search"), "Find", h("kbd", {}, "Ctrl K")], find, "find"), status, copyButton(() => location.href, "Copy link"));
	const foot = h("div", { class: "foot" }, [["docs/", "Docs"], ["docs/api/", "HTTP API"], ["demos/", "Demos"]].map(([href, text]) => h("a", { href }, text)),
		h("small", {}, `Warren ${session.version}, `, h("kbd", {}, "?"), " for shortcuts"));
	const side = sideOf(links, foot);
	const skip = (event) => { event.preventDefault(); main.focus(); };
	fill(root, h("a", { class: "skip", href: "#page", onclick: skip }, "Skip to the page"), h("div", { class: "frame" }, side, h("div", {}, bar, main)));
	const place = () => (IS_WIDE.matches ? bar : foot).append(account); // on a phone it is in the menu
	IS_WIDE.onchange = place;
	place();
	follow((live) => {
		fill(status, connection(live));
		main.classList.toggle("stale", isStale(live));
		badges(links, live.snapshot);
	});
	return { show: (load, context) => show(main, links, side, load, context) };
}

async function show(main, links, side, load, context) {
	side.removeAttribute("data-open");
	links.forEach((element, id) => (id === context.nav ? element.setAttribute("aria-current", "page") : element.removeAttribute("aria-current")));
	const requests = requestsCard();
	try {
		if (!may(context.nav)) throw new ApiError(501, "This hub runs on RabbitMQ, whose management has this page.");
		const { default: page } = await load().catch(notLoaded);
		if (context.signal.aborted) return;
		const drawn = await page(context);
		if (context.signal.aborted) return;
		fill(main, drawn, requests);
		scrollTo(0, 0);
		main.focus({ preventScroll: true });
	} catch (error) {
		if (context.signal.aborted) return;
		if (error.status === undefined) console.error(error);
		fill(main, problem(error));
	}
	document.title = `${main.querySelector("h1").textContent} · Warren`;
}

function notLoaded(error) {
	throw error.name === "TypeError" ? new ApiError(0, SILENT) : error;
}

export function problem({ status, message }) {
	const title = { 0: "Warren does not answer", 404: "Not found", 501: "Not here" }[status] ?? "This page can't be shown";
	const way = status === 0 ? button("Try again", () => reload().catch(report), "main") : status === 501 ? h("a", { href: `${session.engine}/${location.hash}` }, "Open it there") : h("a", { href: "#/" }, "Go to the overview");
	return h("div", { class: "empty" }, h("h1", {}, title), h("p", { class: "problem" }, message), h("p", {}, way));
}

// A browser may remember that a module could not be loaded, so all of them are loaded again, once there is an answer.
async function reload() {
	try {
		await request("GET", "/warren/session");
	} catch (error) {
		if (error.status === 0) throw error;
	}
	location.reload();
}

function sideOf(links, foot) {
	const side = h("header", { class: "side" });
	const menu = button(icon("menu"), () => side.toggleAttribute("data-open"), "icon menu", { "aria-label": "Menu" });
	const groups = NAVIGATION.map(([title, entries]) => {
		const shown = entries.filter(([id, , , tag]) => may(id, tag));
		if (!shown.length) return null;
		return h("div", {}, title && h("h2", {}, title), h("ul", {}, shown.map(([id, label, drawing]) => {
			links.set(id, h("a", { href: link(`/${id}`), title: label }, icon(drawing), label));
			return h("li", {}, links.get(id));
		})));
	});
	const burrow = icon("tunnel");
	burrow.setAttribute("stroke-width", "2.4");
	return fill(side, h("a", { class: "brand", href: "#/" }, burrow, "Warren"), menu, h("nav", { "aria-label": "Pages" }, groups), foot);
}

function connection({ state: now, at, snapshot }) {
	if (now === "live") return [state("Live", "good"), " ", h("small", {}, `up ${duration(snapshot.uptime_s)}`)];
	if (isStale({ state: now, at })) return state(`Last update ${duration(Math.round((Date.now() - at) / 1000))} ago`, "warn");
	return state(now === "paused" ? "Paused while hidden" : "Connecting");
}

function isStale({ state: now, at }) {
	return now === "stale" && at > 0;
}

// Who monitors the server sees these numbers of all users, but not their lists.
function badges(links, snapshot) {
	if (!snapshot || has("monitoring") && !has("administrator")) return;
	const { failing, dead_letters, failing_feeds } = snapshot.hub;
	for (const [id, number, what] of [["subscriptions", failing, "failing"], ["dead-letters", dead_letters, "stored"], ["feeds", failing_feeds, "failing"]]) {
		const element = links.get(id);
		const badge = element.querySelector(".count");
		const text = number ? String(number) : "";
		if ((badge?.textContent ?? "") === text) continue;
		badge?.remove();
		if (text) element.append(h("span", { class: "count", title: `${text} ${what}` }, text));
	}
}

function themeField() {
	const { documentElement: page } = document;
	const list = select(THEMES, page.dataset.theme ?? "", { "aria-label": "Colours", onchange: () => {
		if (list.value) page.dataset.theme = list.value;
		else delete page.dataset.theme;
		localStorage.setItem("warren-theme", list.value);
	} });
	return list;
}
