// The audit log: who has changed what, from where, and what it was before.

import { answer, button, closing, column, empty, facts, get, h, heading, open, payload, stack, state, table, time } from "../lib/kit.js";

const ACTIONS = { put: "Created or changed", post: "Requested", patch: "Changed", delete: "Deleted", login: "Signed in", logout: "Signed out" };
const FILTERS = [
	{ name: "user", label: "User" }, { name: "object", label: "Path", placeholder: "/api/queues/" }, { name: "address", label: "Address" },
	{ name: "action", label: "Action", options: [["", "All actions"], ...Object.entries(ACTIONS)] },
];
const COLUMNS = [
	column("at", "When", (row) => time(row.at), { tight: true }), column("user", "User", (row) => row.user), column("action", "Action", words),
	column("object", "Object", (row) => row.object ?? "–", { name: true }), column("address", "From", (row) => row.address, { optional: true }),
	column("status", "Result", (row) => state(String(row.status), row.status < 400 ? "good" : "bad")),
	column("more", "", (row) => (row.before || row.after) && button("Details", () => details(row), "small"), { end: true }),
];

export default function audit({ signal }) {
	const says = answer("Changes by the management API and this interface, and logins. Kept for the time that the setting audit_retention_s says.");
	return [
		heading("Audit log", { about: says }),
		table({
			noun: ["entry", "entries"], signal, search: null, key: (row) => row.id, filters: FILTERS, columns: COLUMNS, empty: () => empty("Nothing was changed yet"),
			source: async ({ page_size, user, object, address, action, before }, gone) => {
				const found = await get("/warren/audit", { user, object, address, action, before, limit: page_size }, gone);
				const [newest] = found.entries;
				if (newest && !before) says.say("", [`The newest: ${newest.user} ${words(newest).toLowerCase()} ${newest.object ?? ""} `, time(newest.at), "."]);
				return { items: found.entries, next: found.next_before };
			},
		}),
	];
}

function words({ action, before }) {
	return action === "put" ? (before ? "Changed" : "Created") : ACTIONS[action] ?? action;
}

function details(row) {
	const part = (label, value) => value !== null && h("section", {}, h("h3", {}, label), payload({ payload: JSON.stringify(value), label }));
	return open(`${words(row)} ${row.object ?? ""}`, (close) => stack(facts([["When", time(row.at)], ["User", row.user], ["Token", row.token], ["From", row.address], ["Result", row.status]]), part("Before", row.before), part("After", row.after), closing(close)), { wide: true });
}
