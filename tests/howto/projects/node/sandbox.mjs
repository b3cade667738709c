// One sandbox for all tests, and a project of its own for each.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const TOKEN = process.env.SANDBOX_CONTROL_TOKEN ?? ""; // creates projects, if the server asks for it
const COMMAND = (process.env.SANDBOX_COMMAND ?? "payment-sandbox").split(" ");

export async function startSandbox() {
  if (process.env.SANDBOX_URL) return { url: process.env.SANDBOX_URL, stop() {} };
  const ready = join(mkdtempSync(join(tmpdir(), "sandbox-")), "ready.json");
  const [program, ...rest] = COMMAND;
  const server = spawn(program, [...rest, "serve", "--port", "0", "--ready-file", ready], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  let failed = null;
  server.stderr.on("data", (text) => (said += text));
  server.on("error", (error) => (failed = error));
  server.on("exit", () => (failed ??= new Error(said || `${COMMAND.join(" ")} has ended`)));
  while (!existsSync(ready)) {
    if (failed) throw failed;
    await pause(20);
  }
  return { url: JSON.parse(readFileSync(ready, "utf8")).url, stop: () => server.kill() };
}

export async function call(url, key, method, path, body) {
  const answer = await fetch(url + path, {
    method,
    headers: { Authorization: key ? `Basic ${btoa(`${key}:`)}` : `Bearer ${TOKEN}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const data = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status} ${data.error.type}: ${data.error.value}`);
  return data;
}

export async function newProject(url, settings) {
  const { api_key: key } = await call(url, "", "POST", "/control/projects/", { clock: "frozen", ...settings });
  return (method, path, body) => call(url, key, method, path, body);
}
