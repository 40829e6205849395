import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./support.js";
import {
  BaseView, LOCATED, OWN, TICKET, TRADER, WELCOME, bought, failed, gone, refused, replyEvent, took,
} from "./two_way.js";

const { ClientCore } = await module("session");
const { CallFailed, MAX_ASKS } = await module("asks");
const { CallError } = await module("exposed");

const kinds = (list) => list.map(({ kind }) => kind);

/** A client that plays, from the time 3 on. */
function playing() {
  const world = { schema: "bb".repeat(32), types: [TRADER] };
  const core = new ClientCore(world, { name: "a", password: "b" }, () => 0.5);
  core.start(0);
  core.loginAnswered(1, 1, TICKET);
  core.connected(2, 2);
  core.frame(3, 2, WELCOME);
  assert.deepEqual(kinds(core.takeEvents()), ["connected"]);
  core.takeOutputs();
  const view = new BaseView();
  const client = { core, view, attempt: 2 };
  client.frame = (now, bytes) => core.frame(now, client.attempt, bytes);
  client.buy = (now, within) => core.ask(now, "base", OWN, "buy", [7], within);
  client.answer = (now, call, outcome) => client.frame(now, view.frame(replyEvent(call, outcome)));
  client.settled = () => core.takeSettled().map(({ id, outcome }) => [id, outcomeOf(outcome)]);
  return client;
}

/** Return values, or the failure instead of its error. */
function outcomeOf(outcome) {
  if (!(outcome instanceof CallFailed)) {
    return outcome;
  }
  assert.ok(outcome instanceof Error && outcome.name === "CallFailed");
  assert.ok(outcome.message.startsWith(`${outcome.method}: `));
  return outcome.failure;
}

const VALUES = Object.fromEntries([["gold", 12n], ["__proto__", "thanks"]]);
const LOST = { kind: "lost" };
const NO_REPLY = { kind: "noReply" };

test("a call settles with its return values by name, and the reply is shown", () => {
  const { core, answer, settled, buy } = playing();
  const id = buy(10);
  assert.deepEqual(kinds(core.takeOutputs()), ["frame"], "it is sent");
  assert.equal(core.unconfirmedCalls, 1);
  assert.deepEqual(settled(), []);
  answer(20, 1, bought(12n, "thanks"));
  assert.deepEqual(settled(), [[id, VALUES]]);
  const [, { kind, part, entity, number, shown }] = core.takeEvents();
  assert.deepEqual([kind, part, entity, number], ["shown", "base", OWN, 1n]);
  const given = { ok: true, values: [12n, "thanks"] };
  assert.deepEqual(shown, { kind: "reply", part: "base", call: 1n, method: 1, outcome: given });
  answer(30, 1, bought(13n, "again"));
  assert.deepEqual(settled(), [], "once");
});

test("answers belong to their calls in any order, also beside calls that nobody waits for", () => {
  const { core, answer, settled, buy } = playing();
  const first = buy(10);
  assert.equal(core.call(11, "base", OWN, "buy", [8]), 2n);
  const second = buy(12);
  answer(20, 3, bought(3n, ""));
  answer(21, 2, bought(2n, ""));
  answer(22, 4, bought(4n, ""));
  answer(23, 1, bought(1n, ""));
  assert.deepEqual(settled().map(([id, { gold }]) => [id, gold]), [[second, 3n], [first, 1n]]);
});

test("a call fails with the error of the server", () => {
  const failures = [
    [failed(1, "no"), { kind: "authenticate", text: "no" }],
    [failed(4), NO_REPLY],
    [failed(6), { kind: "noSuchCellEntity" }],
    [failed(7, "TooPoor", "12 are missing"), { kind: "custom", name: "TooPoor", text: "12 are missing" }],
  ];
  const { answer, settled, buy } = playing();
  failures.forEach(([outcome, failure], i) => {
    const id = buy(10 + i);
    answer(20 + i, i + 1, outcome);
    assert.deepEqual(settled(), [[id, failure]]);
  });
});

test("a call that is refused fails alone", () => {
  const { core, frame, answer, settled, buy } = playing();
  const [first, second] = [buy(10), buy(11)];
  frame(20, refused(2, 3));
  frame(21, refused(9, 3));
  assert.deepEqual(settled(), [[second, { kind: "refused", reason: "TooOften" }]]);
  assert.deepEqual(kinds(core.takeEvents()), ["callRefused", "callRefused"]);
  answer(22, 1, bought(12n, "thanks"));
  assert.deepEqual(settled(), [[first, VALUES]]);
});

test("all calls of a part that is gone fail, and only these", () => {
  const { core, frame, answer, settled, buy } = playing();
  const [first, second] = [buy(10), buy(11)];
  const other = core.ask(12, "cell", OWN, "open", []);
  frame(20, took(1));
  frame(21, gone());
  assert.deepEqual(settled(), [[first, LOST], [second, LOST]], "the first one was confirmed");
  assert.deepEqual(core.takeEvents(), [{ kind: "callsLost", part: "base", entity: OWN, numbers: [2n] }]);
  // A further part of the entity continues the numbers, so that no call is taken for one of the former part.
  const list = core.ask(30, "base", OWN, "list", []);
  assert.equal(core.call(30, "base", OWN, "list", []), 4n);
  answer(31, 1, bought(12n, "thanks"));
  assert.deepEqual(settled(), [], "an answer to a former call");
  core.leave();
  assert.deepEqual(settled().map(([id]) => id), [other, list]);
});

