import type { IncomingMessage, ServerResponse } from "node:http";
import type { ControlCommands } from "./control";

/**
 * Starts the sandbox, unless SANDBOX_URL is the address of a running one: with the command in SANDBOX_COMMAND, or
 * with `payment-sandbox` from the PATH or from the environment of the package's clone, in this order. All tests of this
 * process share the server, which stops with the process.
 */
export function startSandbox(): Promise<{ readonly url: string; stop(): Promise<void> }>;

/**
 * Creates a project with its own key, frozen clock and orders; `close` it at the end of the test. The name of the
 * test names the project for `payment-sandbox review --all-projects` and the dashboard.
 */
export function newProject(settings?: Settings, test?: string): Promise<Project>;

/**
 * Wraps a test of any runner: the test gets its own project, and a failure ends with the project's timeline and
 * the findings of the review. The runner's arguments follow the project: `sandboxed(async (sandbox, t) => ...)`.
 */
export function sandboxed<Args extends unknown[]>(
  test: (sandbox: Project, ...args: Args) => unknown,
): (...args: Args) => Promise<void>;
export function sandboxed<Args extends unknown[]>(
  settings: Settings,
  test: (sandbox: Project, ...args: Args) => unknown,
): (...args: Args) => Promise<void>;

/** A refusal by the sandbox, such as 409 RefundExceedsCaptured. */
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

  /** Every call of the control API for this project, such as `control.timeline({ order_id })`. */
  readonly control: ControlCommands;

  /** Makes any call of the merchant API or the control API. Throws a SandboxError if the call is refused. */
  call<Answer = Json>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Pays as the customer: `act` with the action "pay", and `more`, such as {card: "challenge"}. */
  pay(orderId: string, more?: Json): Promise<Order>;
  /** Acts as the customer, bank, screening or processor; returns when all webhooks are answered. */
  act(orderId: string, action: Action): Promise<Order>;
  /** Advances the clock: by a period such as "PT30M", {to: time}, {until: "next"} or {until: "idle"}. */
  advance(by: string | { by: string } | { to: string } | { until: "next" | "idle" }): Promise<Advance>;
  /** Waits until all webhooks are answered, for example after a call by the shop. */
  settle(): Promise<void>;
  /** Reads an order; the review does not count this as a read by the shop. */
  order(orderId: string): Promise<Order>;
  /** Selects a scenario by name, or sets a whole document. */
  scenario(nameOrDocument: string | Json): Promise<Json>;
  /** Sets the faults of requests and webhooks; a list has those of requests. */
  faults(document: readonly Json[] | { faults?: readonly Json[]; webhooks?: readonly Json[] }): Promise<Json>;
  webhooks(orderId?: string): Promise<Webhook[]>;
  /** Lists the integration's mistakes so far. */
  review(): Promise<Finding[]>;
  /** Returns the timeline and the findings as text. */
  report(): Promise<string>;
  /** Delivers all webhooks of the project to the shop's handler; the server does not need access to the shop. */
  deliverTo(handler: Handler, path?: string): Promise<void>;
  /** Accepts the function that returns the shop's current view of its purchases; nothing reads it. */
  tellBooks(books: () => readonly BookEntry[] | Promise<readonly BookEntry[]>): void;
  /** Accepts the end of the test, with its error if it failed; `close` does the rest. */
  ended(error?: unknown): Promise<void>;
  /** Adds the report to an error's message, for runners with hooks. */
  explain(error: unknown): Promise<Error>;
  /**
   * Reviews and deletes the project, and stops the delivery of webhooks. Mistakes become warnings; with
   * `PAYMENT_SANDBOX_REVIEW=error`, `close` throws an error. On a shared server, a project with mistakes remains for a
   * day, for `payment-sandbox review --all-projects`.
   */
  close(): Promise<void>;
}

/** A node:http handler, such as an Express application, or an object with fetch, such as a Hono application. */
export type Handler =
  | ((request: IncomingMessage, response: ServerResponse) => unknown)
  | { fetch(request: Request): Response | Promise<Response> };

/** The shop's view of one purchase, in cents; `orders` lists the ids of all payment orders created for it. */
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

/** The settings of a project, such as {payment_methods: ["credit-card"]}; see /docs/reference. */
export interface Settings extends Json {
  clock?: string;
  mode?: "test" | "live";
  webhook_url?: string;
  absolute_urls?: boolean;
  authorized_status?: "completed" | "accepted";
  refund_mismatch?: "refuse" | "lines";
  unknown_fields?: "drop" | "reject";
  unknown_locale?: "reject" | "ignore";
  numeric_ids?: "reject" | "text";
  issuer_required?: boolean;
  issuers?: readonly (string | { id: string; name?: string; list_type?: string })[];
  personal_data?: "optional" | "required";
  webhook_timing?: "after_response" | "before_response";
}

export type Action =
  | { actor: "customer"; action: "visit" | "pay" | "cancel" | "fail" | "choose"; [option: string]: unknown }
  /** The bank credits the newest transfer, or the one with `transaction_id`. */
  | { actor: "bank"; action: "credit"; amount?: number; transaction_id?: string }
  | { actor: "screening"; action: "approve" | "decline" | "error"; reason?: string; transaction_id?: string }
  | { actor: "processor"; action: "settle" | "fail"; transaction_id?: string };

export interface Order extends Json {
  id: string;
  status: "new" | "processing" | "accepted" | "completed" | "cancelled" | "expired" | "error";
  amount: number;
  currency: string;
  transactions: Transaction[];
  return_url?: string;
  /** Where a customer goes who has not paid. */
  failure_url?: string;
  locale?: string;
  reason?: string;
}

export interface Transaction extends Json {
  id: string;
  status: string;
  payment_method: string;
  /** Only if the payment is authorized first, and captured later. */
  transaction_type?: "authorization";
  /** Why the transaction ended without a payment, for the merchant and for the customer. */
  reason?: string;
  customer_message?: string;
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
