// One user: tags, password, limits, and permissions in virtual hosts.

import { button, card, done, dropButton, facts, formDialog, get, heading, path, put, session, tag, watch } from "../lib/kit.js";
import { permissionCards } from "./access.js";
import { limitFields, limitText, putLimits } from "./limits.js";
import { PASSWORDS, samePassword, TAGS } from "./users.js";

const EVERY_S = 0; // after changes only

export default function userPage({ params: { name }, signal }) {
	const where = path`/users/${name}`;
	const load = (gone) => Promise.all([get(where, {}, gone), get(`${where}/permissions`, {}, gone), get(`${where}/topic-permissions`, {}, gone)]);
	return watch(load, ([user, permissions, topics]) => [
		heading(name, { list: ["Users", "#/users"], actions: [button("Change password", () => changePassword(user)), dropButton("Delete", `the user ${name}`, where, { text: "Its connections are closed, and its subscriptions, tokens and feeds end.", typed: name, to: "#/users", kind: "danger" })] }),
		card(["User", button("Change tags and limits", () => change(user), "small")], facts(about(user))),
		permissionCards(permissions, topics, "vhost", { user: name }, () => session.vhosts),
	], signal, EVERY_S);
}

function about({ tags, password_hash: hash, hashing_algorithm: algorithm, limits }) {
	return [["Tags", tags.length ? tags.map((text) => [tag(text), " "]) : "none: clients only"], ["Password", hash ? `stored as ${algorithm}` : "none: logs in by certificate or token only"],
		["Connections", limitText(limits["max-connections"])], ["Channels", limitText(limits["max-channels"])]];
}

function changePassword({ name, tags }) {
	return formDialog(`Change the password of ${name}`, {
		button: "Change password", fields: PASSWORDS,
		submit: async (given) => {
			await put(path`/users/${name}`, { password: samePassword(given), tags });
			done(`The password of ${name} is changed. Its sessions are over.`);
		},
	});
}

function change({ name, tags, limits, password_hash, hashing_algorithm }) {
	const now = tags.join(",");
	const options = TAGS.some(([value]) => value === now) ? TAGS : [[now, tags.join(", ")], ...TAGS];
	return formDialog(`Change ${name}`, {
		fields: [{ name: "tags", label: "Role", type: "select", wide: true, value: now, options }, ...limitFields("user", limits)],
		submit: async ({ tags: wanted, ...rest }) => {
			await put(path`/users/${name}`, { password_hash, hashing_algorithm, tags: wanted });
			await putLimits("user", name, limits, rest);
			done(`Changed ${name}.`);
		},
	});
}
