import assert from "node:assert/strict";
import { test } from "node:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bytesOf, cases, hex, module } from "./support.js";

const frames = await module("frames");
const { Malformed } = await module("bytes");

const READERS = {
  login_answer: frames.readLoginAnswer,
  hello_answer: frames.readHelloAnswer,
  to_client: frames.readToClient,
  to_client_datagram: frames.readMoves,
};

const ENTITY = 1048577n;
const place = {
  position: { x: 1, y: 0, z: -2.5 },
  direction: { yaw: 0.5, pitch: 0, roll: 0 },
};
const bytes = (byte, length = 32) => new Uint8Array(length).fill(byte);

test("every vector of a server's frame is read", () => {
  for (const [file, read] of Object.entries(READERS)) {
    const found = cases(file);
    assert.ok(found.length > 0, file);
    for (const { name, bytes } of found) {
      assert.doesNotThrow(() => read(bytes), `${file}: ${name}`);
    }
  }
});

test("frames are read as they were meant", () => {
  const address = { host: "127.0.0.1", port: 20013 };
  const read = (file, name) => READERS[file](bytesOf(file, name));
  assert.deepEqual(read("login_answer", "ticket"), {
    kind: "ticket",
    ticket: { owner: 3n, epoch: 2n, session: 300n, ...address, secret: bytes(0x11) },
  });
  assert.deepEqual(read("login_answer", "located with a signed certificate"), {
    kind: "located",
    located: { owner: 3n, epoch: 2n, host: "[2001:db8:0:0:0:0:0:1]", port: 443 },
  });
  assert.deepEqual(read("login_answer", "refused: not held"), { kind: "refused", reason: "NotHeld" });
  const reason = "case 9: trading outside the game";
  const until = new Date("2026-12-23T04:26:40Z");
  assert.deepEqual(read("login_answer", "banned"), { kind: "banned", ban: { until, reason } });
  assert.deepEqual(read("login_answer", "banned for ever"), { kind: "banned", ban: { until: undefined, reason } });
  assert.deepEqual(read("login_answer", "queued"), { kind: "queued", position: 7, length: 300 });
  assert.ok(frames.isQueued(bytesOf("login_answer", "queued")) && !frames.isQueued(bytesOf("login_answer", "ticket")));
  assert.deepEqual(read("hello_answer", "welcome"), {
    kind: "welcome",
    welcome: { session: 300n, epoch: 2n, entity: ENTITY, typeId: 4, token: bytes(0x22), scale: undefined },
  });
  assert.deepEqual(read("to_client", "refused"), {
    kind: "refused",
    part: "cell",
    entity: ENTITY,
    number: 6n,
    reason: "BadArguments",
  });
  const { frame } = read("to_client", "view: update");
  assert.deepEqual(frame, {
    source: "cell",
    view: 2n,
    sequence: 9n,
    tick: 600n,
    items: [
      { kind: "update", entity: ENTITY, from: 12n, upto: 301n, events: Uint8Array.of(3, 1, 2, 10, 4, 2, 104, 105) },
    ],
  });
  assert.deepEqual(read("to_client", "view: enter").frame.items, [{ kind: "enter", entity: ENTITY, typeId: 4, place }]);
  assert.deepEqual(read("to_client", "view: space data").frame.items[0].entry, {
    key: 256,
    version: { life: 2n, since: 300_000n, by: 3 },
    value: Uint8Array.of(1, 2, 3),
  });
  const id = { entity: ENTITY, number: 3n };
  assert.deepEqual(read("to_client", "download begun"), {
    kind: "downloadBegun",
    begun: { id, size: 300, hash: "cc".repeat(32), description: "map" },
  });
  const chunk = { kind: "downloadChunk", id, offset: 298, content: Uint8Array.of(1, 2) };
  assert.deepEqual(read("to_client", "download chunk"), chunk);
  assert.deepEqual(read("to_client", "download ended"), { kind: "downloadEnded", id });
  const moves = read("to_client_datagram", "moves");
  assert.equal(moves.tick, 600n);
  assert.equal(moves.moves[0].place.direction.yaw.toFixed(5), (Math.PI / 2).toFixed(5));
});

