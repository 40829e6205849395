import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, generator, module } from "./support.js";

const { Shower } = await module("changes");
const { Malformed } = await module("bytes");

const array = (of) => ({ kind: "ARRAY", of, size: null });
const BAG = { kind: "FIXED_DICT", allowNone: false, fields: [["a", array("INT32")], ["b", "STRING"]] };
const property = (name, stream, initial) => ({ name, declared: name, part: "cell", stream, initial });

const first = `0107000000${"05"}${hexText("first")}`;
const second = `00${"06"}${hexText("second")}`;
const third = `020800000009000000${"05"}${hexText("third")}`;

/** The type of `shown.def`, beside the vectors. */
const TYPE = {
  id: 0,
  name: "Shown",
  properties: [
    property("level", "UINT8", "00"),
    property("health", "INT32", "64000000"),
    property("title", "STRING", "00"),
    property("marks", array("INT16"), "0501000200030004000500"),
    property("bags", array(BAG), `03${first}${second}${third}`),
  ],
  methods: [
    { name: "onHit", declared: "onHit", args: ["UINT8", "INT16"] },
    { name: "onSay", declared: "onSay", args: ["UNICODE_STRING"] },
  ],
  baseCalls: [
    {
      name: "price",
      declared: "price",
      args: ["UINT16"],
      ownOnly: true,
      returns: [["gold", "UINT32"], ["seller", "UNICODE_STRING"]],
    },
  ],
  cellCalls: [
    { name: "wave", declared: "wave", args: [], ownOnly: false },
    { name: "inspect", declared: "inspect", args: [], ownOnly: false, returns: [["mood", "INT8"]] },
  ],
};

function hexText(text) {
  return Buffer.from(text).toString("hex");
}

const bag = (a, b) => ({ a, b: Uint8Array.from(Buffer.from(b)) });
const CHANGES = [13, 14, 15, 16, 300, 301, 302, 303, 304, 306, 307, 308, 309];
const REPLIES = [310, 313, 314, 315, 316, 317, 318, 319, 320];
const NUMBERS = [...CHANGES, ...REPLIES].map(BigInt);

test("the vectors of shown events give the values that they are meant to", () => {
  const shower = new Shower(TYPE);
  const values = shower.initial();
  assert.deepEqual(values, [
    0,
    100,
    new Uint8Array(),
    [1, 2, 3, 4, 5],
    [bag([7], "first"), bag([], "second"), bag([8, 9], "third")],
  ]);
  const received = [];
  let from = 12n;
  for (const { bytes } of cases("shown")) {
    shower.apply(bytes, [from, 1_000n], values, (number, shown) => {
      received.push([number, shown]);
      from = number;
    });
  }
  assert.deepEqual(received.map(([number]) => number), NUMBERS);
  assert.deepEqual(values, [
    7,
    -2,
    Uint8Array.from(Buffer.from("Sir")),
    [-1, -2, -3, 6, 7],
    [bag([7], "1st"), bag([5], "second"), bag([8, 10], "third")],
  ]);
  const shown = new Map(received);
  assert.deepEqual(shown.get(13n), { kind: "set", property: 0, old: 0 });
  assert.deepEqual(shown.get(300n), { kind: "nested", property: 3, path: [3], old: 2 });
  assert.deepEqual(shown.get(301n), { kind: "nested", property: 4, path: [2, "a", 1], old: 9 });
  assert.deepEqual(shown.get(302n), {
    kind: "nested",
    property: 4,
    path: [0, "b"],
    old: Uint8Array.from(Buffer.from("first")),
  });
  assert.deepEqual(shown.get(303n), { kind: "slice", property: 3, path: [], at: 5, end: 7, old: [] });
  assert.deepEqual(shown.get(304n), { kind: "slice", property: 3, path: [], at: 1, end: 1, old: [4, 3, 8] });
  assert.deepEqual(shown.get(306n), { kind: "slice", property: 3, path: [], at: 0, end: 3, old: [5, 1] });
  assert.deepEqual(shown.get(307n), { kind: "slice", property: 4, path: [1, "a"], at: 0, end: 1, old: [] });
  assert.deepEqual(shown.get(308n), { kind: "method", method: 0, args: [9, -9] });
  assert.deepEqual(shown.get(309n), { kind: "method", method: 1, args: ["hi"] });
  const reply = (part, call, method, outcome) => ({ kind: "reply", part, call, method, outcome });
  assert.deepEqual(shown.get(310n), reply("base", 1n, 0, { ok: true, values: [70_000, "Ann"] }));
  assert.deepEqual(shown.get(313n), reply("cell", 300n, 1, { ok: true, values: [-2] }));
  const failures = [
    { kind: "authenticate", text: "no" },
    { kind: "internal", text: "" },
    { kind: "invalidArgs", text: "kind" },
    { kind: "noReply" },
    { kind: "noSuchEntity" },
    { kind: "noSuchCellEntity" },
    { kind: "custom", name: "Poor", text: "70 are missing" },
  ];
  failures.forEach((failure, i) => {
    assert.deepEqual(shown.get(BigInt(314 + i)), reply("base", BigInt(2 + i), 0, { ok: false, failure }));
  });
});

test("events that were changed on the way are applied or refused, and nothing else is thrown", () => {
  const vectors = cases("shown").map(({ bytes }) => bytes);
  const next = generator(1);
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = Uint8Array.from(Buffer.concat(vectors.filter(() => next(3) === 0)));
    for (let i = next(4); i > 0 && bytes.length > 0; i--) {
      bytes[next(bytes.length)] = next(256);
    }
    const shower = new Shower(TYPE);
    try {
      shower.apply(bytes.subarray(0, next(bytes.length + 1)), [0n, 1n << 60n], shower.initial(), () => {});
    } catch (error) {
      assert.ok(error instanceof Malformed, String(error));
      refused += 1;
    }
  }
  assert.ok(refused > 1_000 && refused < 19_900, `${refused} of 20000 were refused`);
});
