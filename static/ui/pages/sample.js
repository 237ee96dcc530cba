// A webhook target in the page, and a message for it: what the first page shows.

import { firstVhost, HUB, path, post, report, request } from "../lib/kit.js";

export const EXCHANGE = "amq.topic";
export const KEY = "first.message";
const LEASE_S = 600;
const TOKEN_S = 900; // a subscription ends no later than the token that made it

// Subscribes the page by a tunnel; `on(message)` is called for each. It ends with `signal`, as its token does.
export async function openCallback(on, signal) {
  const { subscribe } = await import(`${HUB}js/warren.js`);
  const vhost = firstVhost();
  const scopes = [{ read: `x/${EXCHANGE}`, vhost }, { tunnel: "page-*" }];
  const token = await post("/hub/tokens", { name: "first message", scopes, expires_in_s: TOKEN_S });
  const revoke = () => request("DELETE", path`/hub/tokens/${token.id}`, { keepalive: true }).catch(report);
  try {
    const subscription = await subscribe({ hub: HUB, auth: token.token, source: `x/${EXCHANGE}`, vhost, key: KEY, lease: LEASE_S }, on);
    signal.addEventListener("abort", () => subscription.unsubscribe().catch(report).finally(revoke));
    return { url: subscription.callback, vhost };
  } catch (error) {
    await revoke();
    throw error;
  }
}

export function publishSample() {
  const body = JSON.stringify({ hello: "world", at: new Date().toISOString() });
  const properties = { content_type: "application/json", delivery_mode: 2 };
  return post(path`/exchanges/${firstVhost()}/${EXCHANGE}/publish`, { properties, routing_key: KEY, payload: body, payload_encoding: "string" });
}
