// Limits of virtual hosts and of users, as fields of forms.

import { count, path, put, remove } from "../lib/kit.js";

export const LIMITS = {
  vhost: [["max-connections", "Most connections"], ["max-queues", "Most queues"]],
  user: [["max-connections", "Most connections"], ["max-channels", "Most channels"]],
};

export function limitFields(kind, limits) {
  return LIMITS[kind].map(([name, label]) => ({ name, label, type: "number", value: limits[name] ?? "", help: "Empty for no limit." }));
}

export async function putLimits(kind, name, before, now) {
  for (const [limit] of LIMITS[kind]) {
    if ((before[limit] ?? null) === now[limit]) continue;
    const where = path`/${kind}-limits/${name}/${limit}`;
    await (now[limit] === null ? remove(where) : put(where, { value: now[limit] }));
  }
}

export function limitText(value) {
  return value === undefined || value < 0 ? "no limit" : `at most ${count(value)}`;
}
