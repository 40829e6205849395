import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf, cases, module } from "./support.js";

const { ClientCore } = await module("session");
const { Writer } = await module("bytes");
const { writeDownloadProgress, writeDrove } = await module("frames");

const TYPE = { id: 4, name: "Thing", properties: [], methods: [], baseCalls: [], cellCalls: [] };

function start() {
  const core = new ClientCore({ schema: "bb".repeat(32), types: [TYPE] }, { name: "a", password: "b" }, () => 0.5);
  core.start(0);
  return core;
}

/** The only output of this kind. */
function output(core, kind) {
  const found = core.takeOutputs().filter((one) => one.kind === kind);
  assert.equal(found.length, 1, kind);
  return found[0];
}

const kinds = (list) => list.map(({ kind }) => kind);

/** A client that plays; the vectors are of one session. */
function playing() {
  const core = start();
  core.loginAnswered(1, output(core, "login").attempt, bytesOf("login_answer", "ticket"));
  const { attempt, to } = output(core, "connect");
  assert.equal(to.port, 20013);
  core.connected(2, attempt);
  assert.deepEqual(kinds(core.takeOutputs()), ["frame"]);
  core.frame(3, attempt, bytesOf("hello_answer", "welcome"));
  assert.deepEqual(kinds(core.takeEvents()), ["connected"]);
  assert.deepEqual(kinds(core.takeOutputs()), ["frame", "frame"], "both views begin");
  return { core, attempt };
}

test("an announced process takes over, whichever connection is first", () => {
  for (const order of ["welcomed first", "closed before it is connected", "closed before the welcome"]) {
    const { core, attempt } = playing();
    const moving = bytesOf("to_client", "moving").slice();
    // Another port than that of the present base.
    moving[9] += 1;
    core.frame(10, attempt, moving);
    const next = output(core, "connect").attempt;
    if (order === "closed before it is connected") {
      core.disconnected(11, attempt, "Moved");
    }
    core.connected(12, next);
    assert.equal(output(core, "frame").attempt, next, `${order}: the hello`);
    if (order === "closed before the welcome") {
      core.disconnected(13, attempt, "Moved");
    }
    core.frame(14, next, bytesOf("hello_answer", "welcome"));
    assert.ok(core.isPlaying, order);
    assert.deepEqual(kinds(core.takeEvents()), [], `${order}: nothing is noticed`);
    const frames = core.takeOutputs().filter(({ kind }) => kind === "frame");
    assert.ok(frames.length >= 2 && frames.every((frame) => frame.attempt === next), order);
  }
});

test("an announced process that does not answer is waited for, and then the session is resumed", () => {
  const { core, attempt } = playing();
  const moving = bytesOf("to_client", "moving").slice();
  moving[9] += 1;
  core.frame(10, attempt, moving);
  core.connected(12, output(core, "connect").attempt);
  core.disconnected(13, attempt, "Moved");
  core.tick(2_012);
  assert.deepEqual(core.takeEvents(), []);
  core.tick(2_013);
  assert.deepEqual(kinds(core.takeEvents()), ["lost"]);
});

test("a client that is given to another owner controls its entity there, also if it was away", () => {
  for (const isAway of [false, true]) {
    const { core, attempt } = playing();
    let now = 10;
    let last = attempt;
    if (isAway) {
      core.disconnected(now, attempt, "Lost");
      core.loginAnswered(now, output(core, "login").attempt, bytesOf("login_answer", "located"));
      last = output(core, "connect").attempt;
      core.connected(now, last);
      core.takeOutputs();
      core.frame(now, last, bytesOf("hello_answer", "given"));
      assert.deepEqual(core.takeOutputs(), [{ kind: "close", attempt: last, reason: "Moved" }]);
      now += 1_000;
      core.tick(now);
    } else {
      core.frame(now, attempt, bytesOf("to_client", "given"));
    }
    const outputs = core.takeOutputs();
    assert.deepEqual(kinds(outputs), isAway ? ["login"] : ["close", "login"]);
    core.loginAnswered(now, outputs.at(-1).attempt, bytesOf("login_answer", "located"));
    const next = output(core, "connect").attempt;
    core.connected(now, next);
    core.takeOutputs();
    core.frame(now, next, bytesOf("hello_answer", "welcome: movements are predicted"));
    assert.ok(core.isPlaying);
    assert.deepEqual(kinds(core.takeEvents()), isAway ? ["lost", "resumed"] : []);
  }
});

