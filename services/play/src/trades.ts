/** Holdings and trades of the player, as the realm shows them. */
import type { Game, Watcher } from "./game.js";
import type { Assets, Deal, Holdings, Table } from "./world.js";

/** Maximum ended trades that are kept. */
const MAX_ENDED = 20;

/** Stages of a trade, by their numbers in `TABLE`. */
const OPEN = 0;
const SETTLED = 1;
const STAGES = ["open", "settled", "cancelled", "expired"] as const;

/** What a player can ask of the ledger, by the numbers in `onOutcome`. */
const WISHES = [
  "to propose a trade",
  "to put something on the table",
  "to take something back",
  "to accept the trade",
  "to cancel the trade",
  "to give something away",
  "to wear something",
  "to take something off",
] as const;

export interface EndedTrade {
  readonly table: Table;
  readonly partner: string;
  readonly stage: (typeof STAGES)[number];
}

export const NOTHING: Assets = { coins: 0n, items: [] };

export function isNothing({ coins, items }: Assets): boolean {
  return coins === 0n && items.length === 0;
}

/** Assets in words. */
export function inWords(assets: Assets): string {
  const { coins, items } = assets;
  const parts = coins === 0n ? [] : [coins === 1n ? "1 coin" : `${coins} coins`];
  return [...parts, ...items.map((serial) => `sword ${serial}`)].join(", ") || "nothing";
}

/** A trade's number as `annals audit` has it. */
export function numberOf({ asker, number }: Deal): string {
  return `${asker}/${number}`;
}

export class Trades {
  /** What the player carries; `undefined` until the ledger has answered. */
  carried: Assets | undefined;
  worn: Assets = NOTHING;
  /** Newest first. */
  readonly ended: EndedTrade[] = [];
  private readonly open = new Map<string, Table>();

  constructor(
    private readonly game: Game,
    private readonly watcher: Watcher,
  ) {}

  /** The open trade that the page shows: the newest. */
  get current(): Table | undefined {
    return [...this.open.values()].at(-1);
  }

  hold(holdings: Holdings): void {
    this.carried = holdings.carried;
    this.worn = holdings.worn;
    this.watcher.changed();
  }

  show(table: Table): void {
    const number = numberOf(table.trade);
    const partner = this.game.traderName(table.partner);
    if (table.stage === OPEN) {
      if (!this.open.has(number)) {
        this.watcher.notice(`A trade with ${partner} is open.`);
      }
      this.open.set(number, table);
    } else {
      this.end(number, { table, partner, stage: STAGES[table.stage] ?? "expired" });
    }
    this.watcher.changed();
  }

  outcome(what: number, isDone: boolean, said: string): void {
    if (!isDone) {
      this.watcher.notice(`The realm refused ${WISHES[what] ?? "a wish"}: ${said}`);
    }
  }

  propose(partner: bigint): void {
    this.game.ask((base) => base.proposeTrade(partner));
  }

  offer({ trade }: Table, assets: Assets): void {
    this.game.ask((base) => base.offer(trade, assets));
  }

  takeBack({ trade, own }: Table): void {
    this.game.ask((base) => base.withdraw(trade, own));
  }

  accept({ trade, version }: Table): void {
    this.game.ask((base) => base.acceptTrade(trade, version));
  }

  cancel({ trade }: Table): void {
    this.game.ask((base) => base.cancelTrade(trade));
  }

  private end(number: string, trade: EndedTrade): void {
    this.open.delete(number);
    // All trades that the realm keeps are shown again when a session begins.
    if (this.ended.some(({ table }) => numberOf(table.trade) === number)) {
      return;
    }
    this.ended.unshift(trade);
    this.ended.length = Math.min(this.ended.length, MAX_ENDED);
    if (trade.table.stage === SETTLED) {
      this.watcher.notice(`The trade with ${trade.partner} is settled.`);
    }
  }
}
