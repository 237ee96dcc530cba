// Reads a live stream in the page, with a token of its own that may read this source and nothing else.

import { HUB, path, post, request } from "../lib/kit.js";

const TOKEN_S = 900;
const ENDED = 401;

// Calls `on` with {opened}, {lost: error}, {message} and {ended: error or null}; `signal` stops it,
// and then the token is revoked. `source` is {vhost, from: "x/news" or "q/jobs", keys}.
export async function listen({ vhost, from, keys }, on, signal) {
	const { stream } = await import(`${HUB}js/warren.js`);
	let cursor;
	try {
		while (!signal.aborted) {
			const token = await post("/hub/tokens", { name: `live console: ${from}`.slice(0, 200), scopes: [{ read: from, vhost }], expires_in_s: TOKEN_S });
			const revoke = () => request("DELETE", path`/hub/tokens/${token.id}`, { keepalive: true }).catch(() => null); // it ends by itself soon
			signal.addEventListener("abort", revoke);
			try {
				// Without acknowledgements: what is shown here has left a queue, also if the connection breaks right then.
				const options = { hub: HUB, auth: token.token, from, vhost, key: keys.length ? keys : undefined, cursor, ack: "auto", signal };
				for await (const message of stream({ ...options, onopen: () => on({ opened: true }), onlost: (error) => on({ lost: error }) })) {
					cursor = message.cursor;
					on({ message });
				}
			} catch (error) {
				if (error.status !== ENDED) throw error; // the token has expired: the next one goes on behind the last message
				on({ lost: error });
			} finally {
				signal.removeEventListener("abort", revoke);
				if (!signal.aborted) await revoke();
			}
		}
		on({ ended: null });
	} catch (error) {
		if (!signal.aborted) on({ ended: error });
	}
}