test("a banned player receives the end and the reason, at the log-in and while playing", () => {
  const refused = start();
  refused.loginAnswered(1, output(refused, "login").attempt, bytesOf("login_answer", "banned"));
  const { core, attempt } = playing();
  core.frame(10, attempt, bytesOf("to_client", "banned"));
  assert.deepEqual(core.takeOutputs(), [{ kind: "close", attempt, reason: "Finished" }]);
  for (const client of [refused, core]) {
    const [{ kind, reason }] = client.takeEvents();
    assert.deepEqual([kind, reason.kind], ["ended", "banned"]);
    assert.equal(reason.ban.reason, "case 9: trading outside the game");
    assert.equal(reason.ban.until.toISOString(), "2026-12-23T04:26:40.000Z");
    assert.ok(client.hasEnded);
  }
});

test("a client waits in the queue of a full realm for as long as it gets its position", () => {
  const core = start();
  const { attempt } = output(core, "login");
  for (let now = 9_000; now < 200_000; now += 29_000) {
    core.tick(now);
    core.loginAnswered(now, attempt, bytesOf("login_answer", "queued"));
    assert.deepEqual(core.takeEvents(), [{ kind: "queued", position: 7, length: 300 }]);
    assert.deepEqual(core.takeOutputs(), []);
  }
  core.loginAnswered(200_000, attempt, bytesOf("login_answer", "ticket"));
  assert.equal(output(core, "connect").to.port, 20013);
  const lost = start();
  const asked = output(lost, "login").attempt;
  lost.loginAnswered(1, asked, bytesOf("login_answer", "queued"));
  lost.tick(30_001);
  assert.deepEqual(lost.takeOutputs(), [{ kind: "close", attempt: asked, reason: "Silent" }]);
  lost.tick(31_000);
  assert.equal(kinds(lost.takeOutputs()).join(), "login", "it returns to its place");
  lost.loginAnswered(31_001, asked + 1, Uint8Array.of(5, 1));
  assert.deepEqual(lost.takeOutputs(), [{ kind: "close", attempt: asked + 1, reason: "Malformed" }]);
});

test("a connection is closed when it is given up", () => {
  const core = start();
  const asked = output(core, "login").attempt;
  core.tick(10_000);
  assert.deepEqual(core.takeOutputs(), [{ kind: "close", attempt: asked, reason: "Silent" }]);
  core.tick(20_000);
  const again = output(core, "login").attempt;
  core.leave();
  assert.deepEqual(core.takeOutputs(), [{ kind: "close", attempt: again, reason: "Finished" }]);
  assert.equal(core.deadline(), Infinity);
});

/** A client whose cell view is that of the vectors, before its first frame; and some of the vectors. */
const awaitingPredicted = () => {
  const predicted = cases("predicted");
  const first = predicted[0];
  const second = predicted.find(({ text }) => text.startsWith("tick 17000000002"));
  const core = start();
  core.loginAnswered(1, output(core, "login").attempt, bytesOf("login_answer", "ticket"));
  const { attempt } = output(core, "connect");
  core.connected(2, attempt);
  core.frame(3, attempt, bytesOf("hello_answer", "welcome: movements are predicted"));
  core.takeOutputs();
  const datagrams = () => core.takeOutputs().filter(({ kind }) => kind === "datagram");
  const { cell } = core.views;
  // The view has the number of the vectors.
  while (cell.number < 300n) {
    cell.begin(4, { x: 0, y: 0, z: 0 });
  }
  const follow = () => {
    const place = { position: { x: 1, y: 2, z: 3 }, direction: { yaw: 0, pitch: 5, roll: 6 } };
    const items = [65536n, 256n].map((entity) => ({ kind: "enter", entity, typeId: 4, place }));
    cell.apply(5, { source: "cell", view: 300n, sequence: 1n, tick: 17_000_000_000n, items });
  };
  return { core, attempt, cell, datagrams, follow, first, second, predicted };
};

