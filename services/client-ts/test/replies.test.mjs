import assert from "node:assert/strict";
import { test } from "node:test";
import { generator, module } from "./support.js";
import { TRADER, bought, failed, replyEvent } from "./two_way.js";

const { Malformed, Writer } = await module("bytes");
const { Shower } = await module("changes");
const { callRange } = await module("message_ids");

/** What is shown of these events, which follow history number 10. */
function read(bytes, { type = TRADER, upto = 1_000n } = {}) {
  const shower = new Shower(type);
  const all = [];
  shower.apply(bytes, [10n, upto], shower.initial(), (number, shown) => all.push([number, shown]));
  return all;
}

const outcomeOf = (outcome, where) => {
  const [[, shown]] = read(replyEvent(7, outcome, where));
  assert.equal(shown.kind, "reply");
  return shown.outcome;
};

test("replies are events of the history, with and without a gap before them", () => {
  const hit = Uint8Array.of(3, 9);
  const events = [
    hit,
    replyEvent(1, bought(-5n, "thanks")),
    replyEvent(300, failed(4), { part: "cell", method: 0, gap: 20 }),
    Uint8Array.of(2, 4, 3, 8),
    replyEvent(2, failed(5)),
  ];
  const reply = (part, call, method, outcome) => ({ kind: "reply", part, call, method, outcome });
  assert.deepEqual(read(Buffer.concat(events)), [
    [11n, { kind: "set", property: 0, old: 5 }],
    [12n, reply("base", 1n, 1, { ok: true, values: [-5n, "thanks"] })],
    [33n, reply("cell", 300n, 0, { ok: false, failure: { kind: "noReply" } })],
    [38n, { kind: "set", property: 0, old: 9 }],
    [39n, reply("base", 2n, 1, { ok: false, failure: { kind: "noSuchEntity" } })],
  ]);
});

test("each outcome is read", () => {
  const failures = [
    [failed(1, "not yours"), { kind: "authenticate", text: "not yours" }],
    [failed(2, "ß"), { kind: "internal", text: "ß" }],
    [failed(3, ""), { kind: "invalidArgs", text: "" }],
    [failed(4), { kind: "noReply" }],
    [failed(5), { kind: "noSuchEntity" }],
    [failed(6), { kind: "noSuchCellEntity" }],
    [failed(7, "TooPoor", "x".repeat(1024)), { kind: "custom", name: "TooPoor", text: "x".repeat(1024) }],
  ];
  for (const [bytes, failure] of failures) {
    assert.deepEqual(outcomeOf(bytes), { ok: false, failure });
  }
  const list = { method: 2 };
  assert.deepEqual(outcomeOf(Uint8Array.of(0, 2, 1, 0, 0, 1), list), { ok: true, values: [[1, 256]] });
  assert.deepEqual(outcomeOf(failed(0), { part: "cell", method: 0 }), { ok: true, values: [] });
});

test("the method is one of the calls of its part, of however many", () => {
  const calls = Array.from({ length: 300 }, (_, i) => ({ ...TRADER.cellCalls[0], name: `m${i}` }));
  const type = { ...TRADER, cellCalls: calls };
  for (const method of [0, 254, 255, 299]) {
    const writer = new Writer().u8(2).u8(0).u8(1).number(9);
    callRange(calls.length).write(writer, method);
    const [[, shown]] = read(writer.u8(0).finish(), { type });
    assert.deepEqual([shown.part, shown.method], ["cell", method]);
  }
});

test("what is no reply is refused", () => {
  const bad = [
    [2, 0],
    [2, 0x80, 0, 0, 1, 1, 4],
    [2, 5, 2, 7, 3, 9],
    [2, 0, 2, 0, 1, 1, 4],
    [2, 0, 0, 1, 3, 4],
    [2, 0, 1, 1, 1, 4],
    [2, 0, 0, 1, 1, 8],
    [2, 0, 0, 1, 1, 1, 1, 0xff],
    [2, 0, 0, 1, 1, 7, 1, 65],
    [2, 0, 0, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f],
    [2, 0, 0, 1, 2, 0, 0xff, 0xff, 0xff, 0xff],
    [...replyEvent(1, failed(1, "x".repeat(1025)))],
  ];
  for (const bytes of bad) {
    assert.throws(() => read(Uint8Array.from(bytes)), Malformed, `${bytes.slice(0, 12)}`);
  }
  const late = replyEvent(1, failed(4), { gap: 5 });
  assert.equal(read(late, { upto: 16n }).length, 1);
  assert.throws(() => read(late, { upto: 15n }), Malformed);
});

/** A reply of each kind. */
const REPLIES = [
  replyEvent(1, bought(5n, "thanks")),
  replyEvent(2, Uint8Array.of(0, 2, 1, 0, 2, 0), { method: 2, gap: 300 }),
  replyEvent(3, failed(0), { part: "cell", method: 0 }),
  ...[1, 2, 3].map((code) => replyEvent(4, failed(code, "because"), { gap: 1 })),
  ...[4, 5, 6].map((code) => replyEvent(400, failed(code))),
  replyEvent(6, failed(7, "TooPoor", "because")),
];

test("a reply that is cut off is refused", () => {
  for (const bytes of REPLIES) {
    assert.equal(read(bytes).length, 1);
    for (let length = 1; length < bytes.length; length++) {
      assert.throws(() => read(bytes.slice(0, length)), Malformed, `${length} of ${bytes}`);
    }
  }
});

test("changed and random replies are read or refused, and nothing else is thrown", () => {
  const next = generator(6);
  let refused = 0;
  let replies = 0;
  for (let round = 0; round < 20_000; round++) {
    const isRandom = next(2) === 0;
    const noise = Array.from({ length: next(24) }, () => next(next(2) === 0 ? 9 : 256));
    const chosen = REPLIES.filter(() => next(4) === 0);
    const bytes = Uint8Array.from(isRandom ? [2, 0, ...noise] : Buffer.concat(chosen));
    for (let i = isRandom ? 0 : next(4); i > 0 && bytes.length > 0; i--) {
      bytes[next(bytes.length)] = next(256);
    }
    try {
      replies += read(bytes, { upto: 1n << 60n }).filter(([, { kind }]) => kind === "reply").length;
    } catch (error) {
      assert.ok(error instanceof Malformed, String(error));
      refused += 1;
    }
  }
  assert.ok(refused > 1_000 && replies > 1_000, `${refused} of 20000 were refused, ${replies} replies were read`);
});
