// warren.js and compat.js in Node: runs every scenario against the hub given and prints one JSON
// object, with `passed` or the error of each.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';

import { HttpServer, Messaging } from '../../../static/js/compat.js';
import { WarrenError, publish, serve, stream, subscribe } from '../../../static/js/warren.js';

const SCENARIO_LIMIT_MS = 60_000;
const [hub] = process.argv.slice(2);
const auth = `Basic ${btoa('guest:guest')}`;
const base = { hub, auth };
let numbers = 0;

/** A new exchange. */
async function exchange(type = 'topic') {
  const name = `node-${process.pid}-${numbers++}`;
  const url = `${hub}endpoint/x/${name}?amqp.exchange_type=${type}`;
  assert.equal((await fetch(url, { method: 'PUT', headers: { authorization: auth } })).status, 201);
  return `x/${name}`;
}

/** Asks a public URL; Node may not know names below `localhost`. */
function ask(url, init = {}) {
  const { host, pathname, search, port } = new URL(url);
  return new Promise((resolve, reject) => {
    import('node:http').then(({ request }) => {
      const headers = { host, ...init.headers };
      const sent = request({ host: '127.0.0.1', port, path: pathname + search, ...init, headers }, async (answer) => {
        const parts = [];
        for await (const part of answer) parts.push(part);
        resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) });
      });
      sent.on('error', reject);
      sent.end(init.body);
    });
  });
}

function queue() {
  const found = [];
  let wake = () => {};
  return {
    push: (item) => (found.push(item), wake()),
    async next() {
      while (!found.length) await new Promise((done) => (wake = done));
      return found.shift();
    },
  };
}

