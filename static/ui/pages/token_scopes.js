// The field of a form that has a token's scopes: rows of what it may and where.

import { button, FieldError, h, icon, select, session } from "../lib/kit.js";

const KINDS = [["read", "Read messages of"], ["write", "Publish to"], ["look", "Look at, below /api"], ["manage", "Manage, below /api"], ["tunnel", "Enrol the tunnel"]];
const MOST = 20;
const isMessages = (kind) => kind === "read" || kind === "write";

export function scopeField() {
  const rows = h("div", { class: "stack" });
  const add = button([icon("plus"), "Another scope"], () => more(), "small");
  function more() {
    rows.append(scopeRow(() => { add.disabled = false; }, () => rows.children.length > 1));
    add.disabled = rows.children.length >= MOST;
  }
  more();
  const element = h("fieldset", { class: "stack" }, h("legend", {}, "It may"), rows,
    h("small", {}, "A name that ends in * stands for all names that begin so."), h("div", {}, add));
  return { name: "scopes", label: "Scopes", type: "own", wide: true, element, read: () => [...rows.children].map((row) => row.read()) };
}

function scopeRow(removed, may_go) {
  const kind = choice("What it may", KINDS);
  const type = choice("Kind", [["x", "exchange"], ["q", "queue"]]);
  const name = h("input", { "aria-label": "Name", autocomplete: "off", spellcheck: "false" });
  const vhost = choice("Virtual host", [["", "any virtual host"], ...session.vhosts]);
  const go = button(icon("close"), () => {
    if (!may_go()) return;
    row.remove();
    removed();
  }, "icon", { "aria-label": "Remove this scope" });
  const row = h("div", { class: "row" }, kind, type, name, vhost, go);
  const changed = () => {
    type.hidden = !isMessages(kind.value);
    vhost.hidden = kind.value === "tunnel" || session.vhosts.length < 2;
    vhost.options[0].hidden = isMessages(kind.value);
    if (isMessages(kind.value) && !vhost.value) vhost.value = session.vhosts.includes("/") ? "/" : session.vhosts[0];
    name.placeholder = isMessages(kind.value) ? "name, or orders.*" : kind.value === "tunnel" ? "label" : "queues/%2F/*, empty for all";
  };
  kind.addEventListener("change", changed);
  changed();
  row.read = () => scopeOf(kind.value, type.value, name.value.trim(), vhost.value);
  return row;
}

function scopeOf(kind, type, name, vhost) {
  if (name === "" && (isMessages(kind) || kind === "tunnel")) throw new FieldError("scopes", "Each scope needs a name; * stands for all.");
  if (isMessages(kind)) return { [kind]: `${type}/${name}`, vhost };
  if (kind === "tunnel") return { tunnel: name };
  return { manage: kind === "manage" ? "write" : "read", path: name || "*", ...(vhost ? { vhost } : {}) };
}

function choice(label, options) {
  return select(options, "", { "aria-label": label });
}
