// Routes: the address behind the # is a path with a query, as in #/queues/%2F/orders?tab=messages.

import { ApiError, searchOf } from "./api.js";

let routes = [];
let leaving = new AbortController();
let show = () => {};

// A pattern is a path with :names; `load` returns a module whose default export draws the page.
export function start(table, draw) {
	routes = table.map(([pattern, load, nav]) => ({ parts: pattern.split("/"), load, nav }));
	show = draw;
	addEventListener("hashchange", navigate);
	navigate();
}

export function stop() {
	removeEventListener("hashchange", navigate);
	leaving.abort();
}

export function address() {
	const [where, search = ""] = location.hash.slice(1).split("?");
	return { path: where || "/", query: Object.fromEntries(new URLSearchParams(search)) };
}

// Returns a link: link("/queues", vhost, name, {tab: "messages"}).
export function link(base, ...parts) {
	const query = typeof parts.at(-1) === "object" ? parts.pop() : {};
	return "#" + [base, ...parts.map(encodeURIComponent)].join("/") + searchOf(query);
}

export function go(target) {
	if (location.hash === target) navigate();
	else location.hash = target;
}

// Changes the query in place: the page stays, and a reload or a copied link shows the same.
export function setQuery(changes) {
	const now = address();
	history.replaceState(null, "", `#${now.path}${searchOf({ ...now.query, ...changes })}`);
}

export function navigate() {
	leaving.abort();
	leaving = new AbortController();
	const { path, query } = address();
	const given = path.split("/");
	for (const { parts, load, nav } of routes) {
		if (parts.length !== given.length) continue;
		const params = {};
		const fits = parts.every((part, at) => {
			if (!part.startsWith(":")) return part === given[at];
			params[part.slice(1)] = decode(given[at]);
			return given[at] !== "";
		});
		if (fits) return show(load, { params, query, signal: leaving.signal, nav });
	}
	return show(nowhere, { params: {}, query, signal: leaving.signal });
}

async function nowhere() {
	throw new ApiError(404, "There is no such page.");
}

function decode(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part; // a lone % in a link that somebody has typed
	}
}
