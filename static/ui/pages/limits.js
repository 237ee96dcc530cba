// Limits of virtual hosts and users.

import { button, column, count, done, empty, formDialog, h, has, heading, pageLink, pages, path, put, remove, session, table, tabs } from "../lib/kit.js";
import { POLICY_TABS } from "./policies.js";

export const LIMITS = {
	vhost: [["max-connections", "Most connections"], ["max-queues", "Most queues"]],
	user: [["max-connections", "Most connections"], ["max-channels", "Most channels"]],
};

export function limitFields(kind, limits) {
	return LIMITS[kind].map(([name, label]) => ({ name, label, type: "number", value: limits[name] ?? "", help: "Empty for no limit." }));
}

// Stores what differs; an empty field deletes the limit.
export async function putLimits(kind, name, before, now) {
	for (const [limit] of LIMITS[kind]) {
		if ((before[limit] ?? null) === now[limit]) continue;
		const where = path`/${kind}-limits/${name}/${limit}`;
		await (now[limit] === null ? remove(where) : put(where, { value: now[limit] }));
	}
}

export function limitText(value) {
	return value === undefined || value < 0 ? "no limit" : `at most ${count(value)}`;
}

const KINDS = {
	vhost: ["virtual host", "Limits of connections and queues keep one tenant from taking what others need."],
	user: ["user", "Limits of connections and channels stop a client that opens too many."],
};

export default function limits({ signal }) {
	return [heading("Limits", { about: "What a tenant or a client may take at most." }), tabs("Kinds", POLICY_TABS, "Limits"), h("h2", {}, "Of virtual hosts"), list("vhost", signal), h("h2", {}, "Of users"), list("user", signal)];
}

function list(kind, signal) {
	const [one, text] = KINDS[kind];
	const may_change = has("administrator");
	return table({
		noun: [`${one} with limits`, `${one}s with limits`], signal, search: null, key: (row) => row[kind],
		source: ({ page, page_size }, gone) => pages(`/${kind}-limits`)({ page, page_size }, gone),
		columns: [column("name", one[0].toUpperCase() + one.slice(1), (row) => pageLink(row[kind], `/${kind}s`, row[kind]), { name: true }),
			...LIMITS[kind].map(([name, label]) => column(name, label, (row) => limitText(row.value[name]), { end: true })),
			column.acts((row) => may_change && button("Change", () => edit(kind, row), "small"))],
		actions: may_change && button(`Limit a ${one}`, () => edit(kind, null), "small"), empty: () => empty(`No ${one} has a limit`, text),
	});
}

function edit(kind, row) {
	const choice = row ? [] : kind === "vhost" ? [{ name: "name", label: "Virtual host", type: "select", options: session.vhosts, wide: true }] : [{ name: "name", label: "User", required: true, wide: true }];
	return formDialog(row ? `Limits of ${row[kind]}` : "Set limits", { fields: [...choice, ...limitFields(kind, row?.value ?? {})], submit: async ({ name = row?.[kind], ...wanted }) => {
		await putLimits(kind, name, row?.value ?? {}, wanted);
		done(`The limits of ${name} are in force.`);
	} });
}
