// Virtual hosts in lists, forms and headings; users who see one only are not asked for it.

import { h } from "./dom.js";
import { link } from "./router.js";
import { session } from "./session.js";
import { pages } from "./table.js";

export function vhostFilter() {
	if (session.vhosts.length < 2) return [];
	return [{ name: "vhost", label: "Virtual host", options: [["", "All virtual hosts"], ...session.vhosts.map((name) => [name, name])] }];
}

export function firstVhost() {
	return session.vhosts.includes("/") ? "/" : session.vhosts[0];
}

export function vhostField(value) {
	const options = session.vhosts;
	return { name: "vhost", label: "Virtual host", type: "select", options, value: options.includes(value) ? value : firstVhost() };
}

export function vhostTag(vhost) {
	return h("a", { class: "tag", href: link("/vhosts", vhost) }, `vhost ${vhost}`);
}

// A source for a table: a list of all virtual hosts, or of the one that is chosen.
export function vhostPages(all, inside, fixed) {
	return ({ vhost, ...query }, signal) => pages(vhost ? inside(vhost) : all, fixed)(query, signal);
}