test("malformed frames are refused", () => {
  let count = 0;
  const vectors = process.env["ANNALS_VECTORS"] ?? join(import.meta.dirname, "../../../schema/wire/test_data/client");
  for (const line of readFileSync(join(vectors, "malformed.txt"), "utf8").split("\n")) {
    const [kind, digits, message] = line.split("|").map((part) => part.trim());
    // What `properties` and `events` contain is read with the definitions.
    const read = READERS[kind];
    if (read !== undefined) {
      assert.throws(() => read(Uint8Array.from(Buffer.from(digits, "hex"))), Malformed, message);
      count += 1;
    }
  }
  assert.ok(count > 10);
});

test("a client's frames have the bytes of the vectors", () => {
  const is = (file, name, found) => assert.equal(hex(found), hex(bytesOf(file, name)), name);
  const call = { part: "cell", entity: ENTITY, number: 3n, message: Uint8Array.of(2, 5, 104, 101, 108, 108, 111) };
  is("to_server", "call", frames.writeCall({ ...call, isOldest: false }));
  is("to_server", "call: all earlier ones are confirmed", frames.writeCall({ ...call, isOldest: true }));
  is("to_server", "bye", frames.writeBye());
  const nothing = { seen: [], kept: [], space: undefined, unusualDrivers: [] };
  is("to_server", "stamps of one that has nothing", frames.writeStamps({ source: "base", view: 1n, ...nothing }));
  const seen = [
    { entity: 7n, upto: 12n, finer: [] },
    { entity: ENTITY, upto: 301n, finer: [0n, 300n] },
  ];
  const kept = [{ entity: 5n, upto: 2n, finer: [] }];
  is("to_server", "stamps", frames.writeStamps({ source: "cell", view: 2n, seen, kept, space: undefined, unusualDrivers: [] }));
  const version = { life: 2n, since: 300_000n, by: 3 };
  const space = { space: 300, versions: [[0, version], [256, version]] };
  const withSpace = frames.writeStamps({ source: "cell", view: 2n, seen: [], kept: [], space, unusualDrivers: [] });
  const unusual = { source: "cell", view: 2n, seen, kept: [], space: undefined, unusualDrivers: [7n, ENTITY] };
  is("to_server", "stamps of one that drives others", frames.writeStamps(unusual));
  is("to_server", "stamps of one that has data of its space", withSpace);
  const progress = { id: { entity: ENTITY, number: 3n }, upto: 300 };
  is("to_server", "download progress", frames.writeDownloadProgress(progress));
  is("to_server_datagram", "moved", frames.writeMoved(1000n, place));
  const drove = frames.writeDrove(1001n, { entity: ENTITY, upto: 300n }, place);
  is("to_server_datagram", "drove", drove);
  is("login_request", "locate", frames.writeLocate(3n, 300n));
});

test("requests name the version of the protocol", () => {
  const grammar = join(import.meta.dirname, "../../../schema/wire/src/client/grammar.txt");
  assert.equal(frames.PROTOCOL, createHash("sha256").update(readFileSync(grammar)).digest("hex"));
  const digits = (found) => hex(found).replaceAll(frames.PROTOCOL, "aa".repeat(32));
  const account = { name: "Zoë", password: "secret" };
  assert.equal(digits(frames.writeLogIn(account)), hex(bytesOf("login_request", "log in")));
  const registration = { ...account, register: true };
  assert.equal(digits(frames.writeLogIn(registration)), hex(bytesOf("login_request", "register")));
  assert.equal(digits(frames.writeLogIn({ token: "a.b.c" })), hex(bytesOf("login_request", "log in with a token")));
  const session = { owner: 3n, epoch: 2n, session: 300n, proof: { kind: "resume", secret: bytes(0x22) } };
  assert.equal(digits(frames.writeHello("bb".repeat(32), session)), hex(bytesOf("hello", "resumed")));
  const ack = frames.writeMovementAck(2n, { tick: 600, before: 11 });
  assert.equal(hex(ack), hex(bytesOf("to_server_datagram", "movement_ack")));
});
