/**
 * Warren for web pages and for Node 20 or newer, without dependencies and without a build step:
 * answer HTTP requests (`serve`), get messages pushed (`subscribe`), read them (`stream`), and
 * send them (`publish`). docs/browser.md explains each; types are in warren.d.ts.
 */

const LONGEST_PAUSE_MS = 30_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const REPLY_ATTEMPTS = 3;
const LARGE_BYTES = 65_536; // a longer reply is posted: as one message it would hold up all others

/** The hub that this module was loaded from; none if it was loaded from a file. */
const ownHub = import.meta.url.startsWith('http') ? new URL('..', import.meta.url).href : undefined;

/** The hub refused a request; `problem` is its problem document (RFC 9457). */
export class WarrenError extends Error {
  name = 'WarrenError';

  constructor(problem) {
    super(problem.detail || problem.title || `the hub answered ${problem.status}`);
    this.status = problem.status;
    this.problem = problem;
  }
}

/**
 * Makes this program a web server. Resolves with a `Tunnel` once its public URL works; requests
 * to that URL are passed to `handler`, which returns a standard Response.
 */
export async function serve(options, handler) {
  const tunnel = new Tunnel(options, handler);
  await tunnel.begin();
  return tunnel;
}

/** A public URL of this program. Events: `open`, `lost` (`detail` is the error), `close`. */
class Tunnel extends EventTarget {
  #options;
  #handler;
  #routes = new Map();
  #stop = new AbortController();
  #managed; // the Private URL, below which this label is managed
  #poll; // the Request URL to poll next; none when the label must be enrolled again
  #failures = 0; // in a row
  #isClosing = false;
  #ready = () => {}; // called when a connection or a poll waits for requests
  #hasLeft = false; // the page went away, and with it the label; it may come back from a cache
  #listens; // by WebSocket, of which a browser opens many; only six polls of a host run at a time

  constructor({ name = `page-${secret()}`, token = secret(), ...options }, handler) {
    super();
    this.name = name.toLowerCase();
    this.token = token;
    this.#options = options;
    this.#handler = handler;
    this.#listens = 'WebSocket' in globalThis && options.transport !== 'poll';
  }

