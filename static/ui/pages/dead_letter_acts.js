// Replays and deletes dead letters.

import { act, counted, path, post, remove } from "../lib/kit.js";

const LIST = "#/dead-letters";
const noun = (number) => counted(number, "dead letter");

export const address = ({ vhost, id }) => path`/hub/dead-letters/${vhost}/${id}`;

// `which` says it as a sentence begins: "All that match the filter".
export function replayLetters(number, filters, which) {
  const text = `${which} return to their subscriptions, with their old webhook-id and as if they had never failed. Those of paused subscriptions stay.`;
  return act({ act: `Replay ${noun(number)}`, text, safe: true }, () => post("/hub/dead-letters/replay", filters), ({ replayed, skipped }) => `Replayed ${noun(replayed)}${skipped ? `; ${noun(skipped)} skipped, since the subscription is paused or has ended` : ""}.`);
}

export function removeLetters(number, filters, which) {
  const body = Object.keys(filters).length ? filters : { all: true };
  return act({ act: `Delete ${noun(number)}`, text: `${which} are dropped for good.` }, () => post("/hub/dead-letters/delete", body), ({ deleted }) => `Deleted ${noun(deleted)}.`);
}

export function replay(letter) {
  return act({ act: "Replay 1 dead letter", text: `It returns to the subscription of ${letter.callback}, with its old webhook-id.`, safe: true, to: LIST }, () => post(`${address(letter)}/replay`), "Replayed: it is delivered as if it had never failed.");
}

export function drop(letter) {
  return act({ act: "Delete 1 dead letter", text: `${letter.webhook_id} is dropped for good.`, to: LIST }, () => remove(address(letter)), "Deleted the dead letter.");
}
