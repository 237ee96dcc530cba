/**
 * The names that pages written for ReverseHttp's `httpd.js` and `messaging.js` use, on warren.js.
 * Bodies are text and header names lower case, as they were there. What took a callback still does,
 * and returns a promise of the same result.
 */

import { serve } from './warren.js';

const TOKEN_LASTS_S = 300;
const REASONS = { 200: 'OK', 204: 'No Content', 400: 'Bad Request', 404: 'Not Found', 500: 'Internal Server Error', 501: 'Not Implemented' };
let standardHub;

/** Makes another gateway, such as `https://hub.example/reversehttp`, that of later servers. */
export function switchAccessPoint(url) {
  standardHub = new URL(url).href.replace(/reversehttp\/?$/, '');
}

/** A page as a web server: `handler(request)` answers by `request.respond`; 500 if it throws. */
export class HttpServer {
  #stop = new AbortController();

  constructor(label, handler, { token, hub = standardHub, auth, onLocationChanged, debug, log = debug ?? console.error } = {}) {
    this.label = label;
    this.location = null;
    const given = token && token !== '-' ? { token } : {}; // `-` was the default that anybody knew
    serve({ name: label, hub, auth, ...given, signal: this.#stop.signal }, async (request, { client }) => {
      const body = await request.text();
      return new Promise((resolve) => {
        const failed = (error) => {
          log(error);
          resolve(new Response('the handler failed\n', { status: 500 }));
        };
        try {
          handler(oldRequest(request, body, client, resolve))?.catch?.(failed);
        } catch (error) {
          failed(error);
        }
      });
    }).then((tunnel) => {
      this.location = tunnel.url;
      onLocationChanged?.(tunnel.url, this);
    }, log);
  }

  stop() {
    this.#stop.abort();
  }
}

function oldRequest(request, body, client, resolve) {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method.toLowerCase(),
    rawPath: pathname + search,
    httpVersion: '1.1',
    headers: Object.fromEntries(request.headers),
    body,
    context: { requestingClient: client },
    respond(status, statusText, headers = {}, text = '') {
      const isEmpty = [204, 304].includes(status);
      resolve(new Response(isEmpty ? null : text, { status, statusText, headers }));
    },
  };
}

export class HttpResponse {
  constructor(status, text, headers, body, httpVersion = '1.1') {
    Object.assign(this, { status, text, headers, body, httpVersion });
  }

  isOk() {
    return this.status >= 200 && this.status < 300;
  }
}

/**
 * A request to another site; it goes there directly, where it went through a relay. Calls
 * `onComplete(response, relay, status)`, or `onError(null, relay, status)` without an answer.
 */
export class HttpRelay {
  constructor(method, url, headers, body, { onComplete, onError } = {}) {
    this.response = null;
    fetch(url, { method, headers, body: body || undefined, credentials: 'omit' })
      .then(async (answer) => {
        const found = Object.fromEntries(answer.headers);
        this.response = new HttpResponse(answer.status, answer.statusText, found, await answer.text());
      })
      .then(() => onComplete?.(this.response, this, this.response.status), () => onError?.(null, this, 0));
  }
}

