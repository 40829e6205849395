
/** Which of two values in a space's data is the newer one: the one with the later `since`, then the one of the higher owner. */
export interface SpaceVersion {
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

  /** Takes an entry, if it is newer than what is held. What a new entry of key 1 makes void is dropped. */
  take(entry: SpaceEntry): boolean {
    const floor = entry.key === 1 ? undefined : this.entries.get(1);
    const older = [floor, this.entries.get(entry.key)];
    if (older.some((held) => held !== undefined && !SpaceData.isNewer(entry, held))) {
      return false;
    }
    this.entries.set(entry.key, entry);
    const others = [...this.entries.values()].filter((other) => other.key !== 1);
    const dropped = entry.key === 1 ? others.filter((other) => !SpaceData.isNewer(other, entry)) : [];
    dropped.forEach((other) => this.entries.delete(other.key));
    [entry, ...dropped].forEach((changed) => this.onChange(changed.key));
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

  private static isNewer(one: SpaceEntry, other: SpaceEntry): boolean {
    const [a, b] = [one.version, other.version];
    return a.since === b.since ? a.by > b.by : a.since > b.since;
  }
}
