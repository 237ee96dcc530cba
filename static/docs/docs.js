// Shows /openapi.json. All that it says is put in as text, never as HTML.

const METHODS = ["get", "put", "post", "patch", "delete"];
const DEPTH = 4;
const HUB = new URL("../..", location.href).href.replace(/\/$/, "");

const search = document.querySelector("#search");
const count = document.querySelector("#count");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((one) => one !== null));
  return made;
}

// A description, with what is between backticks as code.
function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
}

// A schema as a type, in the words of TypeScript.
function typeText(schema, schemas, indent = "", depth = 0) {
  if (!schema || Object.keys(schema).length === 0) return "any";
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return depth >= DEPTH ? name : typeText(schemas[name], schemas, indent, depth);
  }
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return [...new Set(either.map((one) => typeText(one, schemas, indent, depth)))].join(" | ");
  if (schema.type === "array") {
    const items = schema.prefixItems?.map((one) => typeText(one, schemas, indent, depth + 1));
    if (items) return `[${items.join(", ")}]`;
    const item = typeText(schema.items, schemas, indent, depth + 1);
    return schema.items?.anyOf || schema.items?.enum ? `(${item})[]` : `${item}[]`;
  }
  if (schema.type === "object" || schema.properties) return objectText(schema, schemas, indent, depth);
  return Array.isArray(schema.type) ? schema.type.join(" | ") : schema.type ?? "any";
}

function objectText(schema, schemas, indent, depth) {
  if (!schema.properties) {
    const values = schema.additionalProperties;
    return `{ [name]: ${typeof values === "object" ? typeText(values, schemas, indent, depth + 1) : "any"} }`;
  }
  if (depth >= DEPTH) return "object";
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties).map(([name, kind]) => {
    const mark = schema.required?.includes(name) ? "" : "?";
    return `${inner}${name}${mark}: ${typeText(kind, schemas, inner, depth + 1)}`;
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

function contents(title, content, schemas) {
  return Object.entries(content ?? {}).map(([type, { schema, example }]) => element(
    "div", {}, element("h3", {}, `${title}: ${type}`),
    schema ? element("pre", { tabindex: "0" }, typeText(schema, schemas)) : null,
    example ? element("pre", { tabindex: "0" }, JSON.stringify(example, null, 2)) : null,
  ));
}

function parameterTable(parameters, schemas) {
  const rows = parameters.map((one) => element(
    "tr", {},
    element("th", { scope: "row" }, element("code", {}, one.name)),
    element("td", {}, one.in + (one.required ? ", required" : "")),
    element("td", {}, element("code", {}, typeText(one.schema, schemas))),
    element("td", {}, ...prose(one.description ?? "")),
  ));
  return rows.length === 0 ? null : element("div", {}, element("h3", {}, "Parameters"), element("table", {}, ...rows));
}

function curlLine(method, path, operation) {
  const words = ["curl", "-u guest:guest"];
  if (operation.security?.length === 0) words.pop();
  if (method !== "get") words.push(`-X ${method.toUpperCase()}`);
  const example = operation.requestBody?.content["application/json"]?.example;
  if (example) words.push("-H 'Content-Type: application/json'");
  if (operation.requestBody) words.push(`-d '${example ? JSON.stringify(example) : "..."}'`);
  return [...words, `'${HUB}${path}'`].join(" ");
}

function fill(details, method, path, parameters, operation, schemas) {
  const [refusals, responses] = [true, false].map(
    (wanted) => Object.entries(operation.responses).filter(([, one]) => wanted === "$ref" in one),
  );
  details.append(element(
    "div", { class: "body" },
    element("p", {}, ...prose(operation.description)),
    element("pre", { tabindex: "0" }, curlLine(method, path, operation)),
    parameterTable([...parameters, ...operation.parameters], schemas),
    ...contents("Body", operation.requestBody?.content, schemas),
    ...responses.flatMap(([status, { content }]) => content
      ? contents(status, content, schemas)
      : [element("h3", {}, `${status}, without a body`)]),
    element("h3", {}, `Refused with ${refusals.map(([status]) => status).join(", ")}`),
  ));
}

// What is inside is made when it is opened: all of it at once takes a second.
function operationElement(method, path, parameters, operation, schemas) {
  const details = element(
    "details", { class: "operation", id: `${method}-${path}` },
    element(
      "summary", {},
      element("span", { class: `method ${method}` }, method.toUpperCase()),
      element("code", {}, path),
      element("span", { class: "about" }, ...prose(operation.description)),
    ),
  );
  details.dataset.words = `${method} ${path} ${operation.description}`.toLowerCase();
  details.addEventListener("toggle", () => {
    fill(details, method, path, parameters, operation, schemas);
  }, { once: true });
  return details;
}

function show({ paths, components, tags }) {
  const groups = new Map(tags.map(({ name }) => [name, []]));
  for (const [path, described] of Object.entries(paths)) {
    for (const method of METHODS.filter((one) => described[one])) {
      groups.get(described[method].tags[0]).push(
        operationElement(method, path, described.parameters ?? [], described[method], components.schemas),
      );
    }
  }
  const sections = [...groups].filter(([, operations]) => operations.length > 0)
    .map(([title, operations]) => element("section", {}, element("h2", {}, title), ...operations));
  document.querySelector("#groups").replaceChildren(...sections);
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const section of document.querySelectorAll("#groups > section")) {
    const operations = [...section.querySelectorAll(".operation")];
    for (const one of operations) one.hidden = !words.every((word) => one.dataset.words.includes(word));
    const found = operations.filter((one) => !one.hidden).length;
    section.hidden = found === 0;
    shown += found;
  }
  count.textContent = shown === 1 ? "1 operation" : `${shown} operations`;
}

search.addEventListener("input", filter);
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search) {
    event.preventDefault();
    search.focus();
  }
});

try {
  show(await (await fetch(`${HUB}/openapi.json`)).json());
  filter();
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.setAttribute("open", "");
} catch (error) {
  count.textContent = `The description can't be read: ${error.message}`;
}
