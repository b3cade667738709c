import fastify from "fastify";
import { paths, port, statusOf } from "./status.mjs";

const app = fastify();
for (const path of paths) app.post(path, (request) => statusOf(request.body));
await app.listen({ port, host: "127.0.0.1" });