test("predicted movements are read in the view that they are of, and acknowledged", () => {
  const { core, attempt, cell, datagrams, follow, first, second, predicted } = awaitingPredicted();
  core.datagram(5, attempt, first.bytes);
  core.tick(1_000);
  assert.deepEqual(datagrams(), [], "before the first frame");
  follow();
  core.datagram(1_000, attempt, first.bytes);
  assert.equal(core.deadline(), 1_150);
  core.tick(1_150);
  const [{ bytes }] = datagrams();
  assert.deepEqual([...bytes], [2, 0xac, 0x02, 0x01, 0x6a, 0, 0], "view 300, tick 27137");
  const near = ({ position: { x, y, z } }, wanted) =>
    assert.ok([x, y, z].every((at, i) => Math.abs(at - wanted[i]) < 1));
  // One place is exact. The scale of the other is a quarter in the welcome, and 500/509 in the vectors.
  const quarter = (metres) => (metres / Math.fround(500 / 509)) * 0.25;
  near(cell.entities.get(65536n).place, [42.26409, 2.6045775, 104.27597]);
  near(cell.entities.get(256n).place, [quarter(-126.719055), 2, quarter(117.8782)]);
  assert.equal(cell.entities.get(256n).place.direction.pitch, 5, "what was not sent stays");
  core.datagram(1_300, attempt, first.bytes);
  core.tick(2_000);
  assert.deepEqual(datagrams(), [], "a duplicate");
  core.datagram(2_000, attempt, second.bytes);
  core.tick(2_250);
  assert.equal(datagrams().length, 1);
  core.datagram(2_300, attempt, Uint8Array.of(2, 0xac, 2, 9, 9));
  cell.begin(6, { x: 0, y: 0, z: 0 });
  core.datagram(2_300, attempt, predicted.at(-1).bytes);
  core.tick(3_000);
  assert.deepEqual(datagrams(), [], "of another view");
});

test("movements are acknowledged with what the client sends next", () => {
  const { core, attempt, datagrams, follow, first, second } = awaitingPredicted();
  follow();
  const own = { position: { x: 1, y: 2, z: 3 }, direction: { yaw: 0, pitch: 0, roll: 0 } };
  const sent = (now) => {
    assert.ok(core.moveTo(now, own));
    return datagrams().map(({ bytes }) => bytes[0] === 2);
  };
  core.datagram(1_000, attempt, first.bytes);
  core.datagram(1_100, attempt, second.bytes);
  assert.deepEqual(datagrams(), [], "it waits");
  assert.deepEqual(sent(1_110), [false, true], "behind the movement");
  assert.deepEqual(sent(1_120), [false], "once");
  core.datagram(1_200, attempt, first.bytes);
  core.disconnected(1_210, attempt, "Lost");
  core.tick(1_400);
  assert.deepEqual(datagrams(), [], "the view is not continued");
});

test("a lost connection is resumed with the token of the last welcome", () => {
  const { core, attempt } = playing();
  core.disconnected(100, attempt, "Lost");
  assert.deepEqual(kinds(core.takeEvents()), ["lost"]);
  core.loginAnswered(101, output(core, "login").attempt, bytesOf("login_answer", "located"));
  const next = output(core, "connect").attempt;
  core.connected(102, next);
  const { body } = output(core, "frame");
  assert.deepEqual(body.slice(-33, -1), new Uint8Array(32).fill(0x22));
  core.frame(103, next, bytesOf("hello_answer", "welcome"));
  assert.deepEqual(kinds(core.takeEvents()), ["resumed"]);
});

test("a place of numbers that are not finite is refused", () => {
  const { core } = playing();
  const direction = { yaw: 0, pitch: 0, roll: 0 };
  for (const x of [Number.NaN, Infinity, 1e39]) {
    assert.throws(() => core.moveTo(0, { position: { x, y: 0, z: 0 }, direction }), RangeError);
  }
  assert.ok(core.moveTo(0, { position: { x: 1, y: 0, z: 0 }, direction }));
});

