// What pages are made of, in one place to import from.

export * from "./api.js";
export * from "./chart.js";
export * from "./chips.js";
export * from "./command.js";
export * from "./dialogs.js";
export * from "./dom.js";
export * from "./events.js";
export * from "./format.js";
export * from "./forms.js";
export * from "./live.js";
export * from "./menu.js";
export * from "./messages.js";
export * from "./pairs.js";
export * from "./payload.js";
export * from "./refresh.js";
export * from "./requests.js";
export * from "./router.js";
export * from "./session.js";
export * from "./table.js";
export * from "./ticks.js";
export * from "./vhosts.js";
export * from "./view.js";
