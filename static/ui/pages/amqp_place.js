// Where AMQP clients connect, in words.

import { get, session } from "../lib/kit.js";

// Only who monitors the server is told its ports.
export async function amqpPlace(signal) {
	if (session.engine) return "RabbitMQ";
	const { listeners } = await get("/overview", {}, signal);
	const port = (protocol) => listeners.find((one) => one.protocol === protocol)?.port;
	const places = [port("amqp") && `port ${port("amqp")}`, port("amqp/ssl") && `port ${port("amqp/ssl")} with TLS`].filter(Boolean);
	return places.join(", or to ") || "the AMQP port of this server";
}
