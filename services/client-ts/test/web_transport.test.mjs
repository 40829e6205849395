import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { generator, module } from "./support.js";

const { FrameBuffer } = await module("frame_buffer");
const { Malformed, Writer } = await module("bytes");
const { Patience } = await module("connection");
const { WebTransportConnection } = await module("web_transport");
const { Choice, ChosenConnection } = await module("transports");
const { Client } = await module("client");

/** A frame with this body. */
const framed = (body) => new Writer().blob(Uint8Array.from(body)).finish();

/** Lets promises go on. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A session that does what the test says. */
class FakeSession {
  static opened = [];

  constructor(url, options) {
    Object.assign(this, { url, options, written: [], datagramsSent: [], closedWith: undefined });
    const promise = (name) => (this[name] = new Promise((resolve, reject) => (this[`_${name}`] = { resolve, reject })));
    promise("ready");
    promise("closed");
    const writable = (into) => new WritableStream({ write: (bytes) => void into.push(bytes) });
    const readable = (name) => new ReadableStream({ start: (controller) => (this[name] = controller) });
    this.stream = { readable: readable("server"), writable: writable(this.written) };
    this.incomingUnidirectionalStreams = readable("serverStreams");
    this.datagrams = { readable: readable("serverDatagrams"), writable: writable(this.datagramsSent) };
    FakeSession.opened.push(this);
  }

  async createBidirectionalStream() {
    return this.stream;
  }

  close(info) {
    this.closedWith ??= info;
    this._closed.resolve(info);
  }
}

class FakeSocket {
  static OPEN = 1;
  static opened = [];

  constructor(url, protocol) {
    Object.assign(this, { url, protocol, readyState: 0 });
    FakeSocket.opened.push(this);
  }

