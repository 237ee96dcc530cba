// The form of an output: where its items come from, which are taken, and what is done to them.

import { FieldError, form, path, put, vhostField } from "../lib/kit.js";

const HOUR_S = 3600;
const LISTS = [["words", "any", "Any of these words"], ["words", "none", "None of these words"], ["categories", "any", "Any of these categories"], ["languages", "any", "Any of these languages"]];
const WAYS = { feed: (name) => ({ feed: name }), stream: (name) => ({ stream: name }), exchange: (name, key) => (key === undefined ? { exchange: name } : { exchange: name, routing_key: key }) };

export const listed = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

// A source in one line: "feed news", "exchange alerts road.#", "stream prices".
export function sourceLine({ feed, exchange, routing_key, stream }) {
  return feed ? `feed ${feed}` : stream ? `stream ${stream}` : `exchange ${exchange}${routing_key === undefined ? "" : ` ${routing_key}`}`;
}

function sources(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const [way, name, key, more] = line.split(/\s+/);
    if (!WAYS[way] || !name || more !== undefined || (key !== undefined && way !== "exchange")) throw new FieldError("sources", `"${line}" is no source: write feed NAME, exchange NAME KEY, or stream NAME.`);
    return WAYS[way](name, key);
  });
}

// `output` is the one to change, null for a new one; `saved(vhost, name)` is called then.
export function outputForm(output, saved, cancel) {
  const filter = output?.filter ?? {};
  const place = output ? [] : [{ name: "name", label: "Name", required: true, help: "Part of its documents' addresses." }, vhostField()];
  return form({
    name: `output:${output ? `${output.vhost}/${output.name}` : ""}`, button: output ? "Save output" : "Create output", cancel,
    fields: [
      ...place, { name: "title", label: "Title", value: output?.title, wide: Boolean(output) },
      { name: "sources", label: "Sources, one a line", type: "textarea", required: true, placeholder: "feed news\nexchange alerts road.#\nstream prices", value: output?.sources.map(sourceLine).join("\n"), help: "feed NAME, exchange NAME KEY, or stream NAME." },
      ...LISTS.map(([member, way, label]) => ({ name: `${member}_${way}`, label, placeholder: way === "none" ? "" : "all", value: filter[member]?.[way]?.join(", "), help: "Separated by commas." })),
      { name: "max_age_h", label: "Not older than, in hours", type: "number", value: filter.max_age_s ? filter.max_age_s / HOUR_S : "" },
      { name: "visibility", label: "Documents are read by", type: "select", options: [["public", "Everybody"], ["token", "Partners with a token"]], value: output?.visibility },
      { name: "drop_near_duplicates", label: "Leave out what the job near-duplicates has found", type: "check", value: filter.drop_near_duplicates, wide: true },
      { name: "transform", label: "Transform, step by step", type: "json", value: output?.transform.length ? output.transform : "", placeholder: '[{"cut": "headline and summary"}, {"title": "{feed}: {title}"}]', help: "A JSON list of cut, max_characters, title, rename, remove and add." },
      { name: "description", label: "Description", wide: true, value: output?.description },
    ],
    submit: async (values) => {
      const { name = output?.name, vhost = output?.vhost, title, description, visibility, transform } = values;
      const steps = Array.isArray(transform) ? transform : Object.keys(transform).length ? [transform] : [];
      const body = { title, description, visibility, transform: steps, sources: sources(values.sources), filter: wanted(filter, values) };
      await put(path`/hub/outputs/${name}`, body, { vhost });
      saved(vhost, name);
    },
  });
}

// The filter with what the form has; members that the form lacks stay.
function wanted(filter, values) {
  const found = structuredClone(filter);
  for (const [member, way] of LISTS) {
    const terms = listed(values[`${member}_${way}`]);
    if (terms.length || found[member]?.[way]) found[member] = { ...found[member], [way]: terms };
  }
  found.drop_near_duplicates = values.drop_near_duplicates;
  if (values.max_age_h) found.max_age_s = Math.round(values.max_age_h * HOUR_S);
  else delete found.max_age_s;
  return found;
}
