// LavinMQ's JavaScript client as a web page uses it: AMQP in WebSocket messages. Runs every
// scenario against the URL given and prints one JSON object, as run.js does.

import assert from 'node:assert/strict';
import { once } from 'node:events';

import { AMQPWebSocketClient } from '@cloudamqp/amqp-client/amqp-websocket-client';
import WebSocket from 'ws';

globalThis.WebSocket = WebSocket; // browsers and later versions of Node have their own

const SCENARIO_LIMIT_MS = 15_000;
const FRAME_MAX = 8_192; // the client's own, so that anything large goes in several frames

/** Resolves with the first `count` bodies. */
async function bodies(channel, queue, count) {
  const found = [];
  let resolve;
  const whole = new Promise((done) => {
    resolve = done;
  });
  await channel.basicConsume(queue, { noAck: false }, (message) => {
    found.push(message.bodyString());
    message.ack();
    if (found.length === count) resolve(found);
  });
  return whole;
}

const scenarios = {
  async 'a message goes through'(open) {
    const channel = await (await open()).channel();
    const { name } = await channel.queueDeclare('', { exclusive: true });
    await channel.confirmSelect();
    await channel.basicPublish('', name, 'hello', { contentType: 'text/plain' });
    const message = await channel.basicGet(name, { noAck: true });
    assert.equal(message.bodyString(), 'hello');
    assert.equal(message.properties.contentType, 'text/plain');
  },

  async 'a message of many frames goes through'(open) {
    const channel = await (await open()).channel();
    const { name } = await channel.queueDeclare('', { exclusive: true });
    const body = new Uint8Array(20 * FRAME_MAX).map((_, index) => index % 251);
    await channel.confirmSelect();
    await channel.basicPublish('', name, body);
    const message = await channel.basicGet(name);
    assert.deepEqual(new Uint8Array(message.body), body);
  },

  async 'many messages keep their order'(open) {
    const channel = await (await open()).channel();
    const { name } = await channel.queueDeclare('', { exclusive: true });
    const sent = Array.from({ length: 2_000 }, (_, index) => `message ${index}`);
    const received = bodies(channel, name, sent.length);
    for (const body of sent) await channel.basicPublish('', name, body);
    assert.deepEqual(await received, sent);
  },

  async 'two pages meet'(open) {
    const [one, other] = [await open(), await open()];
    const consumer = await one.channel();
    const { name } = await consumer.queueDeclare('', { exclusive: true });
    await consumer.queueBind(name, 'amq.topic', 'news.#');
    const received = bodies(consumer, name, 1);
    await (await other.channel()).basicPublish('amq.topic', 'news.eu', 'is at work');
    assert.deepEqual(await received, ['is at work']);
  },

  async 'heartbeats keep an idle page'(open) {
    // The queues are the clock: a page that is silent for two seconds is taken for dead.
    const channel = await (await open({ heartbeat: 1 })).channel();
    const { name } = await channel.queueDeclare('', { exclusive: true });
    const delay = await channel.queueDeclare(
      '',
      { exclusive: true },
      { 'x-message-ttl': 2_500, 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': name },
    );
    const received = bodies(channel, name, 1);
    await channel.basicPublish('', delay.name, 'still there?');
    assert.deepEqual(await received, ['still there?']);
  },

  async 'a secret is updated'(open) {
    const connection = await open();
    await connection.updateSecret('guest', 'rotation');
    await connection.channel();
  },

  async 'a wrong password is refused'(open) {
    await assert.rejects(open({ password: 'wrong' }), /ACCESS_REFUSED/);
  },

  async 'an error ends the channel alone'(open) {
    const connection = await open();
    const channel = await connection.channel();
    await assert.rejects(channel.queueDeclare('no-such-queue', { passive: true }), /NOT_FOUND/);
    await connection.channel();
  },

  async 'the subprotocol is agreed on'(open, url) {
    const socket = new WebSocket(url, ['other', 'amqp']);
    await once(socket, 'open');
    assert.equal(socket.protocol, 'amqp');
    socket.close();
    const [code] = await once(socket, 'close');
    assert.equal(code, 1005);
  },

  async 'another subprotocol is refused'(open, url) {
    const [, response] = await once(new WebSocket(url, 'mqtt'), 'unexpected-response');
    assert.equal(response.statusCode, 400);
    response.destroy();
  },

  async 'text is refused'(open, url) {
    const socket = new WebSocket(url);
    await once(socket, 'open');
    socket.send('AMQP');
    const [code, reason] = await once(socket, 'close');
    assert.equal(code, 1003);
    assert.equal(reason.toString(), 'AMQP needs binary messages');
  },
};

function limited(promise) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`not finished within ${SCENARIO_LIMIT_MS} ms`)),
      SCENARIO_LIMIT_MS,
    );
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

async function run(scenario, url) {
  const connections = [];
  const open = async (options) => {
    const client = new AMQPWebSocketClient({ url, ...options });
    connections.push(client);
    return client.connect();
  };
  try {
    await limited(scenario(open, url));
    return 'passed';
  } catch (error) {
    return error.stack ?? String(error);
  } finally {
    const living = connections.filter((connection) => !connection.closed);
    await Promise.all(living.map((connection) => connection.close().catch(() => {})));
  }
}

const report = {};
for (const [name, scenario] of Object.entries(scenarios)) {
  report[name] = await run(scenario, process.argv[2]);
}
process.stdout.write(JSON.stringify(report));
