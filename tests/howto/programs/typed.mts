import { test } from "node:test";
import { SandboxError, newProject, sandboxed, startSandbox, type Order, type Project } from "payment-sandbox";

test("typed", sandboxed({ mode: "live" }, async (sandbox) => {
  const order = await sandbox.call<Order>("POST", "/v1/orders/", {});
  const paid: Order = await sandbox.pay(order.id, { card: "challenge" });
  const { events } = await sandbox.advance({ until: "idle" });
  const texts: (string | undefined)[] = [paid.transactions[0]?.payment_method, events[0]?.kind];
  texts.push((await sandbox.review())[0]?.advice);
  await sandbox.deliverTo((request, response) => { response.writeHead(request.method ? 204 : 500).end(); });
  await sandbox.deliverTo({ fetch: async (request) => new Response(await request.text()) });
  const transfer = paid.transactions[0];
  if (transfer) await sandbox.act(order.id, { actor: "bank", action: "credit", transaction_id: transfer.id });
  texts.push(paid.failure_url, paid.locale, paid.reason, transfer?.customer_message, transfer?.transaction_type);
  // @ts-expect-error there is no such action
  await sandbox.act(order.id, { actor: "bank", action: "pays" });
  // @ts-expect-error a field without a type is unknown
  const total: number = order.total;
}));
const project: Project = await newProject({ mode: "live", numeric_ids: "text", issuers: ["INGBNL2A"] });
// @ts-expect-error there is no such mode
await newProject({ mode: "shop" });
await project.act("id", { actor: "customer", action: "choose", payment_method: "credit-card" });
const { url }: { url: string } = await startSandbox();
if (new Error(url) instanceof SandboxError) await project.close();
