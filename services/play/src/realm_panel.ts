/** The panel of the realm: its bases and cells, which can be killed, and the count of what must be 0. */
import { button, byId, make, setText } from "./elements.js";
import type { Game } from "./game.js";

/** Milliseconds between two looks. */
const LOOK_EVERY = 1_000;

interface Realm {
  readonly processes: readonly (readonly [name: string, process: number])[];
  readonly bots: number;
  readonly connected: number;
}

interface Row {
  readonly state: HTMLElement;
  readonly kill: HTMLButtonElement;
  process: number;
  killed: number | undefined;
}

export class RealmPanel {
  private readonly list = byId("processes", HTMLUListElement);
  private readonly bots = byId("bots", HTMLElement);
  private readonly rows = new Map<string, Row>();
  private kills = 0;

  constructor(
    private readonly game: Game,
    private readonly notice: (text: string) => void,
  ) {
    this.list.replaceChildren();
  }

  /** Looks from time to time, until `signal` ends it. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const response = await fetch("/realm", { signal });
        if (response.ok) {
          this.show((await response.json()) as Realm);
        }
      } catch {
        // The next look tries again; the player sees the interruption itself.
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
    }
  }

  /** Shows the counts. */
  count(): void {
    const { tally, transport, unconfirmedCalls } = this.game;
    const lost = tally.lost + tally.wrong;
    const set = (id: string, text: string) => setText(byId(id, HTMLElement), text);
    const verdict = byId("lost", HTMLElement);
    verdict.className = lost === 0 ? "figure good" : "figure bad";
    setText(verdict, String(lost));
    set("shown", tally.shown.toLocaleString("en"));
    set("answered", `${tally.answered.toLocaleString("en")} of ${(tally.answered + tally.unanswered).toLocaleString("en")}`);
    set("unconfirmed", String(unconfirmedCalls));
    set("transport", transport ?? "–");
    const longest = tally.longestInterruption;
    const worst = longest > 0 ? `, longest ${(longest / 1_000).toFixed(1)} s` : "";
    set("interruptions", `${tally.interruptions}${worst}`);
    set("kills", String(this.kills));
    const { roundTrip, longestRoundTrip } = tally;
    const [last, most] = [Math.round(roundTrip ?? 0), Math.round(longestRoundTrip)];
    set("round-trip", roundTrip === undefined ? "–" : `${last} ms, longest ${most} ms`);
  }

  private show({ processes, bots, connected }: Realm): void {
    setText(this.bots, bots === 0 ? "no bots" : `${connected} of ${bots} bots play`);
    for (const [name, process] of processes) {
      const row = this.rows.get(name) ?? this.add(name, process);
      const isBack = row.killed !== undefined && row.killed !== process;
      if (row.process !== process || isBack) {
        row.process = process;
        row.killed = undefined;
      }
      setText(row.state, row.killed === undefined ? `process ${process}` : "restarting…");
      row.kill.disabled = row.killed !== undefined;
    }
  }

  private add(name: string, process: number): Row {
    const state = make("span", "quiet");
    const kill = button("Kill", "danger", () => void this.kill(name));
    kill.id = `kill-${name}`;
    kill.setAttribute("aria-label", `Kill ${name}`);
    const row: Row = { state, kill, process, killed: undefined };
    this.rows.set(name, row);
    this.list.append(make("li", "", make("b", "", name), state, kill));
    return row;
  }

  private async kill(name: string): Promise<void> {
    const row = this.rows.get(name);
    if (row === undefined) {
      return;
    }
    // From here on: a look in the meantime would enable the button.
    row.killed = row.process;
    row.kill.disabled = true;
    try {
      const response = await fetch(`/kill/${name}`, { method: "POST" });
      if (!response.ok) {
        row.killed = undefined;
        this.notice(await response.text());
        return;
      }
      this.kills += 1;
      setText(row.state, "restarting…");
      this.notice(`${name} was killed; others take over what it held.`);
    } catch {
      row.killed = undefined;
      this.notice("the server of this page does not answer; is annals play still running?");
    }
  }
}
