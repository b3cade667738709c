import assert from "node:assert/strict";
import { test } from "node:test";
import { sandboxed } from "payment-sandbox";
import { Shop } from "./shop.mjs";

const withShop = (run) => sandboxed(async (sandbox) => {
  const shop = new Shop(sandbox.url, sandbox.apiKey);
  await sandbox.deliverTo(shop.webhook);
  sandbox.every("PT1H", shop.lookAtOpenOrders);
  sandbox.tellBooks(shop.books);
  await run(shop, sandbox);
});

test("a paid sale is shipped", withShop(async (shop, sandbox) => {
  const order = await shop.checkout("S-1", 1295);
  await sandbox.pay(order.id);
  assert.ok(shop.sales.get("S-1").shipped > 0);
}));

test("a sale is refunded (in part)", withShop(async (shop, sandbox) => {
  const order = await shop.checkout("S-2", 2590);
  await sandbox.pay(order.id);
  await shop.refund("S-2", 500);
  assert.equal(shop.sales.get("S-2").refunded, 500);
}));
