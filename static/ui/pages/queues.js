// The list of queues: what is stuck comes first.

import { below, button, column, empty, h, heading, pageLink, path, session, state, table, tabs, tag, vhostFilter, vhostPages, wrapped } from "../lib/kit.js";
import { declareQueue } from "./declare.js";

export const KIND_TABS = [["Queues", "#/queues"], ["Exchanges", "#/exchanges"]];
// What the hub has made for itself is hidden at first.
export const OWN_FILTER = { name: "own", label: "Whose", options: [["", "Without the hub's own"], ["shown", "With the hub's own"]] };
const GROWING_MESSAGES = 100;

const speed = (name) => `message_stats.${name}_details.rate`;
const COLUMNS = [
  column.named("name", "Name", (row) => [pageLink(row.name, "/queues", row.vhost, row.name), row.subscription && below(subscriptionLink(row.subscription))]),
  column.vhost({ optional: true }),
  column.text("type", "Type", { optional: true }),
  column("features", "Features", features, { hidden: true }),
  column("state", "State", condition, { sort: "trouble", help: "Queues with messages that nobody takes come first, then those that grow" }),
  column.count("messages_ready", "Ready"),
  column.count("messages_unacknowledged", "Unacked"),
  column.count("consumers", "Consumers", { optional: true }),
  column.rate(speed("publish"), "In", { optional: true }),
  column.rate(speed("deliver_get"), "Out", { optional: true }),
  column.rate(speed("ack"), "Acked", { hidden: true }),
  column.bytes("message_bytes", "Bytes", { hidden: true }),
  column.bytes("memory", "Memory", { hidden: true }),
  column.text("policy", "Policy", { hidden: true }),
];

// As RabbitMQ's management abbreviates them.
const FEATURES = [["D", "durable", (row) => row.durable], ["AD", "auto-delete", (row) => row.auto_delete], ["Excl", "exclusive", (row) => row.exclusive],
  ...[["DLX", "dead-letter exchange", "x-dead-letter-exchange"], ["TTL", "message TTL", "x-message-ttl"], ["Lim", "maximum length", "x-max-length"], ["Pri", "priorities", "x-max-priority"]]
    .map(([short, long, key]) => [short, long, (row) => row.arguments[key] !== undefined])];

export default function queues({ signal }) {
  const list = table({
    noun: "queue", columns: COLUMNS.filter((one) => one.id !== "vhost" || session.vhosts.length > 1), signal, sort: { by: "trouble", reverse: true },
    key: (row) => `${row.vhost}/${row.name}`, filters: [OWN_FILTER, ...vhostFilter()],
    source: withoutOwn(vhostPages("/queues", (vhost) => path`/queues/${vhost}`)),
    empty: () => empty("No queues yet", "A queue keeps messages until a consumer, or a webhook, has taken them.", h("p", {}, h("a", { href: "#/welcome" }, "Send a first message"))),
  });
  return [heading("Queues", { actions: [button("New queue", declareQueue, "main")] }), tabs("Kinds", KIND_TABS, "Queues"), list];
}

export function withoutOwn(source) {
  return ({ own, ...query }, signal) => source({ ...query, without_hub: own ? undefined : "true" }, signal);
}

function features(row) {
  return FEATURES.filter(([, , has]) => has(row)).map(([short, long]) => [tag(short, long), " "]);
}

export function subscriptionLink({ id, callback }) {
  return ["subscription of ", pageLink(wrapped(callback), "/subscriptions", id)];
}

// What is the hub's is made, bound and deleted by the hub alone.
export function isOwn(name) {
  return name.startsWith("hub.");
}

// Says what is wrong in words: ready messages that nobody takes are what people look for.
export function condition(row) {
  if (row.state === "paused") return state("Paused", "warn");
  if (row.state && row.state !== "running") return state(row.state, "warn");
  if (isOwn(row.name) && !row.consumers) return state("Kept by the hub");
  if (row.messages_ready && !row.consumers && row.type !== "stream") return state("No consumer", "warn");
  if (row.messages_ready >= GROWING_MESSAGES && row.messages_ready_details.rate >= 1 && row.type !== "stream") return state("Growing", "warn");
  return row.idle_since ? state("Idle") : state("Running", "good");
}