  connect() {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  send() {}

  close() {}
}

const originals = { WebTransport: globalThis.WebTransport, WebSocket: globalThis.WebSocket };

function fakes() {
  FakeSession.opened = [];
  FakeSocket.opened = [];
  Object.assign(globalThis, { WebTransport: FakeSession, WebSocket: FakeSocket });
}

afterEach(() => {
  mock.timers.reset();
  mock.restoreAll();
  Object.assign(globalThis, originals);
});

/** A listener that records what it receives. */
function recorder() {
  const received = [];
  return {
    received,
    connected: () => received.push("connected"),
    frame: (body) => received.push(["frame", ...body]),
    datagram: (bytes) => received.push(["datagram", ...bytes]),
    closed: (reason) => received.push(["closed", reason]),
  };
}

/** A connection whose session is open. */
async function open() {
  fakes();
  const listener = recorder();
  const target = { url: "https://realm/annals-play.2", certificateHashes: [Uint8Array.of(1, 2)] };
  const connection = new WebTransportConnection(target, new Patience(), listener);
  const [session] = FakeSession.opened;
  session._ready.resolve();
  await settle();
  assert.deepEqual(listener.received.splice(0), ["connected"]);
  return { connection, session, listener };
}

test("frames are split as they arrive, in any pieces", () => {
  const bodies = [[], [1], Array(300).fill(7), [2, 3], Array(200_000).fill(9)];
  const bytes = new Uint8Array(bodies.flatMap((body) => [...framed(body)]));
  const next = generator(5);
  for (let round = 0; round < 20; round++) {
    const buffer = new FrameBuffer();
    const found = [];
    for (let at = 0; at < bytes.length; ) {
      const length = round === 0 ? bytes.length : 1 + next(round === 1 ? 3 : 70_000);
      buffer.push(bytes.subarray(at, at + length));
      at += length;
      for (let frame = buffer.next(); frame !== undefined; frame = buffer.next()) {
        found.push(frame);
      }
    }
    assert.deepEqual(found.map((frame) => frame.length), bodies.map((body) => body.length));
    assert.deepEqual(found.map((frame) => frame.at(-1)), bodies.map((body) => body.at(-1)));
  }
});

test("lengths that are too large or not in their shortest form are refused, and nothing is allocated for them", () => {
  for (const length of [[0xff, 0xff, 0xff, 0xff, 1], [0x81, 0x80, 0x80, 0x09], [0x81, 0], [0x80, 0]]) {
    const buffer = new FrameBuffer();
    buffer.push(Uint8Array.from(length));
    assert.throws(() => buffer.next(), Malformed, `${length}`);
  }
  const buffer = new FrameBuffer();
  buffer.push(Uint8Array.of(0x80, 0x80, 0x80, 0x08));
  assert.equal(buffer.next(), undefined, "16 MiB are allowed");
  assert.ok(buffer.bytes.length <= 64 << 10);
});

test("a session carries frames and datagrams, and echoes are its own", async () => {
  const { connection, session, listener } = await open();
  assert.deepEqual(session.options.serverCertificateHashes, [{ algorithm: "sha-256", value: Uint8Array.of(1, 2) }]);
  assert.equal(connection.transport, "WebTransport");
  session.server.enqueue(framed([5, 6]));
  session.serverDatagrams.enqueue(Uint8Array.of(0));
  session.serverDatagrams.enqueue(Uint8Array.of(1, 2));
  connection.frame(Uint8Array.of(3));
  connection.datagram(Uint8Array.of(4));
  await settle();
  assert.deepEqual(listener.received.toSorted(), [["datagram", 1, 2], ["frame", 5, 6]]);
  assert.deepEqual(session.written, [Uint8Array.of(1, 3)]);
  assert.deepEqual(session.datagramsSent, [Uint8Array.of(4)]);
  connection.close("Finished");
  await settle();
  assert.equal(session.closedWith.closeCode, 0);
  assert.deepEqual(listener.received.filter(([kind]) => kind === "closed"), [], "nothing more is received");
});

/** Opens a stream of the server in the background. */
function openBeside(session) {
  let beside;
  session.serverStreams.enqueue(new ReadableStream({ start: (controller) => (beside = controller) }));
  return beside;
}

test("frames beside the stream are frames, and malformed ones end the session", async () => {
  const { session, listener } = await open();
  const first = openBeside(session);
  first.enqueue(framed([5, 6]).subarray(0, 2));
  first.enqueue(framed([5, 6]).subarray(2));
  session.server.enqueue(framed([7]));
  await settle();
  assert.deepEqual(listener.received.splice(0).toSorted(), [["frame", 5, 6], ["frame", 7]]);
  first.enqueue(Uint8Array.of(0x81, 0));
  await settle();
  assert.deepEqual(listener.received, [["closed", "Lost"]]);
});

test("a stream in the background that breaks ends the session, as nothing in it may be missing", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout", "Date"] });
  const { session, listener } = await open();
  const finished = openBeside(session);
  finished.enqueue(framed([1]));
  finished.close();
  const broken = openBeside(session);
  broken.enqueue(framed([2, 3]));
  broken.enqueue(framed([4, 5]).subarray(0, 2));
  await settle();
  assert.deepEqual(listener.received.splice(0), [["frame", 1], ["frame", 2, 3]]);
  broken.error(new Error("reset by the server"));
  for (let i = 0; i < 6; i++) {
    await settle();
    assert.deepEqual(listener.received, [], "it may end by itself");
    // The answer to an echo: the connection is alive.
    session.serverDatagrams.enqueue(Uint8Array.of(0));
    await settle();
    mock.timers.tick(1_000);
  }
  await settle();
  assert.deepEqual(listener.received, [["closed", "Lost"]]);
  assert.equal(session.closedWith.reason, "Lost");
});

test("a stream in the background that breaks with its session leaves the session its reason", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout", "Date"] });
  const { session, listener } = await open();
  const beside = openBeside(session);
  await settle();
  const error = new Error("connection lost");
  [beside, session.serverStreams, session.server, session.serverDatagrams].forEach((one) => one.error(error));
  // On a busy machine the end is known long after that of the streams.
  for (let i = 0; i < 5; i++) {
    await settle();
    mock.timers.tick(1_000);
  }
  session._closed.resolve({ closeCode: 5 });
  await settle();
  assert.deepEqual(listener.received, [["closed", "Ended"]]);
});

