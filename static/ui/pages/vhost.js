// One virtual host: what it is for, its limits, and who may enter.

import { act, button, card, count, done, facts, formDialog, get, go, h, has, heading, history, link, path, post, put, rate, remove, resume, state, tag, tiles, watch, windowOf } from "../lib/kit.js";
import { permissionCards } from "./access.js";
import { limitFields, limitText, putLimits } from "./limits.js";
import { QUEUE_TYPES } from "./vhosts.js";

const RATES = [["publish", "Published", 1], ["deliver_get", "Delivered", 2]];

export default function vhostPage({ params: { name }, signal }) {
	const where = path`/vhosts/${name}`;
	const chart = history("Messages", RATES, rate);
	const may_change = has("administrator");
	const load = (gone) => Promise.all([get(where, windowOf("msg_rates"), gone), get(path`/vhost-limits/${name}`, {}, gone),
		...(may_change ? [get(`${where}/permissions`, {}, gone), get(`${where}/topic-permissions`, {}, gone)] : [])]);
	return watch(load, ([vhost, [limited], permissions, topics]) => {
		const { message_stats: stats } = vhost;
		const limits = limited?.value ?? {};
		const to = (page) => link(page, { vhost: name });
		chart.draw(stats);
		return [
			heading(name, { list: ["Virtual hosts", "#/vhosts"], actions: [h("a", { class: "button", href: to("/queues") }, "Queues"), h("a", { class: "button", href: to("/exchanges") }, "Exchanges"), may_change && button("Delete", () => drop(name), "danger")] }),
			tiles([["Ready", count(vhost.messages_ready), to("/queues")], ["Unacked", count(vhost.messages_unacknowledged)], ...RATES.map(([one, label]) => [label, rate(stats[`${one}_details`]?.rate ?? 0)])]),
			card(null, chart),
			card(["Virtual host", may_change && button("Change", () => change(vhost, limits), "small")], facts(about(vhost, limits))),
			may_change && permissionCards(permissions, topics, "user", { vhost: name }, userNames),
		];
	}, signal);
}

async function userNames() {
	return (await get("/users", { columns: "name" })).map((user) => user.name);
}

function about({ description, tags, default_queue_type: type, protected_from_deletion: is_protected }, limits) {
	return [["Description", description], ["Tags", tags.length > 0 && tags.map((text) => [tag(text), " "])], ["Type of new queues", type], ["Connections", limitText(limits["max-connections"])], ["Queues", limitText(limits["max-queues"])],
		["Deletion", is_protected ? state("Protected", "good") : "permitted to administrators"]];
}

function change(vhost, limits) {
	const where = path`/vhosts/${vhost.name}`;
	return formDialog(`Change ${vhost.name}`, {
		fields: [{ name: "description", label: "Description", value: vhost.description, wide: true }, { name: "tags", label: "Tags", value: vhost.tags.join(", "), help: "Separated by commas." },
			{ name: "default_queue_type", label: "Type of new queues", type: "select", options: QUEUE_TYPES, value: vhost.default_queue_type }, { name: "is_protected", label: "Protected from deletion", type: "check", value: vhost.protected_from_deletion },
			...limitFields("vhost", limits)],
		submit: async ({ description, tags, default_queue_type, is_protected, ...wanted }) => {
			await put(where, { description, default_queue_type, tags: tags.split(",").map((one) => one.trim()).filter(Boolean) });
			if (is_protected !== vhost.protected_from_deletion) await (is_protected ? post : remove)(`${where}/deletion/protection`);
			await putLimits("vhost", vhost.name, limits, wanted);
			done(`Changed ${vhost.name}.`);
		},
	});
}

async function drop(name) {
	const text = "All of its exchanges, queues and messages, subscriptions and feeds are deleted.";
	if (!(await act({ act: `Delete the virtual host ${name}`, text, typed: name }, () => remove(path`/vhosts/${name}`), `Deleted the virtual host ${name}.`))) return;
	await resume();
	go("#/vhosts");
}
