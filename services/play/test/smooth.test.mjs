// Others are drawn between the places that arrived, without leaps.
import assert from "node:assert/strict";
import { test } from "node:test";

const { Track } = await import(`${process.env.ANNALS_PAGE}/play/src/smooth.js`);

const place = (x, yaw = 0) => ({ position: { x, y: 0, z: 0 }, direction: { yaw, pitch: 0, roll: 0 } });

/** Where a walker is drawn at each frame, of a track that gets these places at these moments. */
function frames(places, until) {
  const track = new Track();
  const drawn = [];
  for (let now = 0; now <= until; now += 16) {
    places.filter(([at]) => at <= now && at > now - 16).forEach(([, where]) => track.note(now, where));
    drawn.push(track.at(now)?.x);
  }
  return drawn.filter((x) => x !== undefined);
}

test("steady steps are drawn at a steady speed", () => {
  const steps = Array.from({ length: 30 }, (_, i) => [i * 100, place(i * 0.5)]);
  const drawn = frames(steps, 2_900);
  const ways = drawn.slice(1).map((x, i) => x - drawn[i]);
  // A step of 0.5 m each 100 ms is 0.08 m per frame. Moments are those of frames, which are 16 ms apart.
  assert(ways.every((way) => way >= 0 && way < 0.13), `${Math.max(...ways)}`);
  assert(drawn.at(-1) > 12, `${drawn.at(-1)} is behind by less than half a second`);
});

test("a movement after a pause begins when it begins", () => {
  const drawn = frames([[0, place(0)], [5_000, place(0.5)], [5_100, place(1)], [5_200, place(1.5)]], 5_600);
  const begun = drawn.findIndex((x) => x > 0.01) * 16;
  assert(begun > 4_900, `it moves at ${begun} ms`);
  assert.equal(drawn.at(-1), 1.5);
});

test("somebody who was put elsewhere is there at once", () => {
  const drawn = frames([[0, place(0)], [100, place(0.5)], [200, place(80)]], 700);
  assert(drawn.every((x) => x <= 0.5 || x === 80), `${drawn}`);
  assert.equal(drawn.at(-1), 80);
});

test("a turn takes the shorter way", () => {
  const track = new Track();
  track.note(0, place(0, 3));
  track.note(100, place(0, -3));
  for (let now = 100; now < 400; now += 16) {
    const { yaw } = track.at(now);
    assert(Math.abs(yaw) >= 3 - 1e-9, `${yaw}`);
  }
});
