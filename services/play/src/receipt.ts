/** Shows the receipt of a trade, and what `annals-verify` says of it. */
import { byId, setText } from "./elements.js";

/** Milliseconds between two requests while the realm has not signed the trade, and how often it is asked. */
const AGAIN_AFTER = 1_000;
const ATTEMPTS = 40;

/** Status of an answer that may be another one soon. */
const UNAVAILABLE = 503;

interface CheckedReceipt {
  readonly text: string;
  readonly file: string;
  readonly command: string;
  readonly isAccepted: boolean;
  readonly said: string;
}

/** Asks for a receipt until there is one, and shows it. */
export async function showReceipt(trade: string): Promise<void> {
  const dialog = byId("receipt", HTMLDialogElement);
  const verdict = byId("verdict", HTMLElement);
  const text = byId("receipt-text", HTMLElement);
  const said = byId("verifier-says", HTMLElement);
  const command = byId("verifier-command", HTMLElement);
  [text, said, command].forEach((element) => setText(element, ""));
  verdict.className = "badge";
  setText(verdict, "waiting for the realm's signature…");
  dialog.showModal();
  for (let attempt = 0; attempt < ATTEMPTS && dialog.open; attempt++) {
    const answer = await ask(trade);
    if (typeof answer !== "string") {
      verdict.className = answer.isAccepted ? "badge good" : "badge bad";
      setText(verdict, answer.isAccepted ? "accepted by annals-verify" : "not accepted by annals-verify");
      setText(text, answer.text);
      setText(said, unwrapped(answer.said));
      setText(command, answer.command);
      return;
    }
    setText(said, answer);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER));
  }
  verdict.className = "badge bad";
  setText(verdict, "there is no receipt");
}

/** Text whose lines are broken where the page breaks them, not at the columns of a terminal. */
function unwrapped(text: string): string {
  return text.replace(/\n {2}(?=\S)/g, " ");
}

/** The receipt, or why there is none yet. */
async function ask(trade: string): Promise<CheckedReceipt | string> {
  try {
    const response = await fetch(`/receipt/${trade}`);
    if (response.ok) {
      return (await response.json()) as CheckedReceipt;
    }
    const why = await response.text();
    return response.status === UNAVAILABLE ? `not yet: ${why}` : why;
  } catch {
    return "the server of this page does not answer; is annals play still running?";
  }
}
