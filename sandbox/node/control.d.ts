// `make docs` writes this file from the functions in `web/control`.
import type { Advance, Json, Order, Webhook } from "./index";

/** The calls of the control API. */
export interface ControlCommands {
  /** Get the clock. */
  readClock(): Promise<Json>;
  /** Freeze the clock, run it at a rate, or move it forward (CTL-12). */
  changeClock(given?: { mode?: "running" | "frozen"; rate?: number; now?: string }): Promise<Json>;
  /** Advance the clock, event by event (CTL-13). */
  advance(given?: { by?: string; to?: string; until?: "next" | "idle"; max_events?: number; timeout?: number }): Promise<Advance>;
  /** List the scheduled events, including failed ones (CTL-17). */
  agenda(): Promise<Json[]>;
  /** List orders, newest first. */
  orders(given?: { status?: string; method?: string; text?: string; limit?: number; before?: string }): Promise<Json[]>;
  /** Get one order with its possible actions, scheduled events, webhooks and refunds. */
  overview(orderId: string): Promise<Json>;
  /** List the history of the project, causes before effects. */
  timeline(given?: { order_id?: string; limit?: number }): Promise<Json[]>;
  /** Get the timeline and the review findings as text, for the report of a failed test. */
  report(given?: { order_id?: string }): Promise<string>;
  /** List the actions by customers, banks, screenings and processors, newest last. */
  actions(given?: { order_id?: string; limit?: number; before?: string }): Promise<Json[]>;
  /** List the mistakes in the integration's requests and webhook responses. */
  reviewed(): Promise<Json>;
  /** List the stored cards, oldest first. */
  cards(): Promise<Json[]>;
  /** List the QR requests, oldest first. */
  qrRequests(): Promise<Json[]>;
  /** Act on an order as the customer, the bank or another actor (CTL-20). */
  act(orderId: string, given: { actor: "customer" | "bank" | "screening" | "processor"; action: "visit" | "pay" | "cancel" | "fail" | "choose" | "credit" | "approve" | "decline" | "error" | "settle"; payment_method?: string; issuer_id?: string; card?: string; authorization?: string; amount?: number; transaction_id?: string; reason?: string }): Promise<Order>;
  /** Scan a QR code as a payer. */
  scan(qrId: string, given?: { amount?: number; issuer_id?: string }): Promise<Order>;
  /** Get the active scenario; each rule says how often it has matched. */
  activeScenario(): Promise<Json>;
  /** Activate a scenario, by name or from the body (CTL-19). */
  putScenario(document: Json): Promise<Json>;
  /** Restore the default scenario. */
  resetScenario(): Promise<Json>;
  /** List the available scenarios (CTL-18). */
  scenarios(): Promise<Json[]>;
  /** Get a scenario with its rules, and their uses if it is active. */
  scenarioDetail(name: string): Promise<Json>;
  /** Get the JSON Schema of scenario files, for editors. */
  scenarioSchema(): Promise<Json>;
  /** Get the faults in addition to the scenario's; each says how often it has matched. */
  activeFaults(): Promise<Json>;
  /** Set faults for requests and webhooks, in addition to the scenario's (CTL-23, CTL-24). */
  putFaults(document: Json): Promise<Json>;
  /** Remove all faults except the scenario's. */
  resetFaults(): Promise<Json>;
  /** List webhooks with their delivery attempts (CTL-21). */
  webhooks(given?: { order_id?: string; state?: string; limit?: number; before?: string; summary?: boolean }): Promise<Webhook[]>;
  /** Get one webhook with its delivery attempts. */
  webhook(deliveryId: string): Promise<Webhook>;
  /** Redeliver a webhook, now or later, unchanged or with another address or body (CTL-22). */
  redeliver(deliveryId: string, given?: { url?: string; body?: string; after?: string }): Promise<Webhook>;
  /** Deliver all webhooks that were not sent because no address was set. */
  deliverUnsent(given: { webhook_url: string }): Promise<Webhook[]>;
  /** List the requests to the merchant API (CTL-25). */
  journal(given?: { method?: string; path?: string; status?: number; order_id?: string; limit?: number; before?: string; summary?: boolean }): Promise<Json[]>;
  /** Get one request to the merchant API with its response. */
  journalEntry(entryId: string): Promise<Json>;
  /** List every rule with the tests that prove it, and every assumption (SET-70). */
  fidelity(): Promise<Json>;
  /** Get the project. */
  project(): Promise<Json>;
  /** Change some settings (CTL-01, CTL-07). */
  patchProject(settings: Json): Promise<Json>;
  /** Delete the project; its API key stops working. A damaged project can only be deleted. */
  deleteProject(): Promise<string>;
  /** Reset the project to its initial state (CTL-09). */
  reset(): Promise<Json>;
  /** Take a snapshot of the whole project (CTL-10). */
  snapshot(): Promise<Json>;
  /** Restore a snapshot of this or another project (CTL-10, CTL-11). */
  restore(state: Json): Promise<Json>;
  /** Wait until all given conditions hold (CTL-26). */
  wait(given?: { order_id?: string; status?: string; webhook?: string; idle?: boolean; timeout?: number }): Promise<Json>;
  /** Wait for the next webhooks to deliver, for listeners such as the command ``listen``. */
  nextOffers(given?: { timeout?: number; listener?: string; forward_to?: string; leaves?: boolean }): Promise<Json>;
  /** Report the shop's answer to an attempt, which counts as if the sandbox had received it. */
  reportAnswer(given: { id: string; status?: number; body?: string; error?: string; warning?: string; duration_ms?: number }): Promise<boolean>;
}
