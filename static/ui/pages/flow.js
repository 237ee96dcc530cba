// A picture of an exchange's bindings: what it gets from stands on the left, where it sends on the right.

import { bare, code, count, counted, empty, get, h, link, patch, quiet } from "../lib/kit.js";

const MAX_EDGES = 40;
const SOURCES = 12;

export async function flow(place, { vhost, name, where, shown }, signal) {
	const table = link("/exchanges", vhost, name, { tab: "bindings" });
	const page = (end, size) => get(`${where}/bindings/${end}`, { page: 1, page_size: size, sort: end === "source" ? "destination" : "source" }, signal);
	const incoming = name === "amq.default" ? { items: [], total_count: 0 } : await page("destination", SOURCES);
	const outgoing = await page("source", MAX_EDGES - incoming.items.length);
	const total = incoming.total_count + outgoing.total_count;
	const drawn = incoming.items.length + outgoing.items.length;
	if (total) {
		patch(place, picture(shown, nodes(incoming.items, "source"), nodes(outgoing.items, "destination"), vhost),
			quiet(total > drawn ? `${count(drawn)} of ${counted(total, "binding")} are drawn. ` : `${counted(total, "binding")}. `, h("a", { href: table }, "All as a table")));
	} else {
		patch(place, empty("Nothing is bound", "Messages that are published here reach no queue until one is bound.", h("p", {}, h("a", { class: "button", href: table }, "Add a binding"))));
	}
}

// Returns one node for each other end, with the words of all bindings to it.
function nodes(items, end) {
	const found = new Map();
	for (const one of items) {
		const kind = end === "source" ? "exchange" : one.destination_type;
		const node = found.get(`${kind}/${one[end]}`) ?? { name: one[end], kind, words: [], subscription: end === "destination" && one.subscription };
		node.words.push(one.routing_key || Object.entries(one.arguments).map(([key, value]) => `${key}=${value}`).join(", "));
		found.set(`${kind}/${one[end]}`, node);
	}
	return [...found.values()];
}

export function picture(name, sources, targets, vhost) {
	return h("div", { class: "flow" },
		sources.length > 0 && h("ul", { class: "from", "aria-label": `Bound to ${name}` }, sources.map((node) => h("li", {}, box(node, vhost), words(node)))),
		h("span", { class: "node exchange this" }, name),
		targets.length > 0 && h("ul", { class: "to", "aria-label": `Where ${name} sends` }, targets.map((node) => h("li", {}, words(node), box(node, vhost)))));
}

function words({ words: all }) {
	return h("span", { class: "words" }, code(all.filter(Boolean).join("  ")));
}

function box({ name, kind, subscription }, vhost) {
	if (subscription) return h("a", { class: "node callback", href: link("/subscriptions", subscription.id), title: subscription.callback }, bare(subscription.callback));
	return h("a", { class: `node ${kind}`, href: link(`/${kind}s`, vhost, name), title: name }, name);
}
