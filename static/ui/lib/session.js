// Who is logged in, and what the user's tags permit the pages to show. The server decides anyway.

import { ApiError, HUB, request, useCsrfToken } from "./api.js";

// `engine` is the URL of the RabbitMQ that the hub runs on: it has these pages.
export const session = { name: "", version: "", tags: [], vhosts: [], engine: "" };
const RABBITMQS = "queues exchanges connections channels users vhosts policies definitions node".split(" ");
const IMPLIED = { management: ["policymaker", "monitoring", "administrator"], policymaker: ["administrator"], monitoring: ["administrator"] };
const LAST_USER = "warren-user";

// What one user of this tab has typed, and the page they were on, are not for the next one.
function begin(found) {
	const last = sessionStorage.getItem(LAST_USER);
	if (last !== null && last !== found.name) forget();
	sessionStorage.setItem(LAST_USER, found.name);
	useCsrfToken(found.csrf_token);
	Object.assign(session, found);
}

// Returns whether there is a session. Throws `ApiError` for anything but a missing one.
export async function resume() {
	try {
		begin(await request("GET", "/warren/session"));
	} catch (error) {
		if (error instanceof ApiError && error.status === 401) return false;
		throw error;
	}
	return true;
}

export async function signIn(name, password) {
	begin(await request("POST", "/warren/login", { body: { name, password } }));
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

export function has(tag) {
	return session.tags.includes(tag) || (IMPLIED[tag] ?? []).some((one) => session.tags.includes(one));
}

export function may(page, tag = "management") {
	return has(tag) && !(session.engine && RABBITMQS.includes(page));
}

export function endpoint(facet, vhost, kind, name) {
	const host = vhost === "/" ? "" : `${encodeURIComponent(vhost)}/`;
	return `${HUB}${host}${facet}/${kind}/${encodeURIComponent(name)}`;
}