  /** Enrols, then polls until it is closed. Resolves when the hub can pass requests on; rejects if
   * it can't be reached or refuses. */
  async begin() {
    const { signal } = this.#options;
    signal?.throwIfAborted();
    await this.#enrol();
    const ready = new Promise((resolve) => (this.#ready = resolve));
    const leave = () => {
      this.#hasLeft = true;
      navigator.sendBeacon(this.#managed, RELEASE());
    };
    signal?.addEventListener('abort', () => this.close(), { once: true });
    globalThis.addEventListener?.('pagehide', leave);
    this.closed = this.#run().finally(() => {
      globalThis.removeEventListener?.('pagehide', leave);
      this.dispatchEvent(new Event('close'));
    });
    this.closed.catch(() => {}); // who wants to know awaits it
    await Promise.race([ready, this.closed]);
  }

  /** Answers requests below one path by a handler of its own; returns the URL of that path. */
  route(path, handler) {
    this.#routes.set(path, handler);
    return this.url + path.slice(1);
  }

  /** Gives the label back. Requests that are being handled are still answered. */
  async close() {
    this.#isClosing = true;
    const post = { method: 'POST', body: RELEASE(), ...PLAIN };
    await fetch(this.#managed, post).catch(() => {}); // without the hub, the lease ends by itself
    this.#stop.abort();
  }

  async #run() {
    const { signal } = this.#stop;
    while (!this.#isClosing) {
      try {
        if (!this.#poll) await this.#enrol();
        await (this.#listens ? this.#listen(signal) : this.#next(signal));
        this.#failures = 0;
      } catch (error) {
        if (this.#isClosing) return;
        // 404: the hub has forgotten the label. 410: somebody has closed it, for good.
        if (isFinal(error) && error.status !== 404 && !this.#hasLeft) {
          this.#stop.abort();
          throw error;
        }
        if (this.#poll) this.dispatchEvent(new CustomEvent('lost', { detail: error }));
        this.#poll = undefined;
        await pause(this.#failures++, signal);
      }
    }
  }

  async #enrol() {
    const { name, token } = this;
    const { lease = 60 } = this.#options;
    const body = new URLSearchParams({ name, token, lease });
    const response = await call({ ...this.#options, signal: this.#stop.signal }, 'reversehttp', {
      method: 'POST',
      body,
    });
    this.url = link(response, 'related');
    this.#managed = response.headers.get('location');
    this.#poll = link(response, 'first');
    this.#hasLeft = false;
    this.dispatchEvent(new Event('open'));
  }

  /** Waits for one request. 204 says that none came: the same URL is polled again. */
  async #next(signal) {
    const at = this.#poll;
    const headers = { accept: 'message/http' };
    this.#ready();
    const response = await checked(await fetch(at, { headers, signal, ...PLAIN }));
    if (response.status === 204) return;
    const message = new Uint8Array(await response.arrayBuffer());
    this.#poll = link(response, 'next');
    this.#answer(at, message, response.headers.get('requesting-client'));
  }

  async #answer(at, message, client) {
    await this.#post(at, await this.#reply(message, client));
  }

  /** Posts a reply; if the hub can't pass it on, the requestor is told so. */
  async #post(at, body) {
    // As plain text, since browsers ask for permission to send another site other types.
    const post = { method: 'POST', body, headers: { 'content-type': 'text/plain' }, ...PLAIN };
    for (let attempt = 1; attempt <= REPLY_ATTEMPTS; attempt++) {
      const failure = await fetch(at, post).then(checked).then(() => null, (error) => error);
      if (isUnfit(failure)) post.body = await badGateway(failure.message);
      else if (!failure || isFinal(failure)) return;
      else await pause(attempt);
    }
  }

  /** Takes requests from a WebSocket until that ends. If it can't be opened, polls are next. */
  #listen(signal) {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(this.#poll.replace('http', 'ws'));
      const end = () => socket.close();
      let reason = new TypeError('the hub ended the connection');
      let hasOpened = false;
      signal.addEventListener('abort', end);
      socket.onopen = () => {
        hasOpened = true;
        this.#failures = 0;
        this.#ready();
      };
      const send = (id, reply) => {
        if (reply.length > LARGE_BYTES || socket.readyState !== WebSocket.OPEN)
          this.#post(`${this.#managed}/${id}`, reply);
        else socket.send(JSON.stringify({ id, message: toBase64(reply) }));
      };
      socket.onmessage = async ({ data }) => {
        const { id, client, message, error } = JSON.parse(data);
        if (message !== undefined) send(id, await this.#reply(fromBase64(message), client));
        else if (!id) reason = new WarrenError(error);
        else if (isUnfit(error)) send(id, await badGateway(error.detail));
      };
      socket.onclose = () => {
        signal.removeEventListener('abort', end);
        this.#listens = hasOpened;
        if (hasOpened) reject(reason);
        else resolve();
      };
    });
  }

  async #reply(message, client) {
    try {
      const request = readRequest(message, this.url);
      return await writeResponse(await this.#handle(request, { client }), request.method);
    } catch (error) {
      console.error(error);
      return writeResponse(new Response('the handler failed\n', { status: 500 }), 'GET');
    }
  }

  #handle(request, context) {
    const routed = this.#routes.get(new URL(request.url).pathname);
    return (routed ?? this.#handler)(request, context);
  }
}

/**
 * Subscribes this program to `source`, an exchange (`x/news`), a queue (`q/jobs`), or the URL of
 * a WebSub topic, by a tunnel. The hub delivers each message to `handler` and tries again if that
 * throws. Resolves when the hub has verified the subscription.
 */
