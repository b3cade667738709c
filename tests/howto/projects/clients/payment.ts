// Drives a payment with the types that openapi-typescript has made: node payment.js URL
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Order = components["schemas"]["Order"];

const url = process.argv[2]!;
const basic = (key: string) => ({ Authorization: `Basic ${Buffer.from(`${key}:`).toString("base64")}` });

function found<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const server = createClient<paths>({ baseUrl: url });
const project = found(await server.POST("/control/projects/", { body: { clock: "frozen" } }));
const sandbox = createClient<paths>({ baseUrl: url, headers: basic(project.api_key) });

const order: Order = found(await sandbox.POST("/v1/orders/", {
  body: {
    currency: "EUR",
    amount: 1295,
    transactions: [{ payment_method: "credit-card", capture_mode: "delayed", expiration_period: "P7D" }],
  },
}));
console.log("created", order.status, order.transactions[0]!.payment_method);

const path = { order_id: order.id };
const paid = found(await sandbox.POST("/control/orders/{order_id}/act/", {
  params: { path }, body: { actor: "customer", action: "pay" },
}));
console.log(`paid ${paid.status}, capturable: ${paid.transactions[0]!.is_capturable}`);

const advance = found(await sandbox.POST("/control/clock/advance/", { body: { by: "P7D" } }));
console.log("a week later:", advance.events[0]!.kind);

const refund = found(await sandbox.POST("/v1/orders/{order_id}/refunds/", { params: { path }, body: { amount: 500 } }));
console.log("refunded", refund.amount);

const { error, response } = await sandbox.POST("/v1/orders/{order_id}/refunds/", { params: { path }, body: { amount: 5000 } });
console.log("refused", response.status, error?.error.type);