test("the last movement is sent again unless the server has placed the entity", () => {
  const { core } = playing();
  const { entity, typeId } = core.controls;
  const { cell } = core.views;
  const place = (x) => ({ position: { x, y: 0, z: 0 }, direction: { yaw: 0, pitch: 0, roll: 0 } });
  const show = (sequence, item) =>
    cell.apply(1_000, { source: "cell", view: cell.number, sequence, tick: 1_000n + sequence, items: [item] });
  show(1n, { kind: "enter", entity, typeId, place: place(0) });
  const datagrams = () =>
    core.takeOutputs().filter(({ kind }) => kind === "datagram").map(({ bytes }) => [...bytes]);
  datagrams();
  let now = 1_000;
  const wait = (milliseconds) => core.tick((now += milliseconds));
  for (let x = 1; x <= 5; x++) {
    core.moveTo(now, place(x));
    wait(199);
    assert.equal(datagrams().length, 1, "each movement replaces the one before");
  }
  core.moveTo(now, place(6));
  const [last] = datagrams();
  for (const pause of [200, 400, 800, 1_600]) {
    assert.ok(core.deadline() <= now + pause);
    wait(pause - 1);
    assert.deepEqual(datagrams(), []);
    wait(1);
    assert.deepEqual(datagrams(), [last]);
  }
  wait(10_000);
  assert.deepEqual(datagrams(), [], "it was sent often enough");
  core.moveTo(now, place(7));
  datagrams();
  show(2n, { kind: "placed", entity, place: place(0) });
  wait(200);
  assert.deepEqual(datagrams(), [], "it was placed elsewhere");
});

test("another entity is moved while the client drives it", () => {
  const { core } = playing();
  const { entity: own, typeId } = core.controls;
  const other = own + 1n;
  const { cell } = core.views;
  const place = (x) => ({ position: { x, y: 0, z: 0 }, direction: { yaw: 0, pitch: 0, roll: 0 } });
  let sequence = 0n;
  const show = (...items) => {
    sequence += 1n;
    cell.apply(1_000, { source: "cell", view: cell.number, sequence, tick: 1_000n + sequence, items });
  };
  const enter = (entity) => ({ kind: "enter", entity, typeId, place: place(0) });
  const drives = (entity, drives) => ({ kind: "drives", entity, drives });
  const placed = (entity) => ({ kind: "placed", entity, place: place(0) });
  const datagrams = () =>
    core.takeOutputs().filter(({ kind }) => kind === "datagram").map(({ bytes }) => Buffer.from(bytes).toString("hex"));
  const hex = (bytes) => Buffer.from(bytes).toString("hex");
  const drivers = () => core.takeEvents().filter(({ kind }) => kind === "drives");
  show(enter(own), enter(other));
  datagrams();
  drivers();
  let now = 1_000;
  assert.equal(core.moveEntity(now, other, place(1)), false);
  show(drives(other, true), placed(other));
  assert.deepEqual(drivers(), [drives(other, true)]);
  assert.ok(core.moveTo(now, place(1)) && core.moveEntity(now, other, place(2)));
  cell.entities.get(other).upto = 12n;
  assert.ok(core.moveEntity(now, other, place(3)));
  const sent = datagrams();
  const drove = (number, upto, x) => hex(writeDrove(number, { entity: other, upto }, place(x)));
  assert.deepEqual(sent.slice(1), [drove(2n, 0n, 2), drove(3n, 12n, 3)]);
  // The last movement of each is sent again.
  core.tick((now += 200));
  assert.deepEqual(datagrams(), [sent[0], sent[2]]);
  const moves = { view: cell.number, tick: 2_000n, moves: [{ entity: other, place: place(9) }] };
  cell.applyMoves(moves, own);
  assert.equal(cell.entities.get(other).place.position.x, 3, "the client moves it itself");
  // Another driver: the server's movements count again.
  show(drives(other, false), placed(other), drives(own, false));
  assert.ok(!core.moveEntity(now, other, place(4)) && !core.moveTo(now, place(4)));
  cell.applyMoves(moves, own);
  assert.equal(cell.entities.get(other).place.position.x, 9);
  core.tick((now += 10_000));
  assert.deepEqual(datagrams(), []);
  // A view that starts anew goes on as before, and the server learns it. An entity that leaves is not moved any more.
  show(drives(other, true));
  drivers();
  const stamps = cell.begin(now, own, { x: 0, y: 0, z: 0 });
  assert.deepEqual(stamps.unusualDrivers, [own, other]);
  sequence = 0n;
  assert.deepEqual(drivers(), []);
  assert.ok(!core.drives(own) && core.moveEntity(now, other, place(5)));
  show(drives(own, true), { kind: "leave", entity: other });
  assert.ok(core.drives(own) && !core.drives(other));
  assert.deepEqual(cell.begin(now, own, { x: 0, y: 0, z: 0 }).unusualDrivers, []);
});

