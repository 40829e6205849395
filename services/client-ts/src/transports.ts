import type { Connection, Listener, Patience, TransportName } from "./connection.js";
import type { CloseReason } from "./frames.js";
import { WebSocketConnection } from "./web_socket.js";
import { WebTransportConnection, type WebTransportTarget } from "./web_transport.js";

/** Milliseconds for a session of WebTransport; after that, a WebSocket is opened instead. */
const WEB_TRANSPORT_WITHIN = 1_500;
/** Milliseconds without WebTransport after it could not connect where a WebSocket could: its packets may be blocked. */
const AVOIDED_FOR = 300_000;

/** How to reach a process. */
export interface Route {
  /** The subprotocol of a WebSocket. */
  readonly protocol: string;
  /** URL of a WebSocket. */
  readonly url: () => string;
  /** What WebTransport connects to; `undefined` if it cannot. */
  readonly webTransport: (() => Promise<WebTransportTarget | undefined>) | undefined;
}

/** Whether the connections of a client try WebTransport. */
export class Choice {
  private avoidedUntil = 0;

  get triesWebTransport(): boolean {
    return typeof WebTransport === "function" && Date.now() >= this.avoidedUntil;
  }

  /** A WebSocket has connected where WebTransport could not. */
  avoid(): void {
    this.avoidedUntil = Date.now() + AVOIDED_FOR;
  }
}

/** A connection over WebTransport if that connects in time, else over a WebSocket. */
export class ChosenConnection implements Connection {
  /** The present attempt. */
  private inner: Connection | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Of the attempt by WebTransport. */
  private phase: "trying" | "connected" | "fallen back" = "trying";

  constructor(
    private readonly route: Route,
    private readonly patience: Patience,
    private readonly choice: Choice,
    private listener: Listener | undefined,
  ) {
    if (route.webTransport === undefined || !choice.triesWebTransport) {
      this.openWebSocket(listener);
    } else {
      void this.openWebTransport(route.webTransport);
    }
  }

  get transport(): TransportName {
    return this.inner?.transport ?? "WebTransport";
  }

  frame(body: Uint8Array): void {
    this.inner?.frame(body);
  }

  datagram(bytes: Uint8Array): void {
    this.inner?.datagram(bytes);
  }

  close(reason: CloseReason): void {
    clearTimeout(this.timer);
    this.listener = undefined;
    this.inner?.close(reason);
  }

  private async openWebTransport(target: NonNullable<Route["webTransport"]>): Promise<void> {
    this.timer = setTimeout(() => this.fallBack(), WEB_TRANSPORT_WITHIN);
    try {
      const found = await target();
      const { listener } = this;
      if (this.phase === "fallen back" || listener === undefined) {
        return;
      }
      if (found === undefined) {
        clearTimeout(this.timer);
        return this.openWebSocket(listener);
      }
      this.inner = new WebTransportConnection(found, this.patience, {
        ...forward(listener),
        connected: () => {
          this.phase = "connected";
          clearTimeout(this.timer);
          listener.connected();
        },
        closed: (reason) => (this.phase === "connected" ? listener.closed(reason) : this.fallBack()),
      });
    } catch (error) {
      // Hashes that could not be fetched, or a URL that is none.
      console.error(error);
      this.fallBack();
    }
  }

  /** Gives WebTransport up. */
  private fallBack(): void {
    if (this.phase === "fallen back") {
      return;
    }
    this.phase = "fallen back";
    clearTimeout(this.timer);
    this.inner?.close("Silent");
    const { listener } = this;
    if (listener !== undefined) {
      const connected = () => {
        this.choice.avoid();
        listener.connected();
      };
      this.openWebSocket({ ...forward(listener), connected });
    }
  }

  private openWebSocket(listener: Listener | undefined): void {
    try {
      this.inner = new WebSocketConnection(this.route.url(), this.route.protocol, this.patience, listener);
    } catch (error) {
      // A URL that is none: reported, and tried again like a server that cannot be reached.
      console.error(error);
      queueMicrotask(() => listener?.closed("Lost"));
    }
  }
}

/** A listener with the same methods, some of which can be replaced. */
function forward(listener: Listener): Listener {
  return {
    connected: () => listener.connected(),
    frame: (body) => listener.frame(body),
    datagram: (bytes) => listener.datagram(bytes),
    closed: (reason) => listener.closed(reason),
  };
}
