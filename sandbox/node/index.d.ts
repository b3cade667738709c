import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Starts a sandbox, or finds a running one: at SANDBOX_URL; with the command in SANDBOX_COMMAND; with
 * `payment-sandbox`, `uvx` or `docker` on the PATH, in this order. It is one for all tests of this process,
 * and stops with it.
 */
export function startSandbox(): Promise<{ readonly url: string; stop(): Promise<void> }>;

/**
 * Makes a project with a key, a frozen clock and orders of its own; `close` it at the end of the test. With the
 * name of the test, `payment-sandbox rehearse` knows it; call `ended` at its end.
 */
export function newProject(settings?: Settings, test?: string): Promise<Project>;

/**
 * Wraps a test of any runner: it gets a project of its own, and its failure ends with the project's timeline
 * and the findings of the review. What the runner gives follows: `sandboxed(async (sandbox, t) => ...)`.
 */
export function sandboxed<Given extends unknown[]>(
  test: (sandbox: Project, ...given: Given) => unknown,
): (...given: Given) => Promise<void>;
export function sandboxed<Given extends unknown[]>(
  settings: Settings,
  test: (sandbox: Project, ...given: Given) => unknown,
): (...given: Given) => Promise<void>;

/** What the sandbox refused, such as 409 RefundExceedsCaptured. */
export class SandboxError extends Error {
  readonly status: number;
  readonly type: string;
  readonly value: string;
  readonly violations?: readonly { path: string; message: string; allowed?: readonly string[] }[];
  /** The actions possible now, if an action was refused. */
  readonly allowed?: unknown;
}

export interface Project {
  /** The address of both APIs, for the code under test. */
  readonly url: string;
  /** The key of this project, for the code under test: the user name of HTTP Basic. */
  readonly apiKey: string;
  readonly projectId: string;
  readonly merchantId: string;

  /** Makes any call of the merchant API or the control API. Throws a SandboxError if it is refused. */
  call<Answer = Json>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Pays as the customer: `act` with the action "pay", and `more`, such as {card: "challenge"}. */
  pay(orderId: string, more?: Json): Promise<Order>;
  /** Acts as the customer, bank, screening or processor; returns when all webhooks are answered. */
  act(orderId: string, action: Action): Promise<Order>;
  /** Lets time pass: a period such as "PT30M", {to: time}, {until: "next"} or {until: "idle"}. */
  advance(by: string | { by: string } | { to: string } | { until: "next" | "idle" }): Promise<Advance>;
  /** Waits until all webhooks are answered, such as after a call of the shop. */
  settle(): Promise<void>;
  /** The order as the sandbox has it; the review does not count it as a read by the shop. */
  order(orderId: string): Promise<Order>;
  /** Chooses a scenario by its name, or a whole one. */
  scenario(nameOrDocument: string | Json): Promise<Json>;
  /** Sets faults of requests and webhooks. */
  faults(document: { faults?: readonly Json[]; webhooks?: readonly Json[] }): Promise<Json>;
  webhooks(orderId?: string): Promise<Webhook[]>;
  /** The mistakes of the integration so far. */
  review(): Promise<Finding[]>;
  /** The timeline and the findings as text. */
  report(): Promise<string>;
  /** Delivers all webhooks of the project to the shop's handler, which the server need not reach. */
  deliverTo(handler: Handler, path?: string): Promise<void>;
  /** For `payment-sandbox rehearse`: tells what the shop believes of its purchases, whenever it is called. */
  tellBooks(books: () => readonly BookEntry[] | Promise<readonly BookEntry[]>): void;
  /** For `payment-sandbox rehearse`: a job of the shop, such as one that reads open orders; it runs after the test. */
  every(period: string, job: () => unknown, name?: string): void;
  /** Says that the test has ended, with its error if it failed; a rehearsal judges it. `sandboxed` does so. */
  ended(error?: unknown): Promise<void>;
  /** Adds the report to an error's message, for runners with hooks of their own. */
  explain(error: unknown): Promise<Error>;
  /** Deletes the project, and ends the delivery of webhooks. */
  close(): Promise<void>;
}

/** A handler of node:http, such as an application of Express, or an object with fetch, such as one of Hono. */
export type Handler =
  | ((request: IncomingMessage, response: ServerResponse) => unknown)
  | { fetch(request: Request): Response | Promise<Response> };

/** What the shop believes of one purchase, in cents; `orders` are the ids of all payment orders made for it. */
export interface BookEntry {
  purchase: string;
  orders: readonly string[];
  amount?: number;
  paid?: number;
  shipped?: number;
  refunded?: number;
  cancelled?: boolean;
}

export type Json = Record<string, unknown>;

/** The settings of a project, such as {payment_methods: ["credit-card"]}; see /docs/settings. */
export interface Settings extends Json {
  clock?: string;
  mode?: "test" | "live";
  webhook_url?: string;
}

export type Action =
  | { actor: "customer"; action: "visit" | "pay" | "cancel" | "fail" | "choose"; [more: string]: unknown }
  | { actor: "bank"; action: "credit"; amount?: number }
  | { actor: "screening"; action: "approve" | "decline" | "error"; reason?: string }
  | { actor: "processor"; action: "settle" | "fail" };

export interface Order extends Json {
  id: string;
  status: "new" | "processing" | "accepted" | "completed" | "cancelled" | "expired" | "error";
  amount: number;
  currency: string;
  transactions: Transaction[];
}

export interface Transaction extends Json {
  id: string;
  status: string;
  payment_method: string;
}

export interface Advance {
  from: string;
  to: string;
  stopped?: boolean;
  events: { at: string; kind: string; order_id: string | null; label: string }[];
}

export interface Webhook extends Json {
  id: string;
  order_id: string;
  url: string;
  state: "pending" | "delivered" | "failed";
  attempts: Json[];
}

export interface Finding extends Json {
  rule: string;
  problem: string;
  advice: string;
  kind: "mistake" | "hint";
  order_id: string | null;
}
