
/** Which of two values in a space's data is the newer one: the one of the later life of the space, then the one with the later
 * `since`, then the one of the higher owner. In a space that is gone, in an odd life, nothing is written. */
export interface SpaceVersion {
  readonly life: bigint;
  readonly since: bigint;
  readonly by: number;
}

/** What stands under a key in a space's data. An empty value is none. */
export interface SpaceEntry {
  readonly key: number;
  readonly version: SpaceVersion;
  readonly value: Uint8Array;
}

/** The data of the space in which the client's own entity is, as frames tell it. Another space has another one. */
export class SpaceData {
  /** Called with each key under which something else stands now, or nothing any more. */
  onChange: (key: number) => void = () => {};

  private readonly entries = new Map<number, SpaceEntry>();

  /** Takes an entry, if it is newer than what is held. What was written in an earlier life of the space is dropped. */
  take(entry: SpaceEntry): boolean {
    const { key, version } = entry;
    const life = this.entries.get(1)?.version.life ?? 0n;
    const held = this.entries.get(key)?.version;
    const isLate = key === 1 ? version.life <= life : version.life < life || version.life % 2n !== 0n;
    if (isLate || (key !== 1 && held !== undefined && !SpaceData.isNewer(version, held))) {
      return false;
    }
    const changed = new Set<number>();
    if (version.life > life) {
      [...this.entries.keys(), 1].forEach((other) => changed.add(other));
      this.entries.clear();
      const begun = { life: version.life, since: 0n, by: 0 };
      this.entries.set(1, { key: 1, version: begun, value: new Uint8Array() });
    }
    if (key !== 1) {
      this.entries.set(key, entry);
      changed.add(key);
    }
    [...changed].sort((one, other) => one - other).forEach((other) => this.onChange(other));
    return true;
  }

  /** What stands under a key. */
  get(key: number): Uint8Array | undefined {
    const value = this.entries.get(key)?.value;
    return value?.length === 0 ? undefined : value;
  }

  /** The versions of all that is held, ascending by key: what a client names when it begins a view. */
  versions(): readonly (readonly [key: number, version: SpaceVersion])[] {
    const held = [...this.entries.values()].sort((one, other) => one.key - other.key);
    return held.map((entry) => [entry.key, entry.version] as const);
  }

  /** The time of day, seconds since midnight, at so many milliseconds of game time: 100 times the tick of a cell's frame. */
  timeOfDay(gameTime: number): number | undefined {
    const value = this.get(0);
    if (value === undefined || value.length !== 24) {
      return undefined;
    }
    const view = new DataView(value.buffer, value.byteOffset, value.length);
    const passed = (gameTime - Number(view.getBigUint64(16, true))) / 1000;
    const time = (view.getFloat64(0, true) + passed * view.getFloat64(8, true)) % 86400;
    return time < 0 ? time + 86400 : time;
  }

  private static isNewer(one: SpaceVersion, other: SpaceVersion): boolean {
    if (one.life !== other.life) {
      return one.life > other.life;
    }
    return one.since === other.since ? one.by > other.by : one.since > other.since;
  }
}
