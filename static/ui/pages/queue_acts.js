// What is done to a whole queue: move its messages, purge, pause, delete.

import { act, attempt, button, count, counted, done, formDialog, get, path, post, put, remove, report } from "../lib/kit.js";
import { isOwn } from "./queues.js";

// Returns the buttons. Each looks at the queue first, so that the count it names is of now.
export function queueActs({ vhost, name, where, found }) {
  const withLengths = (perform) => () => get(where, { columns: "messages,messages_ready,consumers" }).then(perform).catch(report);
  const paused = found.state === "paused";
  return [
    button(paused ? "Resume" : "Pause", () => attempt(() => pause(where, name, paused))),
    button("Move", withLengths((lengths) => move(vhost, name, lengths))),
    found.type !== "stream" && button("Purge", withLengths((lengths) => purge(where, name, lengths)), "danger"),
    !isOwn(name) && button("Delete", withLengths((lengths) => erase(where, name, lengths)), "danger"),
  ];
}

async function pause(where, name, paused) {
  await put(`${where}/${paused ? "resume" : "pause"}`);
  done(paused ? `Resumed ${name}.` : `Paused ${name}: its consumers get nothing until it is resumed.`);
}

function purge(where, name, { messages_ready: ready }) {
  const messages = counted(ready, "message");
  return act({ act: `Purge ${messages} from ${name}`, text: "They are gone for good. Messages that consumers hold unacknowledged stay." }, () => remove(`${where}/contents`), `Purged ${messages} from ${name}.`);
}

function erase(where, name, { messages, consumers }) {
  const text = `Deleted with it: ${counted(messages, "message")}.${consumers ? ` Cancelled: ${counted(consumers, "consumer")}.` : ""}`;
  return act({ act: `Delete the queue ${name}`, text, typed: name, to: "#/queues" }, () => remove(where), `Deleted the queue ${name}.`);
}

async function move(vhost, name, { messages_ready: ready }) {
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
