// What an application with amqplib relies on; each function opens its own connections.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';

import amqplib from 'amqplib';

const PAYLOAD_BYTES = 131_072 - 8; // of a body frame, with the frame size both sides agree on

let numbers = 0;
const fresh = (word) => `${word}-node-${process.pid}-${++numbers}`;

/** A consumer whose messages are awaited one by one; a cancellation arrives as null. */
async function inbox(channel, queue, options = { noAck: true }) {
  const messages = [];
  const waiting = [];
  const { consumerTag } = await channel.consume(
    queue,
    (message) => (waiting.length > 0 ? waiting.shift()(message) : messages.push(message)),
    options,
  );
  const next = () =>
    messages.length > 0
      ? Promise.resolve(messages.shift())
      : new Promise((resolve) => waiting.push(resolve));
  const texts = async (count) => {
    const found = [];
    for (let index = 0; index < count; index += 1) found.push((await next()).content.toString());
    return found;
  };
  return { consumerTag, next, texts, waiting: messages };
}

async function exclusiveQueue(channel, options = {}) {
  const { queue } = await channel.assertQueue('', { exclusive: true, ...options });
  return queue;
}

const closedWith = (channel) => once(channel, 'error').then(([error]) => error);

export const scenarios = {
  async 'evan and anders follow tony'(open) {
    const channel = await (await open()).createChannel();
    const exchange = fresh('news');
    await channel.assertExchange(exchange, 'direct', { durable: false, autoDelete: true });
    const followers = [];
    for (let index = 0; index < 2; index += 1) {
      const queue = await exclusiveQueue(channel);
      await channel.bindQueue(queue, exchange, 'tony');
      followers.push(await inbox(channel, queue));
    }
    channel.publish(exchange, 'tony', Buffer.from('is at work'));
    channel.publish(exchange, 'evan', Buffer.from('is asleep'));
    channel.publish(exchange, 'tony', Buffer.from('is at home'));
    for (const follower of followers) {
      const message = await follower.next();
      assert.equal(message.content.toString(), 'is at work');
      assert.equal(message.fields.routingKey, 'tony');
      assert.equal(message.fields.exchange, exchange);
      assert.equal(message.fields.redelivered, false);
      assert.deepEqual(await follower.texts(1), ['is at home']);
    }
  },

  async 'the broker introduces itself'(open) {
    const connection = await open();
    const { capabilities, product, version } = connection.connection.serverProperties;
    assert.ok(product && version);
    for (const name of ['publisher_confirms', 'basic.nack', 'consumer_cancel_notify',
      'exchange_exchange_bindings', 'connection.blocked', 'per_consumer_qos']) {
      assert.equal(capabilities[name], true, name);
    }
  },

  async 'wrong logins and absent virtual hosts are refused'(_, url) {
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await assert.rejects(amqplib.connect(wrong.href), /403 \(ACCESS-REFUSED\)/);
    const absent = new URL(url);
    absent.pathname = '/nowhere';
    await assert.rejects(amqplib.connect(absent.href), /Expected ConnectionOpenOk; got <ConnectionClose/);
  },

  async 'properties and headers arrive as they were sent'(open) {
    const channel = await (await open()).createChannel();
    const queue = await exclusiveQueue(channel);
    const sent = {
      contentType: 'application/atom+xml', contentEncoding: 'identity', deliveryMode: 2,
      priority: 4, correlationId: 'c', replyTo: 'r', expiration: '60000', messageId: 'm',
      timestamp: 1_700_000_000, type: 't', userId: 'guest', appId: 'a',
      headers: {
        bool: true, int: -3, long: 2 ** 40, double: 0.5, text: 'grüße', nothing: null,
        list: [1, 'two', [3]], table: { deep: { deeper: 'x' } }, octets: Buffer.from([0, 206, 255]),
      },
    };
    channel.sendToQueue(queue, Buffer.from('body'), sent);
    const { content, properties } = await (await inbox(channel, queue)).next();
    assert.equal(content.toString(), 'body');
    for (const [name, value] of Object.entries(sent)) {
      assert.deepEqual({ ...properties }[name], value, name);
    }
  },

  async 'bodies of all sizes'(open) {
    const channel = await (await open()).createChannel();
    const queue = await exclusiveQueue(channel);
    const received = await inbox(channel, queue);
    const sizes = [0, 1, 5_000_000];
    for (const frames of [1, 2]) {
      for (const more of [-8, -1, 0, 1]) sizes.push(frames * PAYLOAD_BYTES + more);
    }
    for (const size of sizes) {
      const body = randomBytes(size);
      channel.sendToQueue(queue, body);
      assert.ok((await received.next()).content.equals(body), `${size} octets`);
    }
  },

  async 'a thousand confirms'(open) {
    const channel = await (await open()).createConfirmChannel();
    const queue = await exclusiveQueue(channel);
    let confirmed = 0;
    for (let number = 0; number < 1000; number += 1) {
      channel.sendToQueue(queue, Buffer.from(String(number)), { persistent: number % 2 === 0 },
        (error) => { confirmed += error === null ? 1 : 0; });
    }
    await channel.waitForConfirms();
    assert.equal(confirmed, 1000);
    assert.equal((await channel.checkQueue(queue)).messageCount, 1000);
    const received = await inbox(channel, queue);
    assert.deepEqual(await received.texts(1000), Array.from({ length: 1000 }, (_, n) => String(n)));
  },

  async 'a return comes before its confirm'(open) {
    const channel = await (await open()).createConfirmChannel();
    const events = [];
    channel.on('return', (message) => {
      events.push([message.fields.replyCode, message.fields.replyText, message.content.toString()]);
    });
    channel.publish('amq.direct', fresh('nobody'), Buffer.from('is at work'), { mandatory: true },
      (error) => events.push(['confirmed', error]));
    await channel.waitForConfirms();
    assert.deepEqual(events, [[312, 'NO_ROUTE', 'is at work'], ['confirmed', null]]);
  },

  async 'a full queue says nack'(open) {
    const channel = await (await open()).createConfirmChannel();
    const queue = await exclusiveQueue(channel, {
      maxLength: 1, arguments: { 'x-overflow': 'reject-publish' },
    });
    channel.sendToQueue(queue, Buffer.from('1'));
    await channel.waitForConfirms();
    await assert.rejects(new Promise((resolve, reject) => {
      channel.sendToQueue(queue, Buffer.from('2'), {}, (error) => (error ? reject(error) : resolve()));
    }), /nack/);
    assert.equal((await channel.get(queue, { noAck: true })).content.toString(), '1');
    assert.equal(await channel.get(queue, { noAck: true }), false);
  },

  async 'ack, nack, reject and prefetch'(open) {
    const channel = await (await open()).createConfirmChannel();
    const queue = await exclusiveQueue(channel);
    for (let number = 0; number < 6; number += 1) channel.sendToQueue(queue, Buffer.from(`${number}`));
    await channel.waitForConfirms();
    await channel.prefetch(2);
    const received = await inbox(channel, queue, {});
    const first = await received.next();
    const second = await received.next();
    assert.equal((await channel.checkQueue(queue)).messageCount, 4);
    channel.nack(second, false, true);
    const again = await received.next();
    assert.deepEqual([again.content.toString(), again.fields.redelivered], ['1', true]);
    channel.ack(first);
    channel.reject(again, false);
    assert.deepEqual(await received.texts(2), ['2', '3']);
    channel.ackAll();
    assert.deepEqual(await received.texts(2), ['4', '5']);
    channel.nackAll(false);
    const { messageCount, consumerCount } = await channel.checkQueue(queue);
    assert.deepEqual([messageCount, consumerCount], [0, 1]);
    await channel.cancel(received.consumerTag);
    assert.equal((await channel.checkQueue(queue)).consumerCount, 0);
  },

  async 'recover delivers again'(open) {
    const channel = await (await open()).createChannel();
    const queue = await exclusiveQueue(channel);
    const received = await inbox(channel, queue, {});
    channel.sendToQueue(queue, Buffer.from('once'));
    assert.equal((await received.next()).fields.redelivered, false);
    await channel.recover();
    const again = await received.next();
    assert.deepEqual([again.content.toString(), again.fields.redelivered], ['once', true]);
  },

  async 'dead letters of a retry queue'(open) {
    const channel = await (await open()).createChannel();
    const work = fresh('work');
    const waiting = fresh('waiting');
    await channel.assertQueue(work, {
      exclusive: true, deadLetterExchange: '', deadLetterRoutingKey: waiting,
    });
    await channel.assertQueue(waiting, {
      exclusive: true, deadLetterExchange: '', deadLetterRoutingKey: work, messageTtl: 20,
    });
    const received = await inbox(channel, work, {});
    channel.sendToQueue(work, Buffer.from('try me'));
    for (let round = 0; round < 2; round += 1) channel.nack(await received.next(), false, false);
    const { content, properties } = await received.next();
    assert.equal(content.toString(), 'try me');
    assert.deepEqual(
      properties.headers['x-death'].map((death) => [death.queue, death.reason, death.count]),
      [[waiting, 'expired', 2], [work, 'rejected', 2]],
    );
    assert.equal(properties.headers['x-first-death-reason'], 'rejected');
  },

  async 'topic, headers and exchange to exchange'(open) {
    const channel = await (await open()).createChannel();
    const [outer, inner] = [fresh('outer'), fresh('inner')];
    await channel.assertExchange(outer, 'topic', { durable: false });
    await channel.assertExchange(inner, 'headers', { durable: false });
    await channel.bindExchange(inner, outer, 'tony.#');
    const queue = await exclusiveQueue(channel);
    await channel.bindQueue(queue, inner, '', { 'x-match': 'any', mood: 'busy', place: 'work' });
    for (const [key, headers] of [
      ['tony.status', { mood: 'busy' }], ['tony.status', { mood: 'idle' }],
      ['evan.status', { mood: 'busy' }], ['tony', { place: 'work' }],
    ]) channel.publish(outer, key, Buffer.from(`${key} ${JSON.stringify(headers)}`), { headers });
    const received = await inbox(channel, queue);
    assert.deepEqual(await received.texts(2), ['tony.status {"mood":"busy"}', 'tony {"place":"work"}']);
    await channel.unbindExchange(inner, outer, 'tony.#');
    channel.publish(outer, 'tony.status', Buffer.from('unbound'), { headers: { mood: 'busy' } });
    assert.equal(await channel.get(queue), false);
    for (const exchange of [outer, inner]) await channel.deleteExchange(exchange);
  },

  async 'direct reply-to'(open) {
    const connection = await open();
    const [server, client] = [await connection.createChannel(), await connection.createChannel()];
    const queue = await exclusiveQueue(server);
    await server.consume(queue, (question) => {
      assert.match(question.properties.replyTo, /^amq\.rabbitmq\.reply-to\..+/);
      server.sendToQueue(question.properties.replyTo, question.content.reverse(),
        { correlationId: question.properties.correlationId });
    }, { noAck: true });
    const answers = await inbox(client, 'amq.rabbitmq.reply-to');
    for (let number = 0; number < 20; number += 1) {
      client.sendToQueue(queue, Buffer.from(`${number}?`),
        { replyTo: 'amq.rabbitmq.reply-to', correlationId: String(number) });
    }
    for (let number = 0; number < 20; number += 1) {
      const { content, properties } = await answers.next();
      const expected = [...`${number}?`].reverse().join('');
      assert.deepEqual([properties.correlationId, content.toString()], [String(number), expected]);
    }
  },

  async 'the end of a queue cancels its consumer'(open) {
    const [channel, other] = [await (await open()).createChannel(), await (await open()).createChannel()];
    const { queue } = await channel.assertQueue(fresh('queue'), { durable: false });
    const received = await inbox(channel, queue);
    await other.deleteQueue(queue);
    assert.equal(await received.next(), null);
  },

  async 'channel errors stay on their channel'(open) {
    const connection = await open();
    const [sound, broken] = [await connection.createChannel(), await connection.createChannel()];
    const error = closedWith(broken);
    await assert.rejects(broken.checkQueue('no.queue'), /404/);
    assert.match((await error).message, /NOT_FOUND - no queue 'no.queue' in vhost '\/'/);
    const queue = await exclusiveQueue(sound);
    sound.sendToQueue(queue, Buffer.from('sound'));
    assert.equal((await sound.get(queue, { noAck: true })).content.toString(), 'sound');

    const acking = await connection.createChannel();
    const twice = closedWith(acking);
    acking.ack({ fields: { deliveryTag: 42 } });
    assert.match((await twice).message, /unknown delivery tag 42/);
    assert.equal((await sound.checkQueue(queue)).messageCount, 0);
  },

  async 'refusals of declare'(open) {
    const connection = await open();
    const name = fresh('queue');
    await (await connection.createChannel()).assertQueue(name, { durable: false, exclusive: true });
    const refused = async (act, pattern) => {
      const channel = await connection.createChannel();
      const error = closedWith(channel);
      await assert.rejects(act(channel), pattern);
      await error;
    };
    await refused((channel) => channel.assertQueue(name, { exclusive: true, messageTtl: 5 }),
      /406.*inequivalent arg 'x-message-ttl'/s);
    await refused((channel) => channel.assertQueue('amq.mine'), /403.*reserved prefix/s);
    await refused((channel) => channel.checkExchange('no.exchange'), /404.*no exchange/s);
    await refused((channel) => channel.bindQueue(name, 'no.exchange', ''), /404.*no exchange/s);
    const stranger = await (await open()).createChannel();
    const error = closedWith(stranger);
    await assert.rejects(stranger.checkQueue(name), /405/);
    assert.match((await error).message, /cannot obtain exclusive access to locked queue/);
  },

  async 'two hundred channels at once'(open) {
    const connection = await open();
    const channels = await Promise.all(Array.from({ length: 200 }, () => connection.createChannel()));
    const queues = await Promise.all(channels.map((channel) => exclusiveQueue(channel)));
    const inboxes = await Promise.all(channels.map((channel, n) => inbox(channel, queues[n])));
    channels.forEach((channel, n) => channel.sendToQueue(queues[(n + 1) % 200], Buffer.from(`${n}`)));
    const found = await Promise.all(inboxes.map((received) => received.texts(1)));
    assert.deepEqual(found, inboxes.map((_, n) => [String((n + 199) % 200)]));
  },

  async 'channels and frames that are agreed on'(open) {
    const connection = await open();
    assert.equal(connection.connection.channelMax, 2047);
    assert.equal(connection.connection.frameMax, 131_072);
  },
};
