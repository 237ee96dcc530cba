// The server: its version, where it listens, and what it uses.

import { bytes, card, code, count, duration, facts, get, grid, h, heading, meter, section, side, stack, tag, tiles, watch } from "../lib/kit.js";

const EVERY_S = 5;
const LISTENERS = [{ label: "Protocol" }, { label: "Address" }, { label: "Port", end: true }];
const PARTS = [{ label: "Part" }, { label: "Memory", end: true }];
const PART_NAMES = { binary: "Messages", msg_index: "Index of messages", connection_other: "Connections", other_system: "Everything else" };

export default function node({ signal }) {
	async function load(gone) {
		const [overview, [found]] = await Promise.all([get("/overview", {}, gone), get("/nodes", {}, gone)]);
		const { memory } = await get(`/nodes/${encodeURIComponent(found.name)}/memory`, {}, gone);
		return { overview, found, memory };
	}
	return watch(load, ({ overview, found, memory }) => [
		heading("Node", { about: `Warren ${overview.product_version}; clients are told ${overview.rabbitmq_version}, the version of RabbitMQ whose features they may use.` }),
		tiles([["Up for", duration(found.uptime / 1000)], ["Memory", bytes(found.mem_used)], ["Free disk", bytes(found.disk_free)], ["Files", count(found.fd_used)], ["Sockets", count(found.sockets_used)]]),
		side(
			stack(card("Server", facts(about(found))), card("Limits", facts(limits(found)))),
			stack(section("Listeners", null, grid("Listeners", LISTENERS, overview.listeners.map((one) => [one.protocol, code(one.ip_address), String(one.port)]))),
				section("Memory by part", null, grid("Memory by part", PARTS, parts(memory))))),
	], signal, EVERY_S);
}

function about(found) {
	return [["Name", found.name], ["Process", found.os_pid], ["Processors", count(found.processors)], ["Data", code(found.db_dir)], ["Log", found.log_files.map((one) => code(one))],
		["Configuration", found.config_files.length ? found.config_files.map((one) => h("div", {}, code(one))) : "defaults, flags and environment"], ["Logins by", found.auth_mechanisms.map((one) => [tag(one.name), " "])]];
}

function limits(found) {
	const share = (used, limit) => [meter(used / limit, used / limit > 0.8 ? "warn" : ""), h("small", {}, `${count(used)} of ${count(limit)}`)];
	return [
		["Memory", [meter(found.mem_used / found.mem_limit, found.mem_alarm ? "bad" : ""), h("small", {}, `${bytes(found.mem_used)}; publishers wait above ${bytes(found.mem_limit)} of messages`)]],
		["Disk", `publishers wait below ${bytes(found.disk_free_limit)}`], ["Files", share(found.fd_used, found.fd_total)], ["Sockets", share(found.sockets_used, found.sockets_total)],
	];
}

// The other parts that RabbitMQ's answer has are always 0 here.
function parts({ total, ...memory }) {
	return [...Object.entries(PART_NAMES).map(([part, name]) => [name, bytes(memory[part])]), [h("strong", {}, "In all"), h("strong", {}, bytes(total.rss))]];
}
