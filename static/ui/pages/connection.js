// One connection: who it is, what flows, its channels, and a way to close it.

import { asText, button, bytes, card, count, done, duration, facts, formDialog, get, go, h, has, heading, history, pageLink, pages, path, remove, session, side, state, table, tiles, time, vhostTag, watch, windowOf } from "../lib/kit.js";
import { CHANNELS } from "./channels.js";
import { connectionState, speed } from "./connections.js";

const TRAFFIC = [["recv_oct", "From client", 1], ["send_oct", "To client", 2]];

export default function connection({ params: { name }, signal }) {
	const where = path`/connections/${name}`;
	const chart = history("Traffic", TRAFFIC, (value) => (value === null ? "–" : `${bytes(value)}/s`), { unit: 1024 });
	const channels = table({ noun: "channel", columns: CHANNELS.filter(({ id }) => !["vhost", "user"].includes(id)), signal, search: null, sort: { by: "number" }, source: pages(`${where}/channels`) });
	return watch((gone) => get(where, windowOf("data_rates"), gone), (found) => {
		const may_close = has("administrator") || found.user === session.name;
		chart.draw(found);
		return [
			heading(found.user_provided_name || name, { list: ["Connections", "#/connections"], about: found.user_provided_name && name, states: [vhostTag(found.vhost), connectionState(found)],
				actions: may_close && button("Close", () => close(where, found), "danger") }),
			tiles([["From client", speed(found.recv_oct_details)], ["To client", speed(found.send_oct_details)], ["Received", bytes(found.recv_oct)], ["Sent", bytes(found.send_oct)], ["Waiting to be sent", bytes(found.send_pend)], ["Channels", count(found.channels)]]),
			side(card(null, chart), card("Connection", facts(factsOf(found)))),
			h("h2", {}, "Channels"), channels, card("Client properties", facts(clientFacts(found.client_properties))),
		];
	}, signal);
}

function factsOf(found) {
	return [
		["User", has("administrator") ? pageLink(found.user, "/users", found.user) : found.user], ["Client at", `${found.peer_host} port ${found.peer_port}`], ["Connected to", `${found.host} port ${found.port}`],
		["Connected", time(found.connected_at)], ["Protocol", found.protocol], ["TLS", found.ssl ? `${found.ssl_protocol}, ${found.ssl_cipher}` : "no: the traffic is not encrypted"], ["Login by", found.auth_mechanism],
		["Heartbeat", found.timeout ? duration(found.timeout) : "none"], ["Largest frame", bytes(found.frame_max)], ["Channels at most", count(found.channel_max)],
	];
}

function clientFacts({ capabilities = {}, ...properties }) {
	return [...Object.entries(properties).map(([key, value]) => [key, asText(value)]),
		["capabilities", Object.entries(capabilities).map(([key, value]) => [state(key, value ? "good" : ""), " "])]];
}

function close(where, { name, user_provided_name: given }) {
	const shown = given || name;
	return formDialog(`Close the connection ${shown}?`, {
		button: `Close ${shown}`, danger: true, fields: [{ name: "reason", label: "Reason", wide: true, placeholder: "Closed via management plugin", help: "The client gets it with the code 320. Most clients connect again." }],
		submit: async ({ reason }) => {
			await remove(where, {}, reason ? { "X-Reason": reason } : {});
			done(`Closed the connection ${shown}.`);
			go("#/connections");
		},
	});
}