export async function subscribe(options, handler) {
  const { source, vhost, key, lease, tunnel = await serve(options, notFound) } = options;
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const path = options.path ?? `/${secret()}`; // a secret: nobody else can deliver here
  const isUrl = /^https?:/.test(source);
  const target = isUrl ? 'hub' : resource('subscribe', source, vhost);
  let mode = 'subscribe';
  let waiting; // for the hub's question: how to settle that
  let timer;
  signal.addEventListener('abort', () => waiting?.reject(signal.reason));

  const ask = async () => {
    const challenged = new Promise((resolve, reject) => (waiting = { resolve, reject }));
    challenged.catch(() => {}); // the hub may have answered already
    const form = { 'hub.mode': mode, 'hub.callback': callback, 'hub.topic': isUrl ? source : key ?? '' };
    if (lease) form['hub.lease_seconds'] = lease;
    const headers = { accept: 'application/json' };
    const body = new URLSearchParams(form);
    const asked = mode === 'subscribe' ? { ...options, signal } : { ...options, signal: undefined };
    const response = await call(asked, target, { method: 'POST', body, headers });
    const seconds = response.status === 202 ? await challenged : (await response.json()).lease_seconds;
    waiting = undefined;
    clearTimeout(timer);
    if (mode === 'subscribe') timer = setTimeout(renew, Math.min(seconds * 800, LONGEST_TIMER_MS));
    timer?.unref?.();
  };
  const lost = (error) => subscription.dispatchEvent(new CustomEvent('lost', { detail: error }));
  const renew = () => ask().catch((error) => isFinal(error) && lost(error));
  const denied = (reason) => {
    const error = new WarrenError({ status: 403, detail: reason || 'the hub has denied the subscription' });
    clearTimeout(timer);
    if (waiting) waiting.reject(error);
    else lost(error);
    return new Response(null, { status: 204 });
  };
  const answer = async (request) => {
    const query = new URL(request.url).searchParams;
    if (request.method !== 'GET') {
      await handler(await delivered(request, query), request);
      return new Response(null, { status: 204 });
    }
    if (query.get('hub.mode') === 'denied') return denied(query.get('hub.reason'));
    if (query.get('hub.mode') !== mode) return notFound();
    waiting?.resolve(Number(query.get('hub.lease_seconds')));
    return new Response(query.get('hub.challenge'), { headers: { 'content-type': 'text/plain' } });
  };

  const callback = tunnel.route(path, answer);
  const subscription = Object.assign(new EventTarget(), {
    callback,
    source,
    tunnel,
    /** Ends the subscription, and its tunnel if that is its own. */
    async unsubscribe() {
      stop.abort();
      clearTimeout(timer);
      tunnel.removeEventListener('open', renew);
      mode = 'unsubscribe';
      await ask();
      if (!options.tunnel) await tunnel.close();
    },
  });
  try {
    await ask();
  } catch (error) {
    if (!options.tunnel) await tunnel.close();
    throw error;
  }
  tunnel.addEventListener('open', renew); // the hub may have lost it meanwhile
  return subscription;
}

/** Publishes to an exchange or a queue; resolves when the hub has confirmed. */
export async function publish(options, body) {
  const { to, vhost, key, headers = {} } = options;
  const isRaw = typeof body === 'string' || body instanceof Blob || ArrayBuffer.isView(body);
  const type = options.type ?? (typeof body === 'string' ? 'text/plain' : body.type)
    ?? (isRaw ? 'application/octet-stream' : 'application/json');
  const query = key === undefined ? '' : `?${new URLSearchParams({ 'hub.topic': key })}`;
  const fields = Object.entries(headers).map(([name, value]) => [`x-amqp-header-${name}`, value]);
  await call(options, resource('endpoint', to, vhost) + query, {
    method: 'POST',
    body: isRaw ? body : JSON.stringify(body),
    headers: [...fields, ['content-type', type]],
  });
}

/**
 * Reads the messages of an exchange or queue as they come, for ever: `for await (const message of
 * stream({ from: 'x/news' }))`. After a lost connection it goes on where it was; the first message
 * behind a gap says so in `gap`. An abort of `signal` ends it. A message of a queue is acknowledged
 * when the next one is asked for, or by its `ack()`; others return to the queue.
 */
