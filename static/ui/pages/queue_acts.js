// What is done to whole queues, to one or to those that are ticked: pause, purge, delete, move the messages.

import { act, attempt, button, count, counted, done, formDialog, get, path, post, put, remove } from "../lib/kit.js";
import { isOwn } from "./queues.js";

const whereOf = ({ vhost, name }) => path`/queues/${vhost}/${name}`;
const isPaused = ({ state }) => state === "paused";
const named = (rows) => (rows.length === 1 ? rows[0].name : counted(rows.length, "queue"));
const listed = (rows) => (rows.length === 1 ? "" : ` These are ${rows.map((one) => one.name).join(", ")}.`);

export function queueActs(found) {
	const one = (text, perform, kind) => button(text, () => attempt(() => perform([found])), kind);
	return [
		one(isPaused(found) ? "Resume" : "Pause", pause), one("Move", move),
		found.type !== "stream" && one("Purge", purge, "danger"), !isOwn(found.name) && one("Delete", erase, "danger"),
	];
}

// `end` is called when one was done.
export function tickedActs(rows, end) {
	const some = (text, which, perform, kind = "") => which.length > 0 && button(`${text} ${counted(which.length, "queue")}`,
		() => attempt(async () => { if (await perform(which)) end(); }), `small ${kind}`);
	return [some(rows.every(isPaused) ? "Resume" : "Pause", rows, pause), some("Purge", rows.filter((one) => one.type !== "stream"), purge, "danger"),
		some("Delete", rows.filter((one) => !isOwn(one.name)), erase, "danger")];
}

// One after the other; an error says how far it got.
async function each(rows, perform) {
	for (const [at, row] of rows.entries()) {
		await perform(row).catch((error) => {
			if (rows.length > 1) error.message = `${row.name}: ${error.message} (done before: ${at} of ${named(rows)})`;
			throw error;
		});
	}
}

// Looks at the queues, so that the count that a question names is of now.
async function lengthsOf(rows) {
	const found = await Promise.all(rows.map((one) => get(whereOf(one), { columns: "messages,messages_ready,consumers" })));
	return (field) => found.reduce((sum, one) => sum + one[field], 0);
}

async function pause(rows) {
	const [verb, outcome] = rows.every(isPaused) ? ["resume", `Resumed ${named(rows)}.`] : ["pause", `Paused ${named(rows)}: consumers get nothing until it is resumed.`];
	await each(rows, (one) => put(`${whereOf(one)}/${verb}`));
	done(outcome);
	return true;
}

async function purge(rows) {
	const lengths = await lengthsOf(rows);
	const what = `${counted(lengths("messages_ready"), "message")} from ${named(rows)}`;
	const text = `They are gone for good. Messages that consumers hold unacknowledged stay.${listed(rows)}`;
	return act({ act: `Purge ${what}`, text }, () => each(rows, (one) => remove(`${whereOf(one)}/contents`)), `Purged ${what}.`);
}

async function erase(rows) {
	const lengths = await lengthsOf(rows);
	const what = `${rows.length === 1 ? "the queue " : ""}${named(rows)}`;
	const text = `Deleted with it: ${counted(lengths("messages"), "message")}. Cancelled: ${counted(lengths("consumers"), "consumer")}.${listed(rows)}`;
	return act({ act: `Delete ${what}`, text, typed: named(rows), to: "#/queues" }, () => each(rows, (one) => remove(whereOf(one))), `Deleted ${what}.`);
}

async function move([{ vhost, name }]) {
	const ready = (await lengthsOf([{ vhost, name }]))("messages_ready");
	const origin = await originOf(vhost, name);
	return formDialog(`Move messages from ${name}`, {
		button: "Move messages",
		fields: [
			{ name: "to", label: "To", type: "select", options: [["queue", "Queue"], ["exchange", "Exchange"]] },
			{ name: "target", label: "Name", required: true, value: origin, help: origin && "The first message was dead-lettered from there." },
			{ name: "routing_key", label: "Routing key", placeholder: "each message's own", when: ({ to }) => to === "exchange" },
			{ name: "count", label: `How many of ${counted(ready, "ready message")}`, type: "number", value: ready, help: "From the first on. Each leaves once its copy is confirmed." },
		],
		submit: async ({ to, target, routing_key, count: wanted }) => {
			const key = routing_key ? { routing_key } : {};
			const { moved, left, reason } = await post(path`/warren/queues/${vhost}/${name}/move`, { [to]: target, ...key, ...(wanted ? { count: wanted } : {}) });
			done(`Moved ${counted(moved, "message")} from ${name} to ${target}; ${count(left)} left.${reason ? ` ${reason}` : ""}`);
		},
	});
}

async function originOf(vhost, name) {
	const { messages } = await get(path`/warren/queues/${vhost}/${name}/messages`, { count: 1, truncate: 0 });
	return messages[0]?.properties.headers?.["x-death"]?.[0]?.queue ?? "";
}
