import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { newProject, startSandbox } from "./sandbox.mjs";
import { Shop } from "./shop.mjs";

let sandbox, shop, api;

before(async () => { sandbox = await startSandbox(); });
after(() => sandbox.stop());

beforeEach(async () => {
  shop = new Shop();
  api = shop.api = await newProject(sandbox.url, { webhook_url: await shop.listen() });
});
afterEach(() => shop.close());

test("a paid order is shipped", async () => {
  const order = await shop.checkout(1295);
  await api("POST", `/control/orders/${order.id}/act/`, { actor: "customer", action: "pay" });
  await api("GET", "/control/wait/?idle=1");
  assert.ok(shop.shipped.has(order.id));
});

test("an order that nobody pays expires and is not shipped", async () => {
  const order = await shop.checkout(1295);
  await api("POST", "/control/clock/advance/", { by: "PT30M" });
  assert.equal((await api("GET", `/v1/orders/${order.id}/`)).status, "expired");
  assert.equal(shop.shipped.size, 0);
});

test("a webhook that fails comes again", async () => {
  await api("PUT", "/control/faults/", { webhooks: [{ when: { attempt: 1 }, then: { answer: 503 } }] });
  const order = await shop.checkout(1295);
  await api("POST", `/control/orders/${order.id}/act/`, { actor: "customer", action: "pay" });
  await api("POST", "/control/clock/advance/", { by: "PT2M" });
  assert.ok(shop.shipped.has(order.id));
});
