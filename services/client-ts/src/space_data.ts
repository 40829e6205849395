/**
 * The version of a value in a space's data. The newer of two is that of the later life of the space, then the one with
 * the later `since`, then the one of the higher owner. In an odd life the space is destroyed, and nothing is written.
 */
export interface SpaceVersion {
  readonly life: bigint;
  readonly since: bigint;
  readonly by: number;
}

/** The value under a key in a space's data. An empty value is a removal. */
export interface SpaceEntry {
  readonly key: number;
  readonly version: SpaceVersion;
  readonly value: Uint8Array;
}

/** The data of the space of the client's own entity. */
export class SpaceData {
  /** Called with each key whose value has changed or was removed. */
  onChange: (key: number) => void = () => {};

  private readonly entries = new Map<number, SpaceEntry>();

  /** Applies an entry if it is newer than what is held. Values of earlier lives of the space are dropped. */
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

  /** The value under a key. */
  get(key: number): Uint8Array | undefined {
    const value = this.entries.get(key)?.value;
    return value?.length === 0 ? undefined : value;
  }

  /** The versions of all entries, ascending by key: part of the stamps of a view. */
  versions(): readonly (readonly [key: number, version: SpaceVersion])[] {
    const held = [...this.entries.values()].sort((one, other) => one.key - other.key);
    return held.map((entry) => [entry.key, entry.version] as const);
  }

  /** The time of day, seconds since midnight, at a game time in milliseconds: 100 times the tick of a cell's frame. */
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