test("the wait for an answer ends after 30 s, or when the game wants, and a late answer has no effect", () => {
  const { core, frame, settled, buy } = playing();
  const [usual, short, endless] = [buy(100), buy(101, 50), buy(102, Infinity)];
  frame(103, took(3));
  core.tick(103);
  assert.equal(core.deadline(), 151);
  core.tick(150);
  assert.deepEqual(settled(), []);
  core.tick(151);
  assert.deepEqual(settled(), [[short, NO_REPLY]]);
  // The views begin again meanwhile, since nothing comes.
  core.tick(30_099);
  assert.deepEqual(settled(), []);
  core.tick(30_100);
  assert.deepEqual(settled(), [[usual, NO_REPLY]]);
  assert.equal(core.unconfirmedCalls, 0);
  core.disconnected(30_200, 2, "Lost");
  core.tick(10_000_000);
  assert.deepEqual(settled(), []);
  core.leave();
  assert.deepEqual(settled(), [[endless, { kind: "ended", reason: { kind: "left" } }]]);
  const late = playing();
  late.buy(100, 50);
  late.core.tick(150);
  late.settled();
  late.answer(151, 1, bought(12n, "thanks"));
  assert.deepEqual(late.settled(), []);
  assert.deepEqual(kinds(late.core.takeEvents()), ["entered", "shown"], "it is shown nevertheless");
  for (const time of [-1, Number.NaN, "5 s"]) {
    assert.throws(() => late.buy(200, time), RangeError);
  }
});

test("the wait continues over reconnections, and ends in time while there is no connection", () => {
  const client = playing();
  const { core, settled, buy, answer, view } = client;
  const [answered, overdue] = [buy(10), buy(11, 200)];
  core.disconnected(100, 2, "Lost");
  const meanwhile = buy(101);
  assert.deepEqual(kinds(core.takeEvents()), ["lost"]);
  assert.deepEqual(settled(), []);
  assert.equal(core.deadline(), 211);
  core.tick(211);
  assert.deepEqual(settled(), [[overdue, NO_REPLY]]);
  core.loginAnswered(220, 3, LOCATED);
  core.connected(230, 4);
  core.takeOutputs();
  client.attempt = 4;
  client.frame(240, WELCOME);
  assert.deepEqual(kinds(core.takeEvents()), ["resumed"]);
  assert.equal(core.takeOutputs().filter(({ kind }) => kind === "frame").length, 2 + 3, "two views and three calls");
  view.begin();
  answer(250, 3, bought(3n, ""));
  answer(251, 1, bought(1n, ""));
  assert.deepEqual(settled().map(([id, { gold }]) => [id, gold]), [[meanwhile, 3n], [answered, 1n]]);
});

test("calls that wait when the client ends fail with the reason, and none is made after that", () => {
  const { core, settled, buy, answer } = playing();
  const id = buy(10);
  core.disconnected(20, 2, "LoggedInElsewhere");
  const reason = { kind: "closed", reason: "LoggedInElsewhere" };
  assert.deepEqual(core.takeEvents(), [{ kind: "ended", reason }]);
  assert.deepEqual(settled(), [[id, { kind: "ended", reason }]]);
  core.leave();
  answer(30, 1, bought(12n, "thanks"));
  assert.deepEqual(settled(), []);
  assert.equal(core.deadline(), Infinity);
  assert.throws(() => buy(40), CallError);
  assert.equal(core.unconfirmedCalls, 1);
});

test("so many calls wait for answers and no more", () => {
  const { core, frame, answer, settled, buy } = playing();
  for (let call = 1; call <= MAX_ASKS; call++) {
    buy(call, 1e9);
    frame(call, took(call));
  }
  assert.throws(() => buy(2_000), CallError);
  assert.equal(core.unconfirmedCalls, 0, "it was not made");
  answer(2_001, 5, failed(4));
  assert.equal(settled().length, 1);
  buy(2_002);
  assert.throws(() => buy(2_003), CallError);
  assert.equal(core.call(2_004, "base", OWN, "ping", [1]), BigInt(MAX_ASKS) + 2n, "others are made");
});

test("what `call` does not take is not asked, nor is a one-way method", () => {
  const { core, settled } = playing();
  for (const [method, args] of [["ping", [1]], ["buy", []], ["buy", ["7"]], ["open", []], ["fly", []]]) {
    assert.throws(() => core.ask(10, "base", OWN, method, args), CallError, method);
  }
  assert.throws(() => core.ask(10, "base", OWN, "ping", [1]), /ping is one-way/);
  assert.throws(() => core.ask(10, "base", 5n, "buy", [7]), CallError);
  assert.deepEqual([core.takeOutputs(), core.unconfirmedCalls, settled()], [[], 0, []]);
  const id = core.ask(11, "cell", OWN, "open", []);
  assert.ok(id > 0, "a method without return values that is two-way");
});
