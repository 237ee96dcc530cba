// Who is logged in, and what the user's tags permit the pages to show. The server decides anyway.

import { ApiError, HUB, request, useCsrfToken } from "./api.js";

export const session = { name: "", version: "", tags: [], vhosts: [] };
const IMPLIED = { management: ["policymaker", "monitoring", "administrator"], policymaker: ["administrator"], monitoring: ["administrator"] };
const LAST_USER = "warren-user";

// What one user of this tab has typed, and the page they were on, are not for the next one.
function begin(found) {
	const last = sessionStorage.getItem(LAST_USER);
	if (last !== null && last !== found.name) forget();
	sessionStorage.setItem(LAST_USER, found.name);
	const { name, version, tags } = found;
	Object.assign(session, { name, version, tags });
	useCsrfToken(found.csrf_token);
}

// Returns whether there is a session. Throws `ApiError` for anything but a missing one.
export async function resume() {
	try {
		begin(await request("GET", "/warren/session"));
	} catch (error) {
		if (error instanceof ApiError && error.status === 401) return false;
		throw error;
	}
	await loadVhosts();
	return true;
}

export async function signIn(name, password) {
	begin(await request("POST", "/warren/login", { body: { name, password } }));
	await loadVhosts();
}

export async function signOut() {
	await request("POST", "/warren/logout", { body: {} });
	session.name = "";
	forget();
}

function forget() {
	sessionStorage.clear();
	history.replaceState(null, "", "#/");
}

export async function loadVhosts() {
	const found = has("management") ? await request("GET", "/vhosts", { query: { columns: "name" } }) : [];
	session.vhosts = found.map((one) => one.name).sort();
}

export function has(tag) {
	return session.tags.includes(tag) || (IMPLIED[tag] ?? []).some((one) => session.tags.includes(one));
}

export function endpoint(facet, vhost, kind, name) {
	const host = vhost === "/" ? "" : `${encodeURIComponent(vhost)}/`;
	return `${HUB}${host}${facet}/${kind}/${encodeURIComponent(name)}`;
}
