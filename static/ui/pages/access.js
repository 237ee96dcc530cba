// Permissions of users in virtual hosts: the tables of both sides, with the dialogs that set them.

import { act, attempt, button, code, done, empty, formDialog, grid, h, pageLink, path, put, quiet, remove, section } from "../lib/kit.js";

const LABELS = { user: "User", vhost: "Virtual host" };
const NAMES = { value: ".*", help: "A regular expression of names; .* for all, empty for none." };
const PERMISSIONS = {
	title: "Permissions", fields: [["configure", "Configure", NAMES], ["write", "Write", NAMES], ["read", "Read", NAMES]],
	where: ({ user, vhost }) => path`/permissions/${vhost}/${user}`, about: () => "",
	none: (other) => empty("No permissions", other === "user" ? "Nobody may enter this virtual host." : "The user may enter no virtual host yet."),
};
const TOPIC_PERMISSIONS = {
	title: "Topic permissions", fields: [["exchange", "Exchange", { help: "Of type topic; empty for all." }], ["write", "Write", { value: ".*", help: "Routing keys." }], ["read", "Read", { value: ".*", help: "Binding keys." }]],
	where: ({ user, vhost }) => path`/topic-permissions/${vhost}/${user}`, about: ({ exchange }) => ` for ${exchange || "all exchanges"}`,
	none: () => quiet("Without topic permissions, all routing keys of topic exchanges are permitted."),
};

// The cards of a user or a virtual host. `other` is what a row names, "user" or "vhost"; `known` is the other
// end, and `choices` finds the names to choose from.
export function permissionCards(permissions, topics, other, known, choices) {
	return [[PERMISSIONS, permissions], [TOPIC_PERMISSIONS, topics]].map(([kind, rows]) => {
		const columns = [LABELS[other], ...kind.fields.map(([, label]) => label)].map((label) => ({ label }));
		const add = button(`Set ${kind.title.toLowerCase()}`, () => attempt(async () => set(kind, known, await choices())), "small");
		return section(kind.title, add, rows.length ? grid(kind.title, [...columns, { label: "", end: true }], rows.map((row) => cells(kind, row, other))) : kind.none(other));
	});
}

function cells(kind, row, other) {
	const { title, fields, where, about } = kind;
	const key = "exchange" in row ? path`/${row.exchange}` : "";
	const removal = { act: `Remove ${title.toLowerCase()} of ${row.user} in ${row.vhost}${about(row)}` };
	return [pageLink(row[other], `/${other}s`, row[other]), ...fields.map(([name]) => worded(name, row[name])),
		h("div", { class: "actions" }, button("Change", () => set(kind, row), "small"), button("Remove", () => act(removal, () => remove(where(row) + key), "Removed."), "small danger"))];
}

function worded(name, text) {
	if (name === "exchange") return text || "all";
	return text === "" ? h("span", { class: "quiet" }, "none") : code(text);
}

// What is known: {user} or {vhost}, or a whole row; `choices` are names for the other.
function set({ title, fields, where }, row, choices) {
	const what = title.toLowerCase();
	const name = row.user ? "vhost" : "user";
	const who = choices ? [{ name, label: LABELS[name], type: "select", options: choices, wide: true }] : [];
	return formDialog(`Set ${what}`, {
		button: `Set ${what}`, fields: [...who, ...fields.map(([field, label, more]) => ({ name: field, label, ...more, value: row[field] ?? more.value }))],
		submit: async (given) => {
			const wanted = { ...row, ...given };
			await put(where(wanted), Object.fromEntries(fields.map(([field]) => [field, wanted[field]])));
			done(`${wanted.user} has ${what} in ${wanted.vhost}.`);
		},
	});
}
