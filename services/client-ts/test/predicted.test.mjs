import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf, cases, generator, module } from "./support.js";

const { PredictedReader, moved } = await module("predicted");
const { Malformed, Writer } = await module("bytes");
const frames = await module("frames");

const VIEW = 300n;
/** That of observers who see 500 m far. */
const SCALE = Math.fround(500 / 509);

/** What the file says of a datagram: one line for each motion. */
const number = (text) => (text === "-" ? undefined : Math.fround(Number(text)));

test("datagrams are read as by the reader in Rust, over loss and disorder", () => {
  const reader = new PredictedReader(VIEW, SCALE);
  const found = cases("predicted");
  assert.ok(found.length > 90);
  for (const { name, text, bytes } of found) {
    const [first, ...lines] = text.split("\n");
    const moves = reader.read(bytes, BigInt(name.replace("at ", "")));
    if (first === "late") {
      assert.equal(moves, undefined, name);
      continue;
    }
    assert.equal(`tick ${moves.tick}`, first);
    const { tick, before } = reader.ack();
    assert.equal(`ack ${tick} ${before}`, lines.pop());
    assert.equal(moves.motions.length, lines.length);
    lines.forEach((line, i) => {
      const [entity, ...parts] = line.split(" ");
      const { entity: read, position, direction } = moves.motions[i];
      assert.equal(read, BigInt(entity));
      parts.forEach((part, at) => {
        const value = [...position, ...direction][at];
        // 0 and -0 are one place.
        assert.ok(value === number(part), `${name}: ${line}: ${value}`);
      });
    });
  }
});

test("what was not sent of a place stays", () => {
  const place = { position: { x: 1, y: 2, z: 3 }, direction: { yaw: 4, pitch: 5, roll: 6 } };
  const part = { entity: 1n, position: [7, undefined, 9], direction: [0, undefined, undefined] };
  assert.deepEqual(moved(place, part), { position: { x: 7, y: 2, z: 9 }, direction: { yaw: 0, pitch: 5, roll: 6 } });
  assert.deepEqual(moved(undefined, part).position, { x: 7, y: 0, z: 9 });
});

test("changed, shortened and arbitrary datagrams are read or refused, and change nothing that they should not", () => {
  const next = generator(6);
  const vectors = cases("predicted");
  for (let round = 0; round < 200; round++) {
    const reader = new PredictedReader(VIEW, SCALE);
    for (const { name, bytes } of vectors.slice(0, 1 + next(40))) {
      const now = BigInt(name.replace("at ", ""));
      const changed = bytes.slice(0, next(3) === 0 ? next(bytes.length) : bytes.length);
      for (let i = next(4); i > 0 && changed.length > 0; i--) {
        changed[next(changed.length)] = next(256);
      }
      const body = Uint8Array.from({ length: next(40) }, () => next(256));
      const noise = new Writer().u8(2).number(VIEW).raw(body).finish();
      for (const hostile of [changed, noise, noise.subarray(0, next(noise.length))]) {
        const before = reader.ack();
        try {
          const moves = reader.read(hostile, now);
          for (const { position, direction } of moves?.motions ?? []) {
            assert.ok([...position, ...direction].every((part) => part === undefined || Number.isFinite(part)));
          }
        } catch (error) {
          assert.ok(error instanceof Malformed, `${error.stack}`);
          assert.deepEqual(reader.ack(), before);
        }
      }
      assert.ok(reader.slots.size <= 1_024 && [...reader.slots.values()].every((states) => states.length <= 32));
    }
  }
});
