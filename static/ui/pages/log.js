// The log of the server as it is written.

import { act, address, asText, button, card, clock, date, done, empty, facts, fill, followEvents, formDialog, get, h, heading, headOf, patch, path, put, quiet, refresh, remove, rowOf, select, setQuery, state } from "../lib/kit.js";

const LINES = 200;
const KEPT_LINES = 1000;
const LEVELS = ["debug", "info", "warning", "error"];
const SHOWN = [["", "All levels"], ["info", "Information and above"], ["warning", "Warnings and errors"], ["error", "Errors"]];
const KINDS = { warning: "warn", error: "bad", critical: "bad", info: "" };
const OWN = ["at", "time", "level", "area", "logger", "message", "event"];
const COLUMNS = [{ label: "Time" }, { label: "Level" }, { label: "Area", optional: true }, { label: "Line", wide: true }];

export default function log({ signal }) {
  const { query } = address();
  const body = h("tbody");
  const wanted = { level: query.level ?? "", text: query.text ?? "" };
  const note = h("p", { class: "quiet", role: "status" });
  const levels = h("div");
  const nothing = h("div", {}, empty("Nothing was logged yet", "Warnings, errors and changes appear here as they are logged."));
  const pause = button("Pause", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) waiting.splice(0).forEach(add);
    label();
  }, null, { "aria-pressed": "false" });
  let paused = false;
  const waiting = [];
  const known = new Set(); // after a break the last lines are sent again

  function label() {
    pause.textContent = paused ? `Continue (${waiting.length} new)` : "Pause";
  }
  function shows(row) {
    const { level, text } = wanted;
    row.hidden = Boolean((level && LEVELS.indexOf(row.dataset.level) < LEVELS.indexOf(level)) || (text && !row.textContent.toLowerCase().includes(text.toLowerCase())));
  }
  function filter(changes) {
    Object.assign(wanted, changes);
    setQuery(changes);
    [...body.children].forEach(shows);
  }
  function add(line) {
    const row = lineRow(line);
    shows(row);
    body.prepend(row);
    nothing.hidden = true;
    while (body.children.length > KEPT_LINES) body.lastChild.remove();
  }
  function take(event) {
    const sent = `${event.lastEventId} ${event.data}`;
    if (known.has(sent)) return;
    known.add(sent);
    if (known.size > KEPT_LINES) known.delete(known.values().next().value);
    if (!paused) return void add(JSON.parse(event.data));
    waiting.push(JSON.parse(event.data));
    if (waiting.length > KEPT_LINES) waiting.shift();
    label();
  }
  const close = followEvents("/warren/log", { lines: LINES }, { open: () => fill(note), message: take }, () => fill(note, "The connection is lost; it is tried again."));
  signal.addEventListener("abort", close);
  refresh(async (gone) => patch(levels, levelCard(await get("/warren/log-levels", {}, gone))), signal, 0);
  const level = select(SHOWN, wanted.level, { "aria-label": "Level", onchange: () => filter({ level: level.value }) });
  return [
    heading("Log", { actions: pause, about: "The newest line is first. All of it is where the server writes it." }),
    h("div", { class: "tools" },
      h("input", { type: "search", class: "search", "data-search": true, "aria-label": "Filter lines", placeholder: "Filter lines", value: wanted.text, oninput: (event) => filter({ text: event.target.value }) }), level, note),
    h("div", { class: "card flush" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lines of the log" }, h("table", {}, h("thead", {}, h("tr", {}, COLUMNS.map((one) => headOf(one, one.label)))), body)), nothing),
    levels,
  ];
}

function lineRow(line) {
  const at = line.at ?? line.time;
  const rest = Object.entries(line).filter(([key]) => !OWN.includes(key)).map(([key, value]) => `${key}=${asText(value)}`).join(" ");
  return rowOf(COLUMNS, [h("time", { datetime: at, title: date(at) }, clock(at)), state(line.level, KINDS[line.level] ?? ""), line.area ?? line.logger ?? "",
    [h("span", {}, line.message ?? line.event ?? ""), rest && h("span", { class: "quiet mono" }, ` ${rest}`)]], h("tr", { "data-level": line.level }));
}

function levelCard(levels) {
  const reset = (area) => act({ act: `Give ${area} the usual level again` }, () => remove(path`/warren/log-levels/${area}`), "Done.");
  return card(["Levels", button("Set the level of an area", change, "small")],
    levels.length ? facts(levels.map(({ area, level }) => [area, [level, " ", button("Reset", () => reset(area), "link")]]))
      : quiet("All areas have the usual level. An area is a folder or module, such as hub.delivery; debug shows each step there until the server ends."));
}

function change() {
  return formDialog("Set the level of an area", { button: "Set level", fields: [{ name: "area", label: "Area", required: true, placeholder: "hub.delivery" }, { name: "level", label: "Level", type: "select", options: LEVELS }],
    submit: async ({ area, level }) => {
      await put(path`/warren/log-levels/${area}`, { level });
      done(`${area} logs from ${level} on.`);
    } });
}
