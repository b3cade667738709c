"use strict";
// Drives the payment orders sandbox in tests, over its control API; index.d.ts documents each part.

const { spawn } = require("node:child_process");
const { randomUUID } = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const { tmpdir } = require("node:os");
const path = require("node:path");
const { setTimeout: pause } = require("node:timers/promises"); // unaffected by a test's fake timers

const INSTALL =
  "Install it with: pipx install 'payment-sandbox[server]' (or set SANDBOX_COMMAND to the command that " +
  "starts it, such as \"python3 payment-sandbox.pyz\", or SANDBOX_URL to the address of a running server).";
const START_SECONDS = 120; // uvx and Docker may have to fetch the sandbox first
const HANDLER_SECONDS = 5; // the service's timeout for an answer
const POLL_SECONDS = 10;

class SandboxError extends Error {
  constructor(status, error) {
    super(`${status} ${error.type}: ${error.value}`);
    Object.assign(this, { name: "SandboxError", status, ...error });
  }
}

let started; // one server for all tests of this process

function startSandbox() {
  return (started ??= start().catch((error) => {
    started = undefined;
    throw error;
  }));
}

async function start() {
  const running = process.env.SANDBOX_URL;
  if (running) return { url: running.replace(/\/+$/, ""), stop: async () => {} };
  const folder = fs.mkdtempSync(path.join(tmpdir(), "payment-sandbox-"));
  fs.chmodSync(folder, 0o777); // the container's user writes to it
  try {
    return await serve(findCommand(folder), path.join(folder, "ready.json"));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Find the command to put before "serve", and the path of the ready file for the server. */
function findCommand(folder) {
  const own = path.join(folder, "ready.json");
  const given = process.env.SANDBOX_COMMAND?.match(/"[^"]*"|'[^']*'|\S+/g);
  if (given) return { command: given.map((word) => word.replace(/^(["'])(.*)\1$/, "$2")), file: own };
  if (isInstalled("payment-sandbox")) return { command: ["payment-sandbox"], file: own };
  if (isInstalled("uvx")) return { command: ["uvx", "--from", "payment-sandbox[server]", "payment-sandbox"], file: own };
  if (!isInstalled("docker")) throw new Error(`payment-sandbox is not installed. ${INSTALL}`);
  const run = ["docker", "run", "--rm", "-i", "--network", "host", "-v", `${folder}:/ready`];
  return { command: [...run, "-e", "SANDBOX_HOST=127.0.0.1", "-e", "SANDBOX_STATE=", "paymentsandbox/payment-sandbox"], file: "/ready/ready.json" };
}

function isInstalled(program) {
  const endings = process.platform === "win32" ? [".exe", ".cmd"] : [""];
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  return folders.some((folder) => endings.some((ending) => fs.existsSync(path.join(folder, program + ending))));
}

async function serve({ command, file }, ready) {
  const [program, ...rest] = command;
  const options = ["serve", "--port", "0", "--quiet", "--stop-with-stdin", "--ready-file", file];
  const server = spawn(program, [...rest, ...options], { stdio: ["pipe", "ignore", "pipe"] });
  let said = "";
  let ended;
  server.stderr.on("data", (text) => (said = (said + text).slice(-2000)));
  server.on("error", (error) => (ended ??= error.code === "ENOENT" ? `there is no program ${program}` : error.message));
  server.on("exit", (code) => (ended ??= `it exited with code ${code}: ${said.trim().split(/\s+/).join(" ")}`));
  for (let waited = 0; !fs.existsSync(ready); waited += 0.02) {
    if (waited > START_SECONDS) server.kill();
    if (ended) throw new Error(`the sandbox did not start with "${command.join(" ")}": ${ended.replace(/\.$/, "")}. ${INSTALL}`);
    await pause(20);
  }
  const { url } = JSON.parse(fs.readFileSync(ready, "utf8"));
  for (const each of [server, server.stdin, server.stderr]) each.unref(); // let the tests' process exit
  return { url, stop: () => stop(server) };
}

async function stop(server) {
  started = undefined;
  if (server.exitCode !== null) return;
  server.ref();
  server.stdin.end(); // the server stops once this pipe is closed, even if this process is killed
  await new Promise((ended) => server.once("exit", ended));
}

/** Send a request without fetch, which a test may have replaced; resolves to {status, text}. */
function send(method, url, headers, body, { signal, seconds } = {}) {
  return new Promise((answered, failed) => {
    const { request } = url.startsWith("https:") ? https : http;
    const sent = request(url, { method, headers, signal, timeout: seconds && seconds * 1000 }, async (response) => {
      try {
        let text = "";
        for await (const part of response.setEncoding("utf8")) text += part;
        answered({ status: response.statusCode, text });
      } catch (error) {
        failed(error);
      }
    });
    sent.on("error", failed);
    sent.on("timeout", () => sent.destroy(new Error(`no response in ${seconds} s`)));
    sent.end(body);
  });
}

async function call(url, authorization, method, where, body, options) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const length = text === undefined ? {} : { "Content-Length": Buffer.byteLength(text), "Content-Type": "application/json" };
  const answer = await send(method, url + where, { Authorization: authorization, ...length }, text, options).catch((error) => {
    throw options?.signal?.aborted ? error : new Error(`no payment sandbox at ${url}: ${error.message}${hint()}`);
  });
  const data = parsed(answer.text);
  if (data === undefined || (answer.status >= 400 && !data.error?.type)) {
    throw new Error(`no payment sandbox at ${url}: another program answered ${answer.status}${hint()}`);
  }
  if (answer.status >= 400) throw new SandboxError(answer.status, data.error);
  return data;
}

const hint = () => (process.env.SANDBOX_URL ? "; unset SANDBOX_URL to start a sandbox for the tests" : "");

function parsed(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return undefined;
  }
}

async function newProject(settings = {}, test) {
  const { url } = await startSandbox();
  const token = `Bearer ${process.env.SANDBOX_CONTROL_TOKEN ?? ""}`;
  const project = new Project(url, await call(url, token, "POST", "/control/projects/", { clock: "frozen", ...settings }));
  await announce(project, test);
  return project;
}

/** Announce a test and its project to the rehearsal, if one is running. */
async function announce(project, test) {
  if (!process.env.SANDBOX_REHEARSAL || !test) return;
  await rehearsal(project, { begins: test });
  watchCalls(project.url);
}

const calls = []; // the shop's fetch calls in this process: method, path and stack

function watchCalls(url) {
  calls.length = 0;
  if (globalThis.fetch?.watches) return;
  const ask = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const address = String(input?.url ?? input);
    const method = (init?.method ?? input?.method ?? "GET").toUpperCase();
    if (address.startsWith(url)) calls.push([method, new URL(address).pathname, new Error("").stack]);
    return ask(input, init);
  };
  globalThis.fetch.watches = true;
}

async function rehearsal(project, message) {
  const body = JSON.stringify({ project_id: project.projectId, ...message });
  const answer = await send("POST", process.env.SANDBOX_REHEARSAL, { "Content-Length": Buffer.byteLength(body) }, body);
  const data = parsed(answer.text);
  if (answer.status !== 200 || data === undefined) throw new Error(`the rehearsal answered ${answer.status}: ${answer.text}`);
  return data;
}

/** Return the name of a test in node:test, Mocha, Vitest or Jest. */
function nameOf(runner, given) {
  const state = () => globalThis.expect?.getState?.().currentTestName;
  return runner?.test?.fullTitle?.() ?? given?.fullName ?? withSuites(given?.task) ?? given?.name ?? state();
}

function withSuites(task) {
  const names = [];
  for (let each = task; each?.name; each = each.suite) names.unshift(each.name);
  return task && names.join(" ");
}

class Project {
  #listening; // stops the delivery of webhooks to the handler
  #shop; // the shop of the handler
  #books; // returns the shop's view of its purchases
  #jobs = new Map(); // the shop's jobs and their periods

  constructor(url, made) {
    Object.assign(this, { url, apiKey: made.api_key, projectId: made.project_id, merchantId: made.merchant_id });
  }

  call(method, where, body, options) {
    const authorization = `Basic ${Buffer.from(`${this.apiKey}:`).toString("base64")}`;
    return call(this.url, authorization, method, where, body, options);
  }

  async act(orderId, action) {
    await this.call("POST", `/control/orders/${orderId}/act/`, action);
    await this.settle();
    return this.order(orderId);
  }

  pay(orderId, more) {
    return this.act(orderId, { actor: "customer", action: "pay", ...more });
  }

  advance(by) {
    return this.call("POST", "/control/clock/advance/", typeof by === "string" ? { by } : by);
  }

  async settle() {
    await this.call("GET", "/control/wait/?idle=1&timeout=60");
  }

  async order(orderId) {
    return (await this.call("GET", `/control/orders/${orderId}/`)).order;
  }

  scenario(nameOrDocument) {
    const document = typeof nameOrDocument === "string" ? { name: nameOrDocument } : nameOrDocument;
    return this.call("PUT", "/control/scenario/", document);
  }

  faults(document) {
    return this.call("PUT", "/control/faults/", document);
  }

  async webhooks(orderId) {
    return (await this.call("GET", `/control/webhooks/${orderId ? `?order_id=${orderId}` : ""}`)).items;
  }

  async review() {
    return (await this.call("GET", "/control/review/")).items;
  }

  async report() {
    return (await this.call("GET", "/control/report/")).text;
  }

  async deliverTo(handler, where = "/webhook") {
    await this.#listening?.();
    const shop = this.#shop = typeof handler === "function" ? await serveHandler(handler) : wrapFetch(handler);
    const ending = new AbortController();
    const next = (timeout) =>
      this.call("POST", "/control/listener/next/", { listener, forward_to: shop.url + where, timeout }, { signal: ending.signal });
    const listener = randomUUID();
    const first = await next(0); // from now on, the server offers webhooks instead of sending them
    const listened = this.#forward(first, next, shop.deliver).catch((error) => {
      if (!ending.signal.aborted) process.emitWarning(`webhooks are no longer delivered: ${error.message}`);
    });
    this.#listening = async () => {
      ending.abort();
      await listened;
      shop.close();
    };
  }

  tellBooks(books) {
    this.#books = books;
  }

  every(period, job, name = job.name || `job ${this.#jobs.size + 1}`) {
    this.#jobs.set(name, { period, job });
  }

  async ended(error) {
    if (!process.env.SANDBOX_REHEARSAL) return;
    const failure = error === undefined ? null : `${error?.name ?? "Error"}: ${error?.message ?? error}`;
    const jobs = Object.fromEntries([...this.#jobs].map(([name, { period }]) => [name, period]));
    const can = { books: this.#books !== undefined, pages: this.#shop !== undefined, jobs, calls };
    let question = await rehearsal(this, { ends: failure, stack: error?.stack, ...can });
    while (question.ask) question = await rehearsal(this, await this.#answer(question));
  }

  async #answer({ ask, url, job }) {
    try {
      if (ask === "job") return { job: void (await this.#jobs.get(job).job()) ?? null };
      return ask === "books" ? { books: await this.#books() } : { page: await this.#shop.page(url) };
    } catch (error) {
      const isWrong = error?.code === "ERR_ASSERTION" || error?.name === "AssertionError" || error?.matcherResult !== undefined;
      return { [isWrong ? "wrong" : "error"]: `${isWrong ? "" : `${error?.name}: `}${error?.message ?? error}` };
    }
  }

  async #forward(first, next, deliver) {
    for (let offers = first; !offers.replaced; offers = await next(POLL_SECONDS)) {
      const answers = offers.items.map(async (offer) => {
        const reply = await deliver(offer).catch((error) => ({ error: error.message }));
        await this.call("POST", "/control/listener/answers/", { id: offer.id, ...reply });
      });
      await Promise.all(answers);
    }
  }

  async explain(error) {
    const report = await this.report().catch((missing) => `the timeline could not be read: ${missing.message}`);
    const failed = error instanceof Error || error?.stack ? error : new Error(String(error), { cause: error });
    const because = failed.cause?.message ? `: ${failed.cause.message}` : ""; // "fetch failed" alone explains nothing
    const [before, message] = [failed.message, `${failed.message}${because}\n\n--- payment sandbox ---\n${report}\n`];
    const stack = String(failed.stack).replace(before, () => message);
    Object.defineProperty(failed, "message", { value: message, configurable: true, writable: true });
    Object.defineProperty(failed, "stack", { value: stack, configurable: true, writable: true });
    return failed;
  }

  async close() {
    await this.#listening?.();
    await this.call("DELETE", "/control/project/").catch(() => {}); // the test may have deleted it
  }
}

/** Serve a shop that is a node:http handler, such as an Express application. */
async function serveHandler(handler) {
  const server = http.createServer(async (request, response) => {
    try {
      await handler(request, response);
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error?.stack ?? error));
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const deliver = async ({ url, headers, body }) => {
    const answer = await send("POST", url, headers, body, { seconds: HANDLER_SECONDS });
    return { status: answer.status, body: answer.text.slice(0, 4096) };
  };
  const url = `http://127.0.0.1:${server.address().port}`;
  const page = async (address) => {
    const answer = await send("GET", url + pathOf(address), {}, undefined, { seconds: HANDLER_SECONDS }).catch(() => ({}));
    return answer.status === 200 ? answer.text : null;
  };
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url, deliver, page, close };
}

/** Wrap a shop with a fetch method, such as a Hono application or {fetch: POST}. */
function wrapFetch(shop) {
  const deliver = async ({ url, headers, body }) => {
    try {
      const response = await shop.fetch(new Request(url, { method: "POST", headers, body }));
      return { status: response.status, body: (await response.text()).slice(0, 4096) };
    } catch (error) {
      return { status: 500, body: String(error?.stack ?? error) };
    }
  };
  const page = async (address) => {
    const response = await shop.fetch(new Request(new URL(address, "http://127.0.0.1")));
    return response.status === 200 ? response.text() : null;
  };
  return { url: "http://127.0.0.1", deliver, page, close() {} };
}

function pathOf(address) {
  const { pathname, search } = new URL(address, "http://127.0.0.1");
  return pathname + search;
}

function sandboxed(settings, test) {
  if (typeof settings === "function") [settings, test] = [{}, settings];
  return async function (...given) {
    const project = await newProject(settings, nameOf(this, given[0]));
    let failure;
    try {
      return await test.call(this, project, ...given);
    } catch (error) {
      failure = { name: error?.name ?? "Error", message: error?.message ?? String(error), stack: error?.stack };
      throw await project.explain(error);
    } finally {
      await project.ended(failure).finally(() => project.close());
    }
  };
}

module.exports = { SandboxError, newProject, sandboxed, startSandbox };
