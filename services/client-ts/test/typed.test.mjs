import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./support.js";

const { EVERY, Types } = await module("typed");

const USES = { kind: "ARRAY", of: "UINT8", size: null };
const ITEM = { kind: "FIXED_DICT", allowNone: false, fields: [["kind", "UINT16"], ["uses", USES]] };
const BAG = { kind: "ARRAY", of: ITEM, size: null };
const AVATAR = {
  id: 4,
  name: "Avatar",
  properties: [
    { name: "hp", declared: "hp", part: "cell", stream: "UINT8", initial: "05" },
    { name: "bag", declared: "bag", part: "base", stream: BAG, initial: "00" },
    { name: "home", declared: "home", part: "base", stream: { kind: "TUPLE", of: "UINT8", size: 2 }, initial: "0000" },
  ],
  methods: [{ name: "onSay", declared: "onSay", args: ["UNICODE_STRING"] }],
  baseCalls: [
    { name: "ping", declared: "ping", args: ["UINT8"], ownOnly: true },
    { name: "buy", declared: "buy", args: ["UINT8"], ownOnly: true, returns: [["gold", "INT64"]] },
  ],
  cellCalls: [
    { name: "__proto__", declared: "__proto__", args: [], ownOnly: true },
    { name: "say", declared: "say", args: [], ownOnly: true },
  ],
};
const CHEST = { id: 5, name: "Chest", properties: [], methods: [], baseCalls: [], cellCalls: [] };

/** A client with an avatar and a chest in view. */
function fake() {
  const values = { hp: 7, bag: [{ kind: 1, uses: [2, 3] }, { kind: 9, uses: [] }], home: [1, 2] };
  const place = { position: { x: 1, y: 2, z: 3 }, direction: { yaw: 0, pitch: 0, roll: 0 } };
  const inView = new Map([
    [10n, { id: 10n, type: AVATAR, place, property: (name) => values[name] }],
    [11n, { id: 11n, type: CHEST, place: undefined, property: () => undefined }],
  ]);
  const calls = [];
  return {
    values,
    calls,
    entity: (id) => inView.get(id),
    entities: () => [...inView.values()],
    call: (...call) => BigInt(calls.push(call)),
    ask: async (...call) => ({ gold: BigInt(calls.push(["asked", ...call])) }),
  };
}

const shown = (entity, what) => ({ kind: "shown", part: "base", entity, number: 1n, shown: what });

test("entities of a type are read and called by name", async () => {
  const client = fake();
  const avatars = new Types([AVATAR, CHEST]).of("Avatar");
  const avatar = avatars.entity(client, 10n);
  assert.deepEqual([avatar.get("hp"), avatar.place.position.x, avatars.id], [7, 1, 4]);
  assert.equal(avatar.base.ping(3), 1n);
  assert.equal(avatar.cell.say(), 2n);
  assert.equal(Object.hasOwn(avatar.cell, "__proto__") && avatar.cell["__proto__"](), 3n);
  assert.deepEqual(client.calls, [
    ["base", 10n, "ping", [3]],
    ["cell", 10n, "say", []],
    ["cell", 10n, "__proto__", []],
  ]);
  assert.deepEqual(await avatar.base.buy(7), { gold: 4n });
  assert.deepEqual(client.calls[3], ["asked", "base", 10n, "buy", [7]]);
  assert.equal(avatars.entity(client, 11n), undefined, "a chest");
  assert.equal(avatars.entity(client, 12n), undefined, "not in view");
  assert.deepEqual(avatars.entities(client).map(({ id }) => id), [10n]);
});

test("a change goes to the callback with the longest path to it, or around it", () => {
  const client = fake();
  const types = new Types([AVATAR, CHEST]);
  const avatars = types.of("Avatar");
  const records = [];
  const record = (name) => (entity, { value, path, old, slice }) => records.push([name, entity.id, value, path, old, slice]);
  const happens = (...changes) => {
    changes.forEach((change) => types.dispatch(client, shown(10n, change)));
    return records.splice(0);
  };
  const bag = { property: 1 };
  const uses = { kind: "slice", ...bag, path: [0, "uses"], at: 0, end: 2, old: [8] };
  avatars.on("bag", record("bag"));
  assert.deepEqual(happens({ kind: "set", ...bag, old: [] }), [["bag", 10n, client.values.bag, [], [], undefined]]);
  assert.deepEqual(
    happens({ kind: "nested", ...bag, path: [1, "kind"], old: 4 }, uses),
    Array(2).fill(["bag", 10n, client.values.bag, [], undefined, undefined]),
  );
  avatars.on(["bag", EVERY], record("item"));
  avatars.on(["bag", EVERY, "kind"], record("kind"));
  assert.deepEqual(happens({ kind: "nested", ...bag, path: [1, "kind"], old: 4 }, uses), [
    ["kind", 10n, 9, [1, "kind"], 4, undefined],
    ["item", 10n, { kind: 1, uses: [2, 3] }, [0], undefined, undefined],
  ]);
  assert.deepEqual(happens({ kind: "nested", ...bag, path: [1], old: "former" }), [
    ["item", 10n, client.values.bag[1], [1], "former", undefined],
  ]);
  avatars.on(["bag", EVERY, "uses"], record("uses"));
  assert.deepEqual(happens(uses), [["uses", 10n, [2, 3], [0, "uses"], undefined, { at: 0, end: 2, old: [8] }]]);
  assert.deepEqual(happens({ ...uses, path: [5, "uses"] }), [], "an item that is not there any more");
  avatars.on(["bag", EVERY, "kind"], record("another"));
  assert.equal(happens({ kind: "nested", ...bag, path: [0, "kind"], old: 4 })[0][0], "another");
  assert.deepEqual(happens({ kind: "set", property: 0, old: 1 }), [], "nobody is interested");
});

test("whole states and client methods are received, of entities in view", () => {
  const client = fake();
  const types = new Types([AVATAR, CHEST]);
  const records = [];
  types.of("Avatar").on("hp", (avatar, { value, old }) => records.push([avatar.id, value, old]));
  types.of("Avatar").onCall("onSay", (avatar, words) => records.push([avatar.id, words]));
  types.dispatch(client, { kind: "refreshed", part: "cell", entity: 10n, replaced: new Map([[0, 5]]) });
  types.dispatch(client, shown(10n, { kind: "method", method: 0, args: ["hello"] }));
  types.dispatch(client, shown(99n, { kind: "method", method: 0, args: ["nobody"] }));
  types.dispatch(client, shown(11n, { kind: "method", method: 0, args: ["a chest"] }));
  const outcome = { ok: true, values: [1n] };
  types.dispatch(client, shown(10n, { kind: "reply", part: "base", call: 1n, method: 0, outcome }));
  types.dispatch(client, { kind: "resumed" });
  assert.deepEqual(records, [[10n, 7, 5], [10n, "hello"]]);
});

test("what is not there is refused at once", () => {
  const types = new Types([AVATAR]);
  const avatars = types.of("Avatar");
  for (const where of ["mana", ["bag", "kind"], ["bag", EVERY, "weight"], ["hp", EVERY], ["home", EVERY]]) {
    assert.throws(() => avatars.on(where, () => {}), TypeError, `${where}`);
  }
  assert.throws(() => avatars.onCall("onFly", () => {}), TypeError);
  assert.throws(() => types.of("Dragon"), TypeError);
});
