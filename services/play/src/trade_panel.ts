/** The panel of trades: the open one, and what became of earlier ones. */
import { button, byId, make, setText } from "./elements.js";
import type { Game } from "./game.js";
import { showReceipt } from "./receipt.js";
import { type EndedTrade, inWords, isNothing, numberOf } from "./trades.js";
import type { Table } from "./world.js";

/** Maximum ended trades that are listed. */
const LISTED = 5;

export class TradePanel {
  private readonly hint = byId("trade-hint", HTMLParagraphElement);
  private readonly table = byId("table", HTMLElement);
  private readonly partner = byId("partner", HTMLElement);
  private readonly mine = byId("mine", HTMLElement);
  private readonly theirs = byId("theirs", HTMLElement);
  private readonly coins = byId("coins", HTMLInputElement);
  private readonly sword = byId("sword", HTMLSelectElement);
  private readonly offer = byId("offer", HTMLFormElement);
  private readonly takeBack = byId("take-back", HTMLButtonElement);
  private readonly accept = byId("accept", HTMLButtonElement);
  private readonly cancel = byId("cancel", HTMLButtonElement);
  private readonly tab = byId("trade-tab", HTMLButtonElement);
  private readonly ended = byId("ended", HTMLUListElement);
  private listed = "";

  constructor(private readonly game: Game) {
    const onTable = (act: (table: Table) => void) => () => {
      const { current } = game.trades;
      if (current !== undefined) {
        act(current);
      }
    };
    this.offer.onsubmit = (event) => {
      event.preventDefault();
      onTable((table) => this.put(table))();
    };
    this.takeBack.onclick = onTable((table) => game.trades.takeBack(table));
    this.accept.onclick = onTable((table) => game.trades.accept(table));
    this.cancel.onclick = onTable((table) => game.trades.cancel(table));
    this.ended.replaceChildren();
  }

  show(): void {
    const { current, carried } = this.game.trades;
    this.hint.hidden = current !== undefined;
    this.table.hidden = current === undefined;
    setText(this.tab, current === undefined ? "Trade" : "Trade •");
    if (current !== undefined) {
      setText(this.partner, this.game.traderName(current.partner));
      setText(this.mine, said(current.own, current.accepted !== 0));
      setText(this.theirs, said(current.theirs, current.theyAccepted !== 0));
      this.takeBack.disabled = isNothing(current.own);
      this.accept.disabled = current.accepted !== 0 || (isNothing(current.own) && isNothing(current.theirs));
    }
    this.coins.max = String(carried?.coins ?? 0n);
    this.listSwords(carried?.items ?? []);
    this.listEnded(this.game.trades.ended.slice(0, LISTED));
  }

  private put(table: Table): void {
    const coins = BigInt(Math.max(0, Math.floor(this.coins.valueAsNumber || 0)));
    const items = this.sword.value === "" ? [] : [BigInt(this.sword.value)];
    if (!isNothing({ coins, items })) {
      this.game.trades.offer(table, { coins, items });
    }
  }

  private listSwords(serials: readonly bigint[]): void {
    const wanted = ["", ...serials.map(String)];
    if ([...this.sword.options].map(({ value }) => value).join() !== wanted.join()) {
      this.sword.replaceChildren(
        ...wanted.map((serial) => {
          const option = make("option", "", serial === "" ? "no sword" : `sword ${serial}`);
          option.value = serial;
          return option;
        }),
      );
    }
  }

  private listEnded(trades: readonly EndedTrade[]): void {
    const listed = trades.map(({ table }) => numberOf(table.trade)).join();
    if (listed === this.listed) {
      return;
    }
    this.listed = listed;
    this.ended.replaceChildren(
      ...trades.map(({ table, partner, stage }) => {
        const isSettled = stage === "settled";
        const what = isSettled ? `gave ${inWords(table.own)}, got ${inWords(table.theirs)}` : stage;
        const item = make("li", "", make("span", "", make("b", "", partner), `: ${what}`));
        if (isSettled) {
          item.append(button("Receipt", "receipt second", () => void showReceipt(numberOf(table.trade))));
        }
        return item;
      }),
    );
  }
}

function said(assets: Table["own"], hasAccepted: boolean): string {
  return `${inWords(assets)}${hasAccepted ? " · accepted" : ""}`;
}
