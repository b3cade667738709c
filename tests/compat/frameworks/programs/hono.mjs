import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { csrf } from "hono/csrf";
import { paths, port, statusOf } from "./status.mjs";

const app = new Hono();
app.use("/protected/", csrf());
for (const path of [...paths, "/protected/"]) {
  app.post(path, async (context) => context.text(await statusOf(await context.req.json())));
}
serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });
