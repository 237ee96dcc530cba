// Permissions of users in virtual hosts: the tables of both sides, with the dialogs that set them.

import { act, attempt, button, code, done, empty, formDialog, grid, h, pageLink, path, put, quiet, remove, section } from "../lib/kit.js";

const PATTERNS = [["configure", "Configure"], ["write", "Write"], ["read", "Read"]];
const LABELS = { user: "User", vhost: "Virtual host" };
const PAGES = { user: "/users", vhost: "/vhosts" };
const columns = (...labels) => [...labels.map((label) => ({ label })), { label: "", end: true }];

// The cards of a user or a virtual host. `other` is what a row names, "user" or "vhost"; `known` is the other
// end, and `choices` finds the names to choose from.
export function permissionCards(permissions, topics, other, known, choices) {
  const set = (dialog) => () => attempt(async () => dialog(known, await choices()));
  return [
    section("Permissions", button("Set permissions", set(setPermissions), "small"), permissionTable(permissions, other)),
    section("Topic permissions", button("Set topic permissions", set(setTopicPermissions), "small"), topicTable(topics, other)),
  ];
}

function permissionTable(rows, other) {
  if (!rows.length) return empty("No permissions", other === "user" ? "Nobody may enter this virtual host." : "The user may enter no virtual host yet.");
  return grid("Permissions", columns(LABELS[other], ...PATTERNS.map(([, label]) => label)), rows.map((row) => [nameOf(row, other), ...PATTERNS.map(([key]) => pattern(row[key])),
    changeOrRemove(() => setPermissions(row), `Remove all permissions of ${row.user} in ${row.vhost}`, path`/permissions/${row.vhost}/${row.user}`)]));
}

function topicTable(rows, other) {
  if (!rows.length) return quiet("Without topic permissions, all routing keys of topic exchanges are permitted.");
  return grid("Topic permissions", columns(LABELS[other], "Exchange", "Write", "Read"), rows.map((row) => [nameOf(row, other), row.exchange || "all", pattern(row.write), pattern(row.read),
    changeOrRemove(() => setTopicPermissions(row), `Remove the topic permission of ${row.user} for ${row.exchange || "all exchanges"}`, path`/topic-permissions/${row.vhost}/${row.user}/${row.exchange}`)]));
}

// Both dialogs take what is known: {user} or {vhost}, or a whole row; `choices` are names for the other.
function setPermissions(row, choices) {
  const help = "A regular expression of names; .* for all, empty for none.";
  return dialog("permissions", row, choices, PATTERNS.map(([name, label]) => ({ name, label, value: row[name] ?? ".*", help })), ({ user, vhost, configure, write, read }) => put(path`/permissions/${vhost}/${user}`, { configure, write, read }));
}

function setTopicPermissions(row, choices) {
  const fields = [{ name: "exchange", label: "Exchange", value: row.exchange, help: "Of type topic; empty for all." }, { name: "write", label: "Write: routing keys", value: row.write ?? ".*" }, { name: "read", label: "Read: binding keys", value: row.read ?? ".*" }];
  return dialog("topic permissions", row, choices, fields, ({ user, vhost, exchange, write, read }) => put(path`/topic-permissions/${vhost}/${user}`, { exchange, write, read }));
}

function dialog(what, row, choices, fields, store) {
  const name = row.user ? "vhost" : "user";
  const who = choices ? [{ name, label: LABELS[name], type: "select", options: choices, wide: true }] : [];
  return formDialog(`Set ${what}`, { button: `Set ${what}`, fields: [...who, ...fields], submit: async (given) => {
    const wanted = { ...row, ...given };
    await store(wanted);
    done(`${wanted.user} has ${what} in ${wanted.vhost}.`);
  } });
}

function nameOf(row, other) {
  return pageLink(row[other], PAGES[other], row[other]);
}

function pattern(text) {
  return text === "" ? h("span", { class: "quiet" }, "none") : code(text);
}

function changeOrRemove(change, removal, where) {
  return h("div", { class: "actions" }, button("Change", change, "small"), button("Remove", () => act({ act: removal }, () => remove(where), "Removed."), "small danger"));
}
