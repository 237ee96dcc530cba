// Streams of events of the server, for as long as there is a session.

import { on, request, urlOf } from "./api.js";

const RETRY_MS = 3000;

// Calls `handlers` by the names of events, and `lost` when the connection breaks; it is made again.
// Returns what closes it. It asks for the session first: without one the browser, which connects
// again by itself, would ask for a password; so the sign-in page comes instead.
export function followEvents(where, query, handlers, lost) {
	let source = null;
	let retry = 0;
	let closed = false;

	async function connect() {
		try {
			await request("GET", "/warren/session");
		} catch (error) {
			if (error.status !== 401 && !closed) broken();
			return;
		}
		if (!closed) open();
	}
	function open() {
		on.request("GET", where, { query });
		source = new EventSource(urlOf(where, query));
		for (const [name, handler] of Object.entries(handlers)) source.addEventListener(name, handler);
		source.addEventListener("error", broken);
	}
	function broken() {
		source?.close();
		lost();
		retry = setTimeout(connect, RETRY_MS);
	}
	connect();
	return () => {
		closed = true;
		clearTimeout(retry);
		source?.close();
	};
}