test("a close has its reason, and every other end is a loss", async () => {
  const closed = async (end) => {
    const { session, listener } = await open();
    end(session);
    await settle();
    return listener.received;
  };
  const error = new Error("connection lost");
  const fail = (session) => {
    session.server.error(error);
    session.serverDatagrams.error(error);
  };
  for (const [closeCode, reason] of [[5, "Ended"], [99, "Lost"]]) {
    const received = await closed((session) => (fail(session), session._closed.resolve({ closeCode })));
    assert.deepEqual(received, [["closed", reason]]);
  }
  assert.deepEqual(await closed((session) => (fail(session), session._closed.reject(error))), [["closed", "Lost"]]);
  assert.deepEqual(
    await closed((session) => {
      session.server.enqueue(framed([8]));
      session.server.close();
      session._closed.resolve({ closeCode: 3 });
    }),
    [["frame", 8], ["closed", "Moved"]],
  );
});

test("a reason that the stream ends with is the reason, whatever becomes of the session", async () => {
  for (const [code, reason] of [[12, "LoggedInElsewhere"], [5, "Ended"], [0, "Finished"], [99, "Lost"]]) {
    const { session, listener } = await open();
    session.server.enqueue(framed([8]));
    // In two pieces.
    session.server.enqueue(Uint8Array.of(0, 1));
    session.server.enqueue(Uint8Array.of(code));
    session.server.close();
    session._closed.reject(new Error("Connection lost."));
    await settle();
    assert.deepEqual(listener.received, [["frame", 8], ["closed", reason]]);
  }
});

test("a stream that ends within its last frames leaves the session its reason", async () => {
  for (const last of [[], [0], [0, 1]]) {
    const { session, listener } = await open();
    session.server.enqueue(Uint8Array.from(last));
    session.server.close();
    await settle();
    session._closed.resolve({ closeCode: 5 });
    await settle();
    assert.deepEqual(listener.received, [["closed", "Ended"]]);
  }
});

test("any bytes of a server are read, or end the session", async () => {
  const next = generator(9);
  const noise = (most) => Uint8Array.from({ length: next(most) }, () => next(256));
  for (let round = 0; round < 300; round++) {
    const { session, listener } = await open();
    for (let i = 0; i < 20 && session.closedWith === undefined; i++) {
      session.server.enqueue(next(3) === 0 ? framed(noise(20)) : noise(40));
      session.serverDatagrams.enqueue(noise(5));
      await settle();
    }
    const ends = listener.received.filter(([kind]) => kind === "closed");
    assert.ok(ends.length <= 1 && ends.every(([, reason]) => reason === "Lost"), `round ${round}`);
    assert.ok(session.closedWith === undefined || ends.length === 1);
    session.close({ closeCode: 0 });
    session.server.error?.(new Error("over"));
  }
});

test("a silent session is lost, after requests that were not answered", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout", "Date"] });
  const { session, listener } = await open();
  for (let i = 0; i < 12; i++) {
    mock.timers.tick(500);
    await settle();
  }
  assert.ok(session.datagramsSent.length >= 3);
  assert.ok(session.datagramsSent.every((sent) => sent.length === 1 && sent[0] === 0));
  assert.deepEqual(listener.received, [["closed", "Lost"]]);
});

test("a page that stood still reads what it received before it takes the session as lost", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  let clock = 0;
  mock.method(Date, "now", () => clock);
  const pass = (milliseconds) => {
    clock += milliseconds;
    mock.timers.tick(500);
  };
  const { connection, session, listener } = await open();
  for (let stall = 0; stall < 12; stall++) {
    // A request is under way; the page stands still, and its timer comes before the answer.
    for (let i = 0; i < 2 + (stall % 3); i++) {
      pass(500);
    }
    pass(500 + 1_000 * stall);
    session.serverDatagrams.enqueue(Uint8Array.of(0));
    await settle();
    assert.deepEqual(listener.received, [], `stall ${stall}`);
  }
  for (let i = 0; i < 6; i++) {
    pass(500);
  }
  assert.deepEqual(listener.received, [["closed", "Lost"]], "silence is found after stalls too");
  connection.close("Finished");
});