/** A URL, or a part of one, by its parts. */
export class Url {
  constructor(text = '') {
    this.url = String(text);
    const parts = this.url.match(
      /^(?:([a-z][\w+.-]*):)?(?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^:/?#]*)(?::(\d+))?)?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/is);
    [, this.protocol, this.username, this.password, this.host = '', this.port,
      this.pathname, this.querystring = '', this.fragment = ''] = parts;
  }

  getHostPort() {
    return this.port ? `${this.host}:${this.port}` : this.host;
  }

  getPathQuery() {
    return this.querystring ? `${this.pathname}?${this.querystring}` : this.pathname;
  }

  toString() {
    return this.url;
  }
}

/** The fields of a query: `true` for a name alone, a list for a name that is there repeatedly. */
export function parse_qs(query) {
  const found = {};
  for (const field of query ? query.split('&') : []) {
    const [name, ...value] = field.split('=');
    const [key, text] = [decoded(name), value.length ? decoded(value.join('=')) : true];
    found[key] = key in found ? [found[key], text].flat() : text;
  }
  return found;
}

export function unparse_qs(fields) {
  return Object.entries(fields)
    .flatMap(([name, value]) => [value].flat().map((one) => `${encodeURIComponent(name)}=${encodeURIComponent(one)}`))
    .join('&');
}

function decoded(text) {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

/**
 * Passes requests on to objects by the first part of the path: to their method of the name of the
 * HTTP method, in lower case, or else to `FALLBACK`. These get the request, the rest of the path,
 * the fields of the query, and `k(status, body, contentType)`, which answers.
 */
class Server {
  #facets = new Map();

  constructor(label, { serverOptions, onLocationChanged, ...options } = {}) {
    this.delegationLabel = label;
    this.server = new HttpServer(label, (request) => this.#handle(request), {
      ...options,
      ...serverOptions,
      onLocationChanged: (location) => {
        this.location = new Url(location);
        onLocationChanged?.(location, this);
      },
    });
  }

  bindName(name, facet) {
    this.#facets.set(name, facet);
  }

  unbindName(name) {
    this.#facets.delete(name);
  }

  stop() {
    this.server.stop();
  }

  #handle(request) {
    const { pathname, querystring } = new Url(request.rawPath.slice(1));
    const [name, ...rest] = pathname.split('/');
    const k = (status, body, type = 'text/plain') =>
      request.respond(status, REASONS[status] ?? '', status === 204 ? {} : { 'content-type': type }, body ?? REASONS[status]);
    const facet = this.#facets.get(name) ?? this.#facets.get('');
    if (!facet) return k(404);
    const method = facet[request.method] ? request.method : 'FALLBACK';
    if (!facet[method]) return k(501);
    return facet[method](request, this.#facets.has(name) ? rest.join('/') : pathname, parse_qs(querystring), k);
  }
}

/** Answers a hub's question if `sink.check_action` agrees; passes what comes to `sink.deliver`. */
class EndpointFacet {
  constructor(sink) {
    this.sink = sink;
  }

  get(request, path, params, k) {
    const mode = params['hub.mode'];
    if (!mode) return k(200, 'Endpoint facet');
    if (mode === 'generate_token') {
      const token = this.generate_token(path, params['hub.intended_use']);
      return k(200, `hub.verify_token=${token}`, 'application/x-www-form-urlencoded');
    }
    if (mode !== 'subscribe' && mode !== 'unsubscribe') return k(501);
    const token = params['hub.verify_token'];
    const agrees = token ? this.check_token(token, path, mode) : this.sink.check_action(mode, path);
    return agrees ? k(200, String(params['hub.challenge'] ?? '')) : k(400);
  }

  post(request, path, params, k) {
    this.sink.deliver(params['hub.topic'] ?? '', request.headers['content-type'], request.body);
    k(204);
  }

  /** Unsigned, as it was: it tells the hub's question for one from others, and is no secret. */
  generate_token(path, use) {
    return `${Date.now()}:${use}:${path}`;
  }

  check_token(token, path, use) {
    const [madeAt, meantFor, ...place] = token.split(':');
    const isNew = Date.now() - Number(madeAt) <= TOKEN_LASTS_S * 1000;
    return isNew && meantFor === use && place.join(':') === path && this.sink.check_action(use, path);
  }
}

/** A resource of a hub, or an endpoint of a page, to which messages are posted. */
class RemoteEndpoint {
  constructor(url, { auth } = {}) {
    Object.assign(this, { url, auth });
  }

  /** `k` gets the token; null if there is none. */
  async generate_token(use, k) {
    const reply = await ask(this, 'GET', { 'hub.mode': 'generate_token', 'hub.intended_use': use });
    return told(k, (reply?.isOk() && reply.body.match(/^hub\.verify_token=(.*)$/)?.[1]) || null);
  }

  /** `k` gets whether the endpoint takes the token. */
  async check_token(token, use, k) {
    const challenge = String(Date.now());
    const query = { 'hub.mode': use, 'hub.challenge': challenge, 'hub.verify_token': token ?? '' };
    const reply = await ask(this, 'GET', query);
    return told(k, Boolean(reply?.isOk()) && reply.body === challenge);
  }

  /** `k` gets whether the message was taken. */
  async deliver(topic, body, contentType, k) {
    const reply = await ask(this, 'POST', { 'hub.topic': topic }, body, contentType);
    return told(k, Boolean(reply?.isOk()));
  }
}

/** A resource of a hub that can be subscribed to; `k` gets whether the hub agrees. */
class RemoteSource {
  constructor(url, { auth } = {}) {
    Object.assign(this, { url, auth });
  }

  subscribe(...given) {
    return this.#ask('subscribe', ...given);
  }

  unsubscribe(...given) {
    return this.#ask('unsubscribe', ...given);
  }

  async #ask(mode, callback, topic, verifyModes = [], token = '', k = undefined) {
    const form = { 'hub.mode': mode, 'hub.callback': callback, 'hub.topic': topic };
    if (verifyModes.length) form['hub.verify'] = verifyModes;
    if (token) form['hub.verify_token'] = token;
    const reply = await ask(this, 'POST', {}, unparse_qs(form), 'application/x-www-form-urlencoded');
    return told(k, Boolean(reply?.isOk()));
  }
}

/** Resolves with the answer, undefined if there is none. */
function ask({ url, auth }, method, query, body, type) {
  const headers = type ? { 'content-type': type } : {};
  if (auth) headers.authorization = auth.includes(' ') ? auth : `Bearer ${auth}`;
  const fields = unparse_qs(query);
  return new Promise((resolve) => {
    new HttpRelay(method, fields ? `${url}?${fields}` : url, headers, body, { onComplete: resolve, onError: () => resolve() });
  });
}

function told(k, result) {
  k?.(result);
  return result;
}

export const Messaging = { Server, EndpointFacet, RemoteEndpoint, RemoteSource };