export async function* stream(options) {
  const { onlost } = options;
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  let { cursor } = options;
  let gap;
  try {
    for (let failures = 0; !signal.aborted; ) {
      try {
        for await (const { event, id, data, ack } of connection({ ...options, cursor, signal })) {
          failures = 0;
          if (event === 'error') throw new WarrenError(data);
          if (id) cursor = id;
          if (event === 'gap') gap = data;
          else {
            yield { ...message(data), ...(gap && { gap }), ...(ack && { ack }) };
            gap = undefined;
            ack?.();
          }
        }
        throw new TypeError('the hub ended the connection');
      } catch (error) {
        if (signal.aborted) return;
        if (isFinal(error) || error instanceof NoAcks) throw error;
        onlost?.(error);
        await pause(failures++, signal);
      }
    }
  } finally {
    stop.abort();
  }
}

/** Yields the events of one connection. */
async function* connection(options) {
  const { from, vhost, key, cursor, ack, onopen } = options;
  const target = resource('stream', from, vhost);
  const query = new URLSearchParams([key ?? []].flat().map((one) => ['key', one]));
  if (cursor) query.set('cursor', cursor);
  else if (from.startsWith('q/') && ack !== 'auto') query.set('ack', 'manual');
  const response = await call(options, `${target}?${query}`, { headers: { accept: 'text/event-stream' } });
  // A stream needs no acknowledgements. Any other queue does, and nothing was taken from it.
  if (response.status === 204) {
    yield* acknowledged(options, target);
    return;
  }
  onopen?.();
  yield* events(response.body);
}

/** What a queue needs is missing. */
class NoAcks extends TypeError {}

/** Yields the messages of a queue, each with `ack`, over a WebSocket, which can't send a password. */
async function* acknowledged({ hub = ownHub, auth, prefetch = 100, signal, onopen }, target) {
  const [token, ...more] = auth.replace(/^bearer /i, '').split(' ');
  if (!('WebSocket' in globalThis) || more.length)
    throw new NoAcks("a queue needs acknowledgements: use a token and WebSocket, or { ack: 'auto' }, which loses what is under way when the connection breaks");
  const url = hubUrl(hub, `${target}?${new URLSearchParams({ ack: 'manual', prefetch, token })}`);
  const socket = new WebSocket(url.href.replace('http', 'ws'));
  const arrived = [];
  let wake = () => {};
  socket.onopen = () => onopen?.();
  socket.onmessage = ({ data }) => wake(arrived.push(JSON.parse(data)));
  socket.onclose = () => wake(arrived.push(null));
  const end = () => socket.close();
  signal.addEventListener('abort', end);
  const acking = (id) => () => {
    if (id && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ack: id }));
    id = undefined;
  };
  try {
    for (;;) {
      while (!arrived.length) await new Promise((resolve) => (wake = resolve));
      const data = arrived.shift();
      if (!data) return;
      if (data.refused !== undefined) console.warn(data.problem.detail); // it had gone back, and comes again
      else yield data.event ? { event: data.event, data: data.problem } : { data, ack: acking(data.id) };
    }
  } finally {
    signal.removeEventListener('abort', end);
    socket.close();
  }
}

/** A form, which a page may send to another site while it goes away. */
const RELEASE = () => new URLSearchParams({ release: 1 });

/** Never the browser's own credentials: a page has the rights that it was given. */
const PLAIN = { credentials: 'omit', cache: 'no-store' };

async function call({ hub = ownHub, auth, signal }, path, init) {
  const headers = new Headers(init.headers);
  if (auth) headers.set('authorization', auth.includes(' ') ? auth : `Bearer ${auth}`);
  return checked(await fetch(hubUrl(hub, path), { ...init, headers, signal, ...PLAIN }));
}

function hubUrl(hub, path) {
  if (!hub) throw new TypeError("name the hub: { hub: 'http://localhost:15672/' }");
  return new URL(path, hub.endsWith('/') ? hub : `${hub}/`);
}

async function checked(response) {
  if (response.ok) return response;
  const text = await response.text();
  const problem = { status: response.status, title: response.statusText };
  if (!/json/.test(response.headers.get('content-type'))) throw new WarrenError({ ...problem, detail: text.trim() });
  throw new WarrenError({ ...problem, ...JSON.parse(text) });
}