/** A connection whose transport is chosen. */
function choose(choice, { hashes = async () => [] } = {}) {
  const listener = recorder();
  const route = {
    protocol: "annals-play.1",
    url: () => "wss://realm",
    webTransport: async () => ({ url: "https://realm/annals-play.2", certificateHashes: await hashes() }),
  };
  return { connection: new ChosenConnection(route, new Patience(), choice, listener), listener };
}

test("WebTransport is used where it connects", async () => {
  fakes();
  const { connection, listener } = choose(new Choice());
  await settle();
  FakeSession.opened[0]._ready.resolve();
  await settle();
  assert.deepEqual([listener.received, connection.transport], [["connected"], "WebTransport"]);
  assert.equal(FakeSocket.opened.length, 0);
  connection.close("Finished");
});

test("a WebSocket takes the place of a session that fails, or takes too long, and stays for a while", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout", "Date"] });
  for (const way of ["fails", "is too slow", "has no hashes"]) {
    fakes();
    mock.method(console, "error", () => {});
    const choice = new Choice();
    const hashes = way === "has no hashes" ? () => Promise.reject(new Error("offline")) : undefined;
    const { connection, listener } = choose(choice, { hashes });
    await settle();
    if (way === "fails") {
      FakeSession.opened[0]._ready.reject(new Error("refused"));
      FakeSession.opened[0]._closed.reject(new Error("refused"));
    } else if (way === "is too slow") {
      mock.timers.tick(1_500);
    }
    await settle();
    assert.equal(FakeSocket.opened.length, 1, way);
    FakeSocket.opened[0].connect();
    // A session that is late changes nothing.
    FakeSession.opened[0]?._ready.resolve();
    await settle();
    assert.deepEqual([listener.received, connection.transport], [["connected"], "WebSocket"], way);
    const sessions = FakeSession.opened.length;
    const next = choose(choice);
    await settle();
    assert.deepEqual([FakeSession.opened.length, FakeSocket.opened.length], [sessions, 2], way);
    mock.timers.tick(300_000);
    const later = choose(choice);
    await settle();
    assert.equal(FakeSession.opened.length, sessions + 1, "it is tried again");
    [connection, next.connection, later.connection].forEach((one) => one.close("Finished"));
  }
});

test("a platform without WebTransport, and a route without it, use a WebSocket", async () => {
  fakes();
  globalThis.WebTransport = undefined;
  choose(new Choice()).connection.close("Finished");
  assert.equal(FakeSocket.opened.length, 1);
  globalThis.WebTransport = FakeSession;
  const route = { protocol: "annals-play.1", url: () => "ws://realm", webTransport: undefined };
  new ChosenConnection(route, new Patience(), new Choice(), recorder()).close("Finished");
  assert.deepEqual([FakeSession.opened.length, FakeSocket.opened.length], [0, 2]);
});

test("a client tries WebTransport where its URLs are encrypted, or where that is configured", async () => {
  const opened = async (options) => {
    fakes();
    const world = { schema: "bb".repeat(32), types: [] };
    const client = new Client({ name: "a", password: "b", world, onEvent: () => {}, ...options });
    await settle();
    client.leave();
    return [...FakeSession.opened, ...FakeSocket.opened].map(({ url }) => url);
  };
  assert.deepEqual(await opened({ url: "wss://realm:7700" }), ["https://realm:7700/annals-login.2"]);
  assert.deepEqual(await opened({ url: "wss://realm:7700", webTransport: false }), ["wss://realm:7700"]);
  assert.deepEqual(await opened({ url: "ws://page/login" }), ["ws://page/login"]);
  const webTransport = { url: "https://127.0.0.1:7700", certificateHashes: async () => [Uint8Array.of(7)] };
  assert.deepEqual(await opened({ url: "ws://page/login", webTransport }), ["https://127.0.0.1:7700/annals-login.2"]);
  const [pinned] = FakeSession.opened[0].options.serverCertificateHashes;
  assert.deepEqual(pinned, { algorithm: "sha-256", value: Uint8Array.of(7) });
});
