// What can be done to a subscription.

import { act, attempt, done, formDialog, path, post, remove } from "../lib/kit.js";

export const LEASES = [["3600", "An hour"], ["86400", "A day"], ["604800", "A week"], ["864000", "10 days"], ["2592000", "30 days"], ["7776000", "90 days"], ["31536000", "A year"]];

export const address = ({ id }, verb = "") => path`/hub/subscriptions/${id}` + verb;

export const isPaused = (row) => Boolean(row.paused_reason) || row.status === "inactive" && !row.suspended_reason;

const say = (perform, text) => attempt(() => perform().then(() => done(text)));

export const pause = (row) => say(() => post(address(row, "/pause")), `Paused ${row.callback}. Its messages wait.`);

export const resume = (row) => say(() => post(address(row, "/resume")), `Resumed ${row.callback}.`);

// Asks a callback that has never agreed: what a listing has can be subscribed again.
export const ask = (row) => say(() => post("/hub/subscriptions", { ...row, status: "active" }), `${row.callback} has confirmed.`);

export function renew(row) {
  return formDialog("Renew the lease", {
    button: "Renew", fields: [{ name: "lease_seconds", label: "From now on for", type: "select", options: LEASES, value: String(row.lease_seconds), wide: true }],
    submit: async ({ lease_seconds: seconds }) => {
      await post(address(row, "/renew"), { lease_seconds: Number(seconds) });
      done(`Renewed the lease of ${row.callback}.`);
    },
  });
}

export function end(row, to) {
  return act({
    title: "End the subscription?", act: `End the subscription of ${row.callback}`, to,
    text: "Its callback is told so. Messages that wait for it are dropped; those of a shared queue go back to it. Only a new subscription starts it again.",
  }, () => remove(address(row)), `Ended the subscription of ${row.callback}.`);
}
