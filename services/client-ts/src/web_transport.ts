import { Malformed, Writer } from "./bytes.js";
import { type Connection, type Listener, type Patience, Silence } from "./connection.js";
import { FrameBuffer } from "./frame_buffer.js";
import { CLOSE_REASONS, type CloseReason } from "./frames.js";

/** An echo request, and its answer. */
const ECHO = Uint8Array.of(0);
/** Milliseconds for a session whose streams have ended to end. */
const CLOSE_WITHIN = 6_000;
/** Milliseconds for a server to receive what was written before a close. */
const LAST_WRITE_WITHIN = 2_000;

/** What to connect to. */
export interface WebTransportTarget {
  readonly url: string;
  /** SHA-256 of the certificates to accept; without any, they are checked as usual. */
  readonly certificateHashes: readonly Uint8Array[];
}

/** A connection over WebTransport: one stream, one from the server in the background, and datagrams. */
export class WebTransportConnection implements Connection {
  readonly transport = "WebTransport";
  private readonly session: WebTransport;
  /** Why the session has ended, once it has. */
  private readonly sessionEnd: Promise<CloseReason>;
  private frames: WritableStreamDefaultWriter<Uint8Array> | undefined;
  private datagrams: WritableStreamDefaultWriter<Uint8Array> | undefined;
  private silence: Silence | undefined;
  /** Whether the server has announced that its next frame has the reason of its close. */
  private isClosing = false;
  /** That reason. */
  private announced: CloseReason | undefined;

  /** Throws if the target is none. */
  constructor(
    { url, certificateHashes }: WebTransportTarget,
    private readonly patience: Patience,
    private listener: Listener | undefined,
  ) {
    const pinned = certificateHashes.map((hash) => ({ algorithm: "sha-256", value: new Uint8Array(hash) }));
    this.session = new WebTransport(url, {
      requireUnreliable: true,
      ...(pinned.length > 0 ? { serverCertificateHashes: pinned } : {}),
    });
    this.sessionEnd = this.session.closed.then(
      ({ closeCode }) => CLOSE_REASONS[closeCode ?? 0] ?? "Lost",
      () => "Lost",
    );
    void this.converse();
  }

  frame(body: Uint8Array): void {
    send(this.frames, new Writer().blob(body).finish());
  }

  datagram(bytes: Uint8Array): void {
    // Later movements replace one that would have to wait.
    if ((this.datagrams?.desiredSize ?? 0) > 0) {
      send(this.datagrams, bytes);
    }
  }

  close(reason: CloseReason): void {
    this.listener = undefined;
    this.silence?.end();
    const written = this.frames?.close().catch(() => {});
    const end = () => endSession(this.session, reason);
    if (written === undefined) {
      end();
    } else {
      void Promise.race([written, sleep(LAST_WRITE_WITHIN)]).then(end);
    }
  }

  private async converse(): Promise<void> {
    const stream = await this.open();
    if (stream !== undefined && this.listener !== undefined) {
      this.silence = new Silence(this.patience, () => send(this.datagrams, ECHO), () => this.fail("Lost"));
      this.listener.connected();
      void this.readDatagrams();
      void this.readBackground();
      await this.readFrames(stream.readable.getReader(), (frame) => this.take(frame));
    }
    // Nothing more will arrive, and the end may be known after a longer silence than a connection may have.
    this.silence?.end();
    // A browser may take a close for a loss, if the connection ends soon after it.
    const reason = this.announced ?? (await this.end());
    const { listener } = this;
    this.listener = undefined;
    if (reason === undefined) {
      endSession(this.session, "Lost");
    }
    listener?.closed(reason ?? "Lost");
  }

  /** The stream; `undefined` if the session cannot be opened. */
  private async open(): Promise<WebTransportBidirectionalStream | undefined> {
    try {
      await this.session.ready;
      const stream: WebTransportBidirectionalStream = await this.session.createBidirectionalStream();
      this.frames = stream.writable.getWriter();
      this.datagrams = writableDatagrams(this.session.datagrams).getWriter();
      return stream;
    } catch {
      return undefined;
    }
  }