const scenarios = {
  async 'a request reaches the handler as it was sent'() {
    const octets = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    let seen;
    const tunnel = await serve(base, async (request, { client }) => {
      seen = { method: request.method, url: request.url, client, header: request.headers.get('x-mine') };
      return new Response(await request.arrayBuffer(), { status: 201, headers: { 'x-its': 'yes' } });
    });
    const answer = await ask(`${tunnel.url}a/b?c=d`, { method: 'PUT', body: octets, headers: { 'x-mine': 'me' } });
    assert.equal(seen.method, 'PUT');
    assert.equal(seen.url, `${tunnel.url}a/b?c=d`);
    assert.match(seen.client, /^127\.0\.0\.1:\d+$/);
    assert.equal(seen.header, 'me');
    assert.deepEqual([answer.status, answer.headers['x-its']], [201, 'yes']);
    assert.deepEqual(answer.body, octets);
    await tunnel.close();
    await tunnel.closed;
    assert.equal((await ask(tunnel.url)).status, 410);
  },

  async 'requests are handled at the same time, HEAD and 204 without a body'() {
    let release;
    const held = new Promise((done) => (release = done));
    const tunnel = await serve(base, async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === '/slow') await held;
      if (pathname === '/none') return new Response(null, { status: 204 });
      return new Response(pathname);
    });
    const slow = ask(`${tunnel.url}slow`);
    assert.equal(String((await ask(`${tunnel.url}fast`)).body), '/fast');
    assert.equal((await ask(`${tunnel.url}none`)).status, 204);
    const head = await ask(`${tunnel.url}head`, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '5', 0]);
    release();
    assert.equal(String((await slow).body), '/slow');
    await tunnel.close();
  },

  async 'a handler that throws answers 500, and the next request is served'() {
    const failed = console.error;
    console.error = () => {};
    const tunnel = await serve(base, (request) => {
      if (request.url.endsWith('bad')) throw new Error('on purpose');
      return new Response('good');
    });
    assert.equal((await ask(`${tunnel.url}bad`)).status, 500);
    assert.equal((await ask(`${tunnel.url}fine`)).status, 200);
    console.error = failed;
    await tunnel.close();
  },

  async 'another token for a label is refused, the same one renews it'() {
    const tunnel = await serve(base, () => new Response('first'));
    await assert.rejects(serve({ ...base, name: tunnel.name }, () => {}), (error) =>
      error instanceof WarrenError && error.status === 403 && error.message.includes('another token'));
    await tunnel.close();
    const again = await serve({ ...base, name: tunnel.name, token: tunnel.token }, () => new Response('again'));
    assert.equal(again.url, tunnel.url);
    assert.equal(String((await ask(again.url)).body), 'again');
    await again.close();
  },

  async 'a denial of the hub is told'() {
    const subscription = await subscribe({ ...base, source: await exchange() }, () => {});
    const lost = once(subscription, 'lost');
    const denial = '?hub.mode=denied&hub.topic=x&hub.reason=gone';
    assert.equal((await ask(subscription.callback + denial)).status, 204);
    assert.equal((await lost)[0].detail.message, 'gone');
    await subscription.tunnel.close();
  },

  async 'a denial in place of the challenge is an error'() {
    const tunnel = await serve(base, () => new Response(''));
    const path = '/news';
    const denial = `${tunnel.url}news?hub.mode=denied&hub.topic=x&hub.reason=not+for+you`;
    const other = createServer((request, response) => {
      response.writeHead(202).end();
      ask(denial);
    });
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const options = { hub: `http://127.0.0.1:${other.address().port}`, source: 'http://example.org/feed', tunnel, path };
    await assert.rejects(subscribe(options, () => {}), (error) =>
      error instanceof WarrenError && error.status === 403 && error.message === 'not for you');
    other.close();
    await tunnel.close();
  },

  async 'a label that somebody else closes stays closed'() {
    const tunnel = await serve(base, () => new Response(''));
    const headers = { authorization: auth };
    await fetch(`${hub}api/hub/tunnels/${tunnel.name}?block_s=0`, { method: 'DELETE', headers });
    await assert.rejects(tunnel.closed, { status: 410 });
    assert.equal((await ask(tunnel.url)).status, 410);
  },

  async 'a reply that the hub refuses is a 502, and others go on'() {
    let release;
    const held = new Promise((done) => (release = done));
    const tunnel = await serve(base, async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === '/slow') await held;
      return { '/none': Response.error(), '/long': new Response(new Uint8Array(3e6)) }[pathname] ?? new Response('well');
    });
    const slow = ask(`${tunnel.url}slow`);
    for (const [path, reason] of [['none', 'Invalid status code'], ['long', 'more than']]) {
      const answer = await ask(tunnel.url + path);
      assert.equal(answer.status, 502);
      assert.match(String(answer.body), new RegExp(reason));
    }
    release();
    assert.equal(String((await slow).body), 'well');
    assert.equal(String((await ask(tunnel.url)).body), 'well');
    await tunnel.close();
  },

  async 'requests that are being handled are answered after close'() {
    let release;
    const held = new Promise((done) => (release = done));
    const begun = queue();
    const tunnel = await serve(base, async () => (begun.push(), await held, new Response('late')));
    const slow = ask(tunnel.url);
    await begun.next();
    await tunnel.close();
    await tunnel.closed;
    release();
    assert.equal(String((await slow).body), 'late');
  },

  async 'an abort closes a tunnel'() {
    const stop = new AbortController();
    const tunnel = await serve({ ...base, signal: stop.signal }, () => new Response(''));
    stop.abort();
    await tunnel.closed;
    await assert.rejects(serve({ ...base, signal: stop.signal }, () => {}), { name: 'AbortError' });
  },

  async 'a subscription gets what is published, and a failed delivery again'() {
    const source = await exchange();
    const messages = queue();
    let failures = 0;
    const subscription = await subscribe({ ...base, source, key: 'eu.#' }, (message) => {
      if (message.body === 'twice' && failures++ === 0) throw new Error('not yet');
      messages.push(message);
    });
    const failed = console.error;
    console.error = () => {};
    await publish({ ...base, to: source, key: 'eu.fr' }, 'Bonjour');
    const { id, ...rest } = await messages.next();
    assert.ok(id);
    assert.deepEqual(rest, {
      exchange: source.slice(2), routing_key: 'eu.fr', content_type: 'text/plain', body: 'Bonjour' });
    await publish({ ...base, to: source, key: 'eu' }, new Uint8Array([255, 0, 1]));
    assert.deepEqual((await messages.next()).body, new Uint8Array([255, 0, 1]));
    await publish({ ...base, to: source, key: 'eu' }, { a: 1 });
    assert.deepEqual(JSON.parse((await messages.next()).body), { a: 1 });
    await publish({ ...base, to: source, key: 'eu' }, 'twice');
    assert.equal((await messages.next()).body, 'twice');
    assert.equal(failures, 2);
    console.error = failed;
    await subscription.unsubscribe();
    await subscription.tunnel.closed;
  },

  async 'a subscription at the hub, by the URL of the topic'() {
    const source = await exchange('fanout');
    const messages = queue();
    const topic = `${hub}endpoint/${source}`;
    const subscription = await subscribe({ ...base, source: topic }, messages.push);
    // The hub subscribes after the answer to its challenge, and does not say when it has.
    const again = setInterval(() => publish({ ...base, to: source }, 'over WebSub'), 100);
    assert.equal((await messages.next()).body, 'over WebSub');
    clearInterval(again);
    await subscription.unsubscribe();
  },

  async 'a challenge that nobody asked for is refused'() {
    const source = await exchange();
    const subscription = await subscribe({ ...base, source }, () => {});
    const question = `${subscription.callback}?hub.mode=unsubscribe&hub.challenge=x`;
    assert.equal((await ask(question)).status, 404);
    await subscription.unsubscribe();
  },

  async 'a stream yields messages until it is left'() {
    const from = await exchange();
    let opened;
    const open = new Promise((done) => (opened = done));
    open.then(async () => {
      await publish({ ...base, to: from, key: 'a.b', headers: { mine: 'yes' } }, 'first');
      await publish({ ...base, to: from, key: 'a' }, new Uint8Array([255, 1]));
    });
    const found = [];
    for await (const message of stream({ ...base, from, key: ['a.#', 'c'], onopen: opened })) {
      found.push(message);
      if (found.length === 2) break;
    }
    assert.deepEqual(found.map((message) => message.routing_key), ['a.b', 'a']);
    assert.deepEqual(found.map((message) => message.body), ['first', new Uint8Array([255, 1])]);
    assert.equal(found[0].headers.mine, 'yes');
  },

  async 'a message of a queue comes again until it is acknowledged'() {
    const from = `q/node-${process.pid}-${numbers++}`;
    const headers = { authorization: auth };
    await fetch(`${hub}endpoint/${from}`, { method: 'PUT', headers });
    for (const body of ['1', '2', '3']) await publish({ ...base, to: from }, body);
    await assert.rejects(stream({ ...base, from }).next(), /use a token and WebSocket/);
    if (!('WebSocket' in globalThis)) {
      const { value } = await stream({ ...base, from, ack: 'auto' }).next();
      return assert.equal(value.body, '1');
    }
    const grant = { name: 'queue', scopes: [{ read: from }] };
    const made = await fetch(`${hub}api/hub/tokens`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(grant) });
    const options = { hub, auth: (await made.json()).token, from };
    const seen = [];
    for await (const message of stream(options)) if (seen.push(message) === 2) break; // before 2 is acknowledged
    for await (const message of stream(options)) {
      seen.push(message);
      if (message.body === '3') {
        message.ack();
        break;
      }
    }
    assert.deepEqual(seen.map(({ body, redelivered }) => [body, Boolean(redelivered)]), [['1', false], ['2', false], ['2', true], ['3', true]]);
    assert.equal(seen[1].id, seen[2].id);
    const count = async () => (await (await fetch(`${hub}api/queues/%2F/${from.slice(2)}`, { headers })).json()).messages;
    while (await count());
  },

  async 'a stream ends with an abort, and throws what is final'() {
    const stop = new AbortController();
    const from = await exchange();
    for await (const _ of stream({ ...base, from, signal: stop.signal, onopen: () => stop.abort() })) assert.fail();
    const missing = stream({ ...base, from: 'x/never-declared' });
    await assert.rejects(missing.next(), (error) => error instanceof WarrenError && error.status === 404);
    await assert.rejects(publish({ hub, auth: 'wrong', to: from }, ''), (error) => error.status === 401);
    await assert.rejects(publish({ to: from }, ''), TypeError);
  },

  async 'the old names: a server'() {
    const { url, server } = await new Promise((done) => {
      new HttpServer(`old-${process.pid}-http`, (request) => {
        if (request.rawPath === '/throw') throw new Error('on purpose');
        request.respond(200, 'OK', { 'x-old': 'yes' }, `${request.method} ${request.rawPath} ${request.body}`);
      }, { ...base, debug: () => {}, onLocationChanged: (location, it) => done({ url: location, server: it }) });
    });
    const answer = await ask(`${url}a?b`, { method: 'POST', body: 'c' });
    assert.equal(String(answer.body), 'post /a?b c');
    assert.equal(answer.headers['x-old'], 'yes');
    assert.equal((await ask(`${url}throw`)).status, 500);
    assert.equal(server.label, `old-${process.pid}-http`);
    server.stop();
  },

  async 'the old names: an endpoint and a driver'() {
    const source = await exchange();
    const messages = queue();
    const sink = {
      asked: [],
      check_action(...all) {
        return this.asked.push(all);
      },
      deliver: (...all) => messages.push(all),
    };
    const url = await new Promise((done) => {
      const server = new Messaging.Server(`old-${process.pid}`, { serverOptions: base, onLocationChanged: done });
      server.bindName('ep', new Messaging.EndpointFacet(sink));
      server.bindName('own', { get: (request, path, params, k) => k(200, `${path} ${params.a}`) });
    });
    assert.equal(String((await ask(`${url}own/b/c?a=d%20e`)).body), 'b/c d e');
    assert.equal((await ask(`${url}own`, { method: 'PUT' })).status, 501);
    const [, token0] = String((await ask(`${url}ep?hub.mode=generate_token&hub.intended_use=subscribe`)).body).split('=');
    const made = await fetch(`${hub}api/hub/tokens`, {
      method: 'POST',
      headers: { authorization: auth, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'old', scopes: [{ read: source }, { write: source }] }),
    });
    const { token } = await made.json();
    const remote = new Messaging.RemoteSource(`${hub}subscribe/${source}`, { auth: token });
    assert.equal(await new Promise((k) => remote.subscribe(`${url}ep`, '#', ['sync', 'async'], token0, k)), true);
    assert.deepEqual(sink.asked, [['subscribe', '']]);
    const target = new Messaging.RemoteEndpoint(`${hub}endpoint/${source}`, { auth: token });
    assert.equal(await new Promise((k) => target.deliver('a', 'old', 'text/plain', k)), true);
    assert.deepEqual(await messages.next(), ['a', 'text/plain', 'old']);
    assert.equal(await new Promise((k) => remote.subscribe(`${url}none`, '#', [], '', k)), false);
    const inbox = new Messaging.RemoteEndpoint(`${hub}endpoint/${source}`, { auth });
    assert.match(String(await inbox.generate_token('subscribe')), /^\S{8,}$/);
  },
};

const report = {};
for (const [name, scenario] of Object.entries(scenarios)) {
  const limit = new Promise((_, reject) => setTimeout(() => reject(new Error('too slow')), SCENARIO_LIMIT_MS).unref());
  report[name] = await Promise.race([scenario(), limit]).then(() => 'passed', (error) => error.stack);
}
console.log(JSON.stringify(report));
process.exit();
