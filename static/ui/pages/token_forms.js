// The dialogs that make tokens and capability URLs, and show them once.

import { closing, command, formDialog, h, HUB, open, post, session, stack, vhostField } from "../lib/kit.js";
import { scopeField } from "./token_scopes.js";

const TIMES = [["600", "10 minutes"], ["3600", "An hour"], ["86400", "A day"], ["604800", "A week"], ["2592000", "30 days"], ["31536000", "A year"]];

export async function newToken() {
  const scopes = scopeField();
  const made = await formDialog("New token", {
    button: "Create token", fields: [
      { name: "name", label: "Name", required: true, help: "For people: what uses it." }, { name: "expires_in_s", label: "Ends after", type: "select", options: TIMES, value: "3600" }, scopes,
    ],
    submit: async ({ name, expires_in_s, scopes: given }) => post("/hub/tokens", { name, scopes: given, expires_in_s: Number(expires_in_s) }),
    wide: true,
  });
  if (made) await once("The token", made.token, "It may do what it says until it ends. Send it as a header:", example(made));
}

function example({ token, scopes: [scope] }) {
  const bearer = `-H 'Authorization: Bearer ${token}'`;
  const at = (facet) => `${HUB}${(scope.vhost ?? "/") === "/" ? "" : `${encodeURIComponent(scope.vhost)}/`}${facet}/`;
  const named = (target) => `${target.slice(0, 2)}${encodeURIComponent(target.slice(2))}`;
  if (scope.read) return `curl -N ${bearer} '${at("stream")}${named(scope.read)}'`;
  if (scope.write) return `curl ${bearer} -d hello '${at("endpoint")}${named(scope.write)}'`;
  if (scope.tunnel) return `warren tunnel 8000 --label ${scope.tunnel.replace("*", "1")} --token ${token}`;
  return `curl ${bearer} '${HUB}api/${scope.path.replace(/\*$/, "") || "whoami"}'`;
}

export async function newUrl() {
  const made = await formDialog("New URL to publish to", {
    button: "Create URL", fields: [
      vhostField(), { name: "type", label: "Publishes to", type: "select", options: [["x", "An exchange"], ["q", "A queue"]] }, { name: "name", label: "Its name", required: true },
      { name: "routing_key", label: "Routing key", help: "Empty: the sender says it as hub.topic.", when: (values) => values.type === "x" },
      { name: "expires_in_s", label: "Ends after", type: "select", options: [["", "Never"], ...TIMES] }, { name: "note", label: "Note", help: "Who has it." },
    ],
    submit: async ({ expires_in_s: after, routing_key: key, note, ...body }) => post("/hub/capabilities", { ...body, ...(after ? { expires_in_s: Number(after) } : {}), ...(key ? { routing_key: key } : {}), ...(note ? { note } : {}) }),
  });
  if (made) await once("The URL", made.url, "Give it to the sender only. It publishes with:", `curl -d hello '${made.url}'`);
}

function once(what, secret, text, line) {
  return open(`${what}, shown this once`, (close) => stack(h("p", {}, `Copy it now. Only its digest is stored, so ${session.name} can't see it again.`), command(secret), h("p", {}, text), command(line), closing(close, "I have copied it")), { wide: true });
}
