/** Which hub, with which rights, for how long. */
export interface HubOptions {
  /** The URL of the hub, such as `http://localhost:15672/`; by default the one that this module came from. */
  hub?: string;
  /** A token of the hub, or a whole `Authorization` header, such as `Basic …`. */
  auth?: string;
  /** Ends what was begun. */
  signal?: AbortSignal;
}

/** A request or answer of the hub that failed, with its problem document (RFC 9457). */
export declare class WarrenError extends Error {
  readonly status: number;
  readonly problem: { status: number; title?: string; detail?: string; [member: string]: unknown };
}

export interface TunnelOptions extends HubOptions {
  /** The label of the public URL; by default a random one. */
  name?: string;
  /** The secret by which the label can be enrolled again; by default a random one. */
  token?: string;
  /** Seconds for which the label outlives the connection; 60 by default. */
  lease?: number;
  /** `auto` is a WebSocket, and long polls where there is none. */
  transport?: 'auto' | 'poll';
}

/** `client` is the address and port of whoever sent the request. */
export type Handler = (request: Request, context: { client: string | null }) => Response | Promise<Response>;

/** Events: `open`, `lost` (a CustomEvent whose `detail` is the error), `close`. */
export interface Tunnel extends EventTarget {
  /** Ends with a slash. */
  readonly url: string;
  readonly name: string;
  readonly token: string;
  /** Fulfilled after `close`; rejected with the error that ended the tunnel. */
  readonly closed: Promise<void>;
  /** Answers requests to one path by a handler of its own; returns the URL of that path. */
  route(path: string, handler: Handler): string;
  /** Gives the label back. */
  close(): Promise<void>;
}

export declare function serve(options: TunnelOptions, handler: Handler): Promise<Tunnel>;

/** A message; its body is a string if it is UTF-8. */
export interface Message {
  id: string;
  exchange: string;
  routing_key: string;
  content_type?: string;
  body: string | Uint8Array;
}

export interface SubscribeOptions extends TunnelOptions {
  /** `x/NAME`, `q/NAME`, or the URL of a WebSub topic. */
  source: string;
  vhost?: string;
  /** The binding key. */
  key?: string;
  /** One that is there already; otherwise the subscription has its own. */
  tunnel?: Tunnel;
  /** Of the callback; by default a random one, which nobody else knows. */
  path?: string;
}

/** Event: `lost`, when the hub refuses to renew it (a CustomEvent whose `detail` is the error). */
export interface Subscription extends EventTarget {
  readonly callback: string;
  readonly source: string;
  readonly tunnel: Tunnel;
  unsubscribe(): Promise<void>;
}

export declare function subscribe(
  options: SubscribeOptions,
  handler: (message: Message, request: Request) => unknown,
): Promise<Subscription>;

export interface PublishOptions extends HubOptions {
  /** `x/NAME` or `q/NAME`. */
  to: string;
  vhost?: string;
  /** The routing key. */
  key?: string;
  /** The content type; by default that of the body. */
  type?: string;
  /** Headers of the message. */
  headers?: Record<string, string>;
}

/** Anything but text, a Blob and octets is sent as JSON. */
export declare function publish(options: PublishOptions, body: unknown): Promise<void>;

export interface StreamOptions extends HubOptions {
  /** `x/NAME` or `q/NAME`. */
  from: string;
  vhost?: string;
  /** Binding keys of an exchange. */
  key?: string | string[];
  /** Where to begin: behind the message with this `cursor`, at an offset, `first`, `last`, `next`, or a time in ISO 8601. */
  cursor?: string;
  /** `auto` takes messages of a queue without acknowledgements: those under way when the connection breaks are lost. */
  ack?: 'auto';
  /** How many messages of a queue may wait here to be acknowledged; 100 by default. */
  prefetch?: number;
  onopen?: () => void;
  onlost?: (error: Error) => void;
}

export interface StreamedMessage extends Message {
  /** `OFFSET-TAG`, with the offset of the message in its stream; none in a queue. */
  cursor?: string;
  headers?: Record<string, unknown>;
  content_encoding?: string;
  priority?: number;
  correlation_id?: string;
  reply_to?: string;
  expiration?: string;
  message_id?: string;
  timestamp?: number;
  type?: string;
  user_id?: string;
  app_id?: string;
  redelivered?: boolean;
  /** The messages between these two cursors are missing. */
  gap?: { from: string; to: string };
  /** Of a queue: acknowledges the message at once, and not when the next one is asked for. */
  ack?: () => void;
}

export declare function stream(options: StreamOptions): AsyncGenerator<StreamedMessage, void, void>;