  /** A frame of the session's stream. The last two are an empty one, and one with the code of the reason. */
  private take(frame: Uint8Array): void {
    if (this.isClosing) {
      this.announced ??= CLOSE_REASONS[frame[0] ?? 0] ?? "Lost";
    } else if (frame.length === 0) {
      this.isClosing = true;
    } else {
      this.listener?.frame(frame);
    }
  }

  /** Reads the frames of a stream; returns how it has ended. Malformed frames end the session. */
  private async readFrames(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    take: (frame: Uint8Array) => void,
  ): Promise<StreamEnd> {
    const buffer = new FrameBuffer();
    for (;;) {
      const bytes = await received(reader);
      if (typeof bytes === "string") {
        return bytes;
      }
      this.silence?.received();
      buffer.push(bytes);
      for (let frame = nextFrame(buffer); frame !== undefined; frame = nextFrame(buffer)) {
        if (frame === "malformed") {
          this.fail("Malformed");
          return "broken";
        }
        take(frame);
      }
    }
  }

  /**
   * Reads the frames that the server sends in the background. If one of these streams breaks, the session ends: no chunk
   * of a download may be missing, and the base sends them again on the next connection only.
   */
  private async readBackground(): Promise<void> {
    const streams: ReadableStreamDefaultReader<ReadableStream<Uint8Array>> =
      this.session.incomingUnidirectionalStreams.getReader();
    for (;;) {
      const stream = await received(streams);
      if (typeof stream === "string") {
        // The streams end with the session, which reports its end.
        return;
      }
      const end = await this.readFrames(stream.getReader(), (frame) => this.listener?.frame(frame));
      if (end === "broken" && (await this.end()) === undefined) {
        return this.fail("Lost");
      }
    }
  }

  /**
   * Why the session has ended, or is about to: its streams end first, and on a busy machine its end is known much later.
   * `undefined` if it goes on.
   */
  private end(): Promise<CloseReason | undefined> {
    return Promise.race([this.sessionEnd, sleep(CLOSE_WITHIN)]);
  }

  private async readDatagrams(): Promise<void> {
    const reader: ReadableStreamDefaultReader<Uint8Array> = this.session.datagrams.readable.getReader();
    for (let bytes = await received(reader); typeof bytes !== "string"; bytes = await received(reader)) {
      this.silence?.received();
      if (bytes.length !== ECHO.length || bytes[0] !== ECHO[0]) {
        this.listener?.datagram(bytes);
      }
    }
  }

  /** Closes because of the server, which is a loss to the client. */
  private fail(reason: CloseReason): void {
    const { listener } = this;
    this.close(reason);
    listener?.closed("Lost");
  }
}

/** The next frame of a buffer, if it is whole. */
function nextFrame(buffer: FrameBuffer): Uint8Array | "malformed" | undefined {
  try {
    return buffer.next();
  } catch (error) {
    if (error instanceof Malformed) {
      return "malformed";
    }
    throw error;
  }
}

/** How a stream has ended: the server has finished it, or it was broken off. */
type StreamEnd = "finished" | "broken";

/** What is received next, or how the stream has ended. */
async function received<T extends object>(reader: ReadableStreamDefaultReader<T>): Promise<T | StreamEnd> {
  try {
    return (await reader.read()).value ?? "finished";
  } catch {
    return "broken";
  }
}

/** Sends, unless the session has ended: its end is reported elsewhere. */
function send(writer: WritableStreamDefaultWriter<Uint8Array> | undefined, bytes: Uint8Array): void {
  writer?.write(bytes).catch(() => {});
}

/** The writable end of datagrams, for which browsers have two names. */
function writableDatagrams(
  datagrams: WebTransportDatagramDuplexStream & { createWritable?: () => WritableStream<Uint8Array> },
): WritableStream<Uint8Array> {
  return datagrams.createWritable?.() ?? datagrams.writable;
}

function endSession(session: WebTransport, reason: CloseReason): void {
  try {
    session.close({ closeCode: CLOSE_REASONS.indexOf(reason), reason });
  } catch {
    // It has ended.
  }
}

function sleep(milliseconds: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), milliseconds));
}
