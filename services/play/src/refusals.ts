/** Why the login service refuses, in words for a player. */
import type { LoginRefusal } from "../../client-ts/src/index.js";

const WORDS: Readonly<Record<LoginRefusal, string>> = {
  WrongPassword: "The name or the password is wrong: the password is the one with which the name was first used.",
  Throttled: "There were too many attempts: wait a minute.",
  Busy: "The realm is busy: try again in a moment.",
  WrongProtocol: "This page speaks another version of the protocol than the realm: load it again.",
  NotHeld: "The realm is recovering: try again in a moment.",
  UnknownSession: "The session is not known any more: log in again.",
  ShuttingDown: "The realm is shutting down.",
  UnfitName: "No account can have this name: choose another one.",
  LoggedIn: "The account is logged in elsewhere: leave there first.",
  WrongToken: "The token is not valid any more: get a new one.",
  OtherCredentials: "This realm does not take names and passwords.",
  NameTaken: "The name is taken: choose another one, or log in with its password.",
  NoRegistration: "This realm takes no registrations: its operators create the accounts.",
  NoAccount: "There is no account of this name: ask the operators of the realm for one.",
};

export function refusal(reason: LoginRefusal): string {
  return WORDS[reason];
}
