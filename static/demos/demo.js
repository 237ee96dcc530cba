/** What the demos share besides warren.js: signing in, showing a state, making elements. */

export const hub = new URL('..', import.meta.url).href;
const isFromDisk = location.protocol === 'file:';
const TOKEN_LASTS_S = 8 * 3600;

/** Makes an element. Texts become text, never markup. */
export function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Says in the element `#state` what is going on: `on`, `wait` or `off`, and a word. */
export function show(is, word) {
  const state = document.querySelector('#state');
  state.dataset.is = is;
  state.textContent = word;
}

/** Keeps `#state` true of a tunnel. */
export function follow(tunnel) {
  show('on', 'Connected');
  tunnel.addEventListener('open', () => show('on', 'Connected'));
  tunnel.addEventListener('lost', () => show('wait', 'Reconnecting'));
  tunnel.closed.then(() => show('off', 'Closed'), (error) => {
    show('off', 'Closed');
    refused(error);
  });
}

/**
 * Says that something does not work. If the hub refuses the token, it is forgotten, and the reader
 * signs in again.
 */
export function refused(error) {
  if (error.status === 401 || error.status === 403) {
    show('off', 'Signed out');
    sessionStorage.removeItem(wanted.resource);
    ask(error.message);
  } else {
    const problem = document.querySelector('#problem')
      ?? make('output', { id: 'problem', className: 'problem', role: 'alert' });
    problem.textContent = error.message;
    document.querySelector('main').prepend(problem);
  }
}

/** Takes back what `refused` has said. */
export function works() {
  document.querySelector('#problem')?.remove();
}

/** A command and a button that copies it. */
export function command(text) {
  const copy = make('button', { type: 'button', className: 'plain small', textContent: 'Copy' });
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = 'Copied';
    setTimeout(() => (copy.textContent = 'Copy'), 1500);
  });
  return make('div', { className: 'command' }, make('pre', {}, text), copy);
}

export function clock() {
  const now = new Date();
  return make('time', { dateTime: now.toISOString(), className: 'quiet' }, now.toLocaleTimeString());
}

/** Puts a row at the top of a list, which keeps its first hundred. */
export function record(list, ...children) {
  list.parentElement.querySelector('.empty')?.remove();
  list.prepend(make('li', {}, ...children));
  if (list.children.length > 100) list.lastChild.remove();
}

/**
 * Resolves with `auth`, a token that may read and write the resource given, such as `x/chat`, and
 * `name`, the label that the reader has chosen if `isServer`. A page of the hub asks for user and
 * password, declares a missing exchange of this `type`, and makes a token; a page from the disk,
 * which the hub can't tell from a stranger's, asks for a token.
 */
export async function signIn(resource, { type = 'topic', isServer = false } = {}) {
  wanted = { resource, type, isServer };
  return JSON.parse(sessionStorage.getItem(resource)) ?? ask('');
}

let wanted;

function ask(reason) {
  const place = document.querySelector('#sign-in');
  const problem = make('output', { className: 'problem', role: 'alert' }, reason);
  const button = make('button', {}, 'Connect');
  const fields = isFromDisk
    ? [field('Token', { name: 'token', autocomplete: 'off' })]
    : [
        field('User', { name: 'user', value: 'guest', autocomplete: 'username' }),
        field('Password', { name: 'password', type: 'password', value: 'guest', autocomplete: 'current-password' }),
      ];
  const label = { name: 'label', placeholder: 'random', required: false, autocomplete: 'off', pattern: '[A-Za-z0-9\\-]{1,63}' };
  if (wanted.isServer) fields.push(field('Label of its URL', label));
  const form = make('form', {}, ...fields, button, problem);
  const about = make('div', { className: 'stack' });
  const explain = () => about.replaceChildren(...explanation(labelIn(new FormData(form))));
  explain();
  form.addEventListener('change', explain);
  place.replaceChildren(make('h2', {}, 'Sign in'), about, form);
  place.hidden = false;
  return new Promise((resolve) => {
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      problem.textContent = '';
      button.disabled = true;
      try {
        const given = new FormData(form);
        const found = { auth: await tokenOf(given), name: labelIn(given) };
        sessionStorage.setItem(wanted.resource, JSON.stringify(found));
        place.hidden = true;
        if (reason) location.reload();
        resolve(found);
      } catch (error) {
        problem.textContent = error.message;
      }
      button.disabled = false;
    });
  });
}

function field(text, properties) {
  return make('label', {}, text, make('input', { required: true, ...properties }));
}

function explanation(label) {
  const { resource, type } = wanted;
  if (!isFromDisk) {
    const name = make('code', {}, resource.slice(2));
    return [make('p', { className: 'quiet' }, 'A user of this hub. The page keeps a token, for 8 hours and for the exchange ', name, ' only, not your password.')];
  }
  return [
    make('p', { className: 'quiet' }, 'This page was opened from the disk, so it needs a token. Make one in a terminal:'),
    command(
      (type ? `curl -u guest:guest -X PUT '${hub}endpoint/${resource}?amqp.exchange_type=${type}'\n` : '') +
      `curl -u guest:guest ${hub}api/hub/tokens -H 'Content-Type: application/json' -d '${JSON.stringify(grant(label))}'`,
    ),
  ];
}

/** The label that the reader has chosen; undefined for a random one. */
function labelIn(given) {
  return given.get('label')?.toLowerCase() || undefined;
}

function grant(label = 'page-*') {
  const { resource } = wanted;
  return { name: 'demo', scopes: [{ read: resource }, { write: resource }, { tunnel: label }], expires_in_s: TOKEN_LASTS_S };
}

async function tokenOf(given) {
  if (isFromDisk) return given.get('token').trim();
  const login = new TextEncoder().encode(`${given.get('user')}:${given.get('password')}`);
  const authorization = `Basic ${btoa(String.fromCharCode(...login))}`;
  const { resource, type } = wanted;
  const path = resource.split('/').map(encodeURIComponent).join('/');
  if (type) await request(`endpoint/${path}?amqp.exchange_type=${type}`, { method: 'PUT', headers: { authorization } });
  const answer = await request('api/hub/tokens', {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(grant(labelIn(given))),
  });
  return (await answer.json()).token;
}

async function request(path, init) {
  const response = await fetch(new URL(path, hub), { ...init, credentials: 'omit' });
  if (response.ok) return response;
  const text = await response.text();
  let reason = text;
  try {
    reason = JSON.parse(text).detail ?? text;
  } catch {
    // an answer that is not JSON is shown as it is
  }
  throw new Error(reason);
}