/** Whether it is of no use to try again. */
function isFinal(error) {
  const { status } = error;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Whether the hub can't pass a reply on. */
function isUnfit(error) {
  return [400, 413].includes(error?.status);
}

function badGateway(reason) {
  return writeResponse(new Response(`the answer can't be passed on: ${reason}\n`, { status: 502 }), 'GET');
}

/** Waits longer after each failure, with jitter so that clients of a restarted hub don't come at once. */
function pause(failures, signal) {
  const longest = Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures);
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, longest * (0.5 + Math.random() / 2));
    signal?.addEventListener('abort', end);
  });
}

/** 144 random bits, in characters that labels and URLs can hold. */
function secret() {
  const random = crypto.getRandomValues(new Uint8Array(18));
  return Array.from(random, (octet) => octet.toString(16).padStart(2, '0')).join('');
}

function link(response, relation) {
  const found = response.headers.get('link')?.match(`<([^>]*)>; rel="${relation}"`);
  if (!found) throw new TypeError(`the hub's answer lacks the link '${relation}': is that a Warren?`);
  return found[1];
}

/** `x/news` in a facet of the hub, such as `subscribe/x/news`. */
function resource(facet, name, vhost) {
  const parts = [...(vhost && vhost !== '/' ? [vhost] : []), facet, name[0], name.slice(2)];
  return parts.map(encodeURIComponent).join('/');
}

function notFound() {
  return new Response('there is nothing here\n', { status: 404 });
}

/** Reads `message/http` (RFC 9112 2.1) into a standard Request. */
function readRequest(message, publicUrl) {
  let end = 0;
  while (!(message[end] === 10 && message[end + 1] === 13 && message[end + 2] === 10)) end++;
  const head = Array.from(message.subarray(0, end), (octet) => String.fromCharCode(octet)).join('');
  const [start, ...lines] = head.trimEnd().split('\r\n');
  const [method, target] = start.split(' ');
  const base = new URL(publicUrl);
  const path = target.startsWith(base.pathname) ? target.slice(base.pathname.length - 1) : '/';
  const headers = new Headers(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
  const body = message.subarray(end + 3);
  const request = new Request(base.origin + path, {
    method,
    headers,
    body: body.length && !['GET', 'HEAD'].includes(method) ? body : undefined,
  });
  // Browsers leave out what a page may not send, such as cookies; a server wants to see them.
  return Object.defineProperty(request, 'headers', { value: headers });
}

async function writeResponse(response, method) {
  const body = new Uint8Array(await response.arrayBuffer());
  const isEmpty = [204, 304].includes(response.status);
  const lines = [`HTTP/1.1 ${response.status} ${response.statusText}`];
  for (const [name, value] of response.headers)
    if (!/^(content-length|transfer-encoding|connection)$/.test(name)) lines.push(`${name}: ${value}`);
  if (!isEmpty) lines.push(`content-length: ${body.length}`);
  const head = octetsOf(`${lines.join('\r\n')}\r\n\r\n`);
  if (isEmpty || method === 'HEAD') return head;
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  return whole;
}

/** A delivery of the hub, in the form of `stream`'s messages. */
async function delivered(request, query) {
  const field = (name) => request.headers.get(name) ?? undefined;
  return {
    id: field('webhook-id'),
    exchange: field('x-amqp-exchange') ?? '',
    routing_key: query.get('hub.topic') ?? field('x-amqp-routing-key'),
    content_type: field('content-type'),
    body: text(new Uint8Array(await request.arrayBuffer())),
  };
}

function message({ body_base64, ...rest }) {
  if (body_base64 === undefined) return rest;
  return { ...rest, body: fromBase64(body_base64) };
}

function fromBase64(text) {
  return octetsOf(atob(text));
}

function toBase64(octets) {
  return btoa(Array.from(octets, (octet) => String.fromCharCode(octet)).join(''));
}

/** Of a text whose characters are octets. */
function octetsOf(text) {
  return Uint8Array.from(text, (character) => character.charCodeAt());
}

/** UTF-8 as a string, anything else as it is. */
function text(octets) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(octets);
  } catch {
    return octets;
  }
}

/** Server-Sent Events (HTML 9.2), with one line of JSON each. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let read; !(read = await reader.read()).done; ) {
    const blocks = (rest + read.value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/)));
      if (fields.data) yield { ...fields, data: JSON.parse(fields.data) };
    }
  }
}
