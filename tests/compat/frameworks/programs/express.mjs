import express from "express";
import { paths, port, statusOf } from "./status.mjs";

const app = express().use(express.json());
for (const path of paths) app.post(path, async (request, response) => response.send(await statusOf(request.body)));
app.listen(port, "127.0.0.1");