/** Frames of a download, as a base writes them. */
function downloadFrames(content, hash = 0xcc) {
  const id = { entity: 1048577n, number: 3n };
  const begin = (kind) => new Writer().u8(kind).number(id.entity).number(id.number);
  const begun = () => begin(11).number(content.length).raw(new Uint8Array(32).fill(hash)).text("map").finish();
  const chunk = (from, to) => begin(12).number(from).blob(content.subarray(from, to)).finish();
  return { id, begun, chunk, ended: () => begin(13).finish() };
}

test("a download continues over connections, and is whole once", () => {
  const content = Uint8Array.from({ length: 300 }, (_, i) => i % 251);
  const { id, begun, chunk } = downloadFrames(content);
  const { core, attempt } = playing();
  const answers = () => core.takeOutputs().map((one) => Buffer.from(one.body).toString("hex"));
  const progress = (upto) => [Buffer.from(writeDownloadProgress({ id, upto })).toString("hex")];
  core.frame(10, attempt, begun());
  assert.deepEqual(answers(), progress(0));
  core.frame(20, attempt, chunk(0, 100));
  assert.deepEqual(answers(), [], "answers are at most ten a second");
  assert.equal(core.deadline(), 110);
  core.frame(30, attempt, chunk(50, 100));
  core.tick(110);
  assert.deepEqual(answers(), progress(100));
  // On the next connection the base names it again.
  core.frame(120, attempt, begun());
  assert.deepEqual(answers(), progress(100));
  core.frame(130, attempt, chunk(100, 300));
  assert.deepEqual(answers(), progress(300));
  const events = core.takeEvents();
  assert.deepEqual(events.at(-1), { kind: "downloaded", id, description: "map", content });
  assert.equal(kinds(events).filter((kind) => kind === "downloaded").length, 1);
  core.frame(140, attempt, begun());
  assert.deepEqual(answers(), progress(300), "it has all of it");
  assert.deepEqual(core.takeEvents(), []);
});

test("other content begins again, a chunk elsewhere is dropped, and one beyond the size ends the connection", () => {
  const content = new Uint8Array(300).fill(7);
  const { core, attempt } = playing();
  const first = downloadFrames(content);
  core.frame(10, attempt, first.begun());
  core.frame(20, attempt, first.chunk(0, 100));
  core.frame(30, attempt, downloadFrames(content, 0xdd).begun());
  const [, progressed] = core.takeEvents();
  assert.deepEqual([progressed.kind, progressed.received], ["downloadProgressed", 0]);
  core.frame(40, attempt, first.ended());
  assert.deepEqual(kinds(core.takeEvents()), ["downloadEnded"]);
  core.frame(50, attempt, first.begun());
  core.takeOutputs();
  core.takeEvents();
  core.frame(60, attempt, first.chunk(100, 200));
  assert.deepEqual([core.takeOutputs(), core.takeEvents()], [[], []], "sent before the content was dropped");
  const longer = downloadFrames(new Uint8Array(301)).chunk(200, 301);
  core.frame(70, attempt, longer);
  assert.deepEqual(kinds(core.takeOutputs()), ["close", "login"]);
});
