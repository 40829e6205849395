import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./support.js";

const { SpaceData } = await module("space_data");

const entry = (key, since, by, value, life = 0) =>
  ({ key, version: { life: BigInt(life), since: BigInt(since), by }, value: Uint8Array.from(value) });
const same = (what, found, wanted) => assert.deepEqual(found, wanted, what);

test("space data follows the rules of the protocol", () => {
  const data = new SpaceData();
  const changed = [];
  data.onChange = (key) => changed.push(key);
  same("new", data.take(entry(300, 10, 3, [1])), true);
  same("older", data.take(entry(300, 9, 9, [2])), false);
  same("the same", data.take(entry(300, 10, 3, [3])), false);
  same("of a higher owner", data.take(entry(300, 10, 4, [4])), true);
  same("held", [...data.get(300)], [4]);
  const day = new DataView(new ArrayBuffer(24));
  day.setFloat64(0, 3600, true);
  day.setFloat64(8, 60, true);
  day.setBigUint64(16, 1000n, true);
  same("time", data.take(entry(0, 20, 1, new Uint8Array(day.buffer))), true);
  same("time goes on", data.timeOfDay(2000), 3660);
  same("over midnight", data.timeOfDay(1000 - 61 * 60 * 1000 / 60 * 1), 3600 - 61 * 60 + 86400);
  same("removed", [data.take(entry(301, 30, 1, [])), data.get(301) === undefined], [true, true]);
  changed.length = 0;
  same("written while it is gone", data.take(entry(300, 99, 1, [9], 1)), false);
  same("opened", data.take(entry(1, 0, 1, [], 2)), true);
  same("void", [data.get(300) === undefined, data.timeOfDay(0) === undefined], [true, true]);
  same("changed", changed, [0, 1, 300, 301]);
  same("void stays away", data.take(entry(300, 99, 1, [5])), false);
  same("again", data.take(entry(1, 0, 2, [], 2)), false);
  same("written since", data.take(entry(301, 5, 1, [6], 2)), true);
  changed.length = 0;
  same("in a later life", data.take(entry(302, 1, 1, [7], 4)), true);
  same("changed by that", changed, [1, 301, 302]);
  const found = data.versions().map(([key, { life, since, by }]) => [key, Number(life), Number(since), by]);
  same("versions", found, [[1, 4, 0, 0], [302, 4, 1, 1]]);
});
