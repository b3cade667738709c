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

const { ControlCommands } = require("./control.js");

const CLONE_COMMAND = path.join(__dirname, "../../.venv", process.platform === "win32" ? "Scripts/payment-sandbox.exe" : "bin/payment-sandbox");
const INSTALL =
  'Run "make run" once in the clone of the package, or set SANDBOX_COMMAND to the command that starts it, ' +
  'such as "python3 payment-sandbox.pyz", or SANDBOX_URL to the address of a running server.';
const SET_URL = "set SANDBOX_URL to the address of a server, such as http://127.0.0.1:8080, or unset it to start one for the tests";
const START_SECONDS = 60;
const HANDLER_SECONDS = 5; // the service's timeout for an answer
const POLL_SECONDS = 10;
const KEPT_FOR = "P1D"; // real time
const REVIEW_MODES = ["off", "warn", "error"];

class SandboxError extends Error {
  constructor(status, error) {
    super(`${status} ${error.type}: ${error.value}`);
    Object.assign(this, { name: "SandboxError", status, ...error });
  }
}

class NoAnswer extends Error {
  constructor(seconds) {
    super(`no answer within ${seconds} seconds`);
  }
}

let started; // one server for all tests of this process
let hasFailed = false;

function startSandbox() {
  if (hasFailed) return Promise.reject(new Error("there is no payment sandbox: the first failure of this run says why"));
  return (started ??= start().catch((error) => {
    hasFailed = true;
    throw error;
  }));
}

async function start() {
  const running = process.env.SANDBOX_URL;
  if (running) return { url: running.replace(/\/+$/, ""), stop: async () => {} };
  const folder = fs.mkdtempSync(path.join(tmpdir(), "payment-sandbox-"));
  try {
    return await serve(findCommand(), path.join(folder, "ready.json"));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Find the command to put before "serve". */
function findCommand() {
  const configured = process.env.SANDBOX_COMMAND?.match(/"[^"]*"|'[^']*'|\S+/g);
  if (configured) return configured.map((word) => word.replace(/^(["'])(.*)\1$/, "$2"));
  if (isInstalled("payment-sandbox")) return ["payment-sandbox"];
  if (fs.existsSync(CLONE_COMMAND)) return [CLONE_COMMAND];
  throw new Error(`no payment sandbox: there is no payment-sandbox on the PATH, and no ${CLONE_COMMAND}. ${INSTALL}`);
}

function isInstalled(program) {
  const extensions = process.platform === "win32" ? [".exe", ".cmd"] : [""];
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  return folders.some((folder) => extensions.some((extension) => fs.existsSync(path.join(folder, program + extension))));
}

async function serve(command, ready) {
  const [program, ...rest] = command;
  const options = ["serve", "--port", "0", "--quiet", "--stop-with-stdin", "--ready-file", ready];
  const server = spawn(program, [...rest, ...options], { stdio: ["pipe", "ignore", "pipe"] });
  let errors = "";
  let exitReason;
  server.stderr.on("data", (text) => (errors = (errors + text).slice(-2000)));
  server.on("error", (error) => (exitReason ??= error.code === "ENOENT" ? `there is no program ${program}` : error.message));
  server.on("exit", (code) => (exitReason ??= `it exited with code ${code}: ${errors.trim().split(/\s+/).join(" ")}`));
  for (let waited = 0; !fs.existsSync(ready); waited += 0.02) {
    if (waited > START_SECONDS) server.kill();
    if (exitReason) throw new Error(`the sandbox did not start with "${command.join(" ")}": ${exitReason.replace(/\.$/, "")}. ${INSTALL}`);
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
  await new Promise((resolve) => server.once("exit", resolve));
}

/** Send a request without fetch, which a test may have replaced; resolves to {status, text}. */
function send(method, url, headers, body, { signal, seconds } = {}) {
  return new Promise((resolve, reject) => {
    const { request } = url.startsWith("https:") ? https : http;
    const outgoing = request(url, { method, headers, signal }, async (response) => {
      try {
        let text = "";
        for await (const part of response.setEncoding("utf8")) text += part;
        resolve({ status: response.statusCode, text });
      } catch (error) {
        reject(error);
      }
    });
    outgoing.on("error", reject);
    if (seconds) outgoing.setTimeout(seconds * 1000, () => outgoing.destroy(new NoAnswer(seconds)));
    outgoing.end(body);
  });
}

async function call(url, authorization, method, path, body, options) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const length = text === undefined ? {} : { "Content-Length": Buffer.byteLength(text), "Content-Type": "application/json" };
  const answer = await send(method, url + path, { Authorization: authorization, ...length }, text, options).catch((error) => {
    throw options?.signal?.aborted ? error : new Error(`no payment sandbox at ${url}: ${error.message.replace(/\s+/g, " ").trim()}${hint()}`);
  });
  const data = parseJson(answer.text);
  if (data === undefined || (answer.status >= 400 && !data.error?.type)) {
    throw new Error(`no payment sandbox at ${url}: another program answered ${answer.status}${hint()}`);
  }
  if (answer.status >= 400) throw new SandboxError(answer.status, data.error);
  return data;
}

const hint = () => (process.env.SANDBOX_URL ? `; ${SET_URL}` : "");

function parseJson(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return undefined;
  }
}

/** Add `deliverTo` to advice to serve the shop. */
const nameDelivery = (text) =>
  text.replaceAll("Make the shop listen at", "In a test, call deliverTo(handler). Otherwise make the shop listen at");

/** Return what happens to the integration's mistakes at the end of a test. */
function reviewMode() {
  const mode = process.env.PAYMENT_SANDBOX_REVIEW || "warn";
  if (REVIEW_MODES.includes(mode)) return mode;
  throw new Error(`PAYMENT_SANDBOX_REVIEW must be off, warn or error, not '${mode}'`);
}

async function newProject(settings = {}, test) {
  const { url } = await startSandbox();
  const token = `Bearer ${process.env.SANDBOX_CONTROL_TOKEN ?? ""}`;
  const created = await call(url, token, "POST", "/control/projects/", { clock: "frozen", ...named(test), ...settings }).catch((error) => {
    throw error.status === 404 ? new Error(`no payment sandbox at ${url}: ${error.message}${hint()}`) : error;
  });
  return new Project(url, created, test);
}

/** Name the project of a test after it, for `payment-sandbox review --all-projects` and the dashboard. */
const named = (test) => (test ? { name: test.replace(/\p{C}/gu, " ").slice(0, 200) } : {});

/** Return the name of a test in node:test, Mocha, Vitest or Jest. */
function testName(context, argument) {
  const state = () => globalThis.expect?.getState?.().currentTestName;
  return context?.test?.fullTitle?.() ?? argument?.fullName ?? withSuites(argument?.task) ?? argument?.name ?? state();
}

function withSuites(task) {
  const names = [];
  for (let each = task; each?.name; each = each.suite) names.unshift(each.name);
  return task && names.join(" ");
}

class Project {
  control = new ControlCommands((...call) => this.call(...call));
  #listening; // stops the delivery of webhooks to the handler
  #test; // its name
  #isExplained = false; // the report of a failed test has the findings

  constructor(url, created, test) {
    this.#test = test;
    Object.assign(this, { url, apiKey: created.api_key, projectId: created.project_id, merchantId: created.merchant_id });
  }

  call(method, path, body, options) {
    const authorization = `Basic ${Buffer.from(`${this.apiKey}:`).toString("base64")}`;
    return call(this.url, authorization, method, path, body, options);
  }

  async act(orderId, action) {
    requireId("act", orderId);
    await this.call("POST", `/control/orders/${orderId}/act/`, action);
    await this.settle();
    return this.order(orderId);
  }

  pay(orderId, more) {
    return this.act(orderId, { actor: "customer", action: "pay", ...more });
  }

  advance(by) {
    return this.call("POST", "/control/clock/advance/", isObject(by) ? by : { by });
  }

  async settle() {
    await this.call("GET", "/control/wait/?idle=1&timeout=60");
  }

  async order(orderId) {
    requireId("order", orderId);
    return (await this.call("GET", `/control/orders/${orderId}/`)).order;
  }

  scenario(nameOrDocument) {
    const document = typeof nameOrDocument === "string" ? { name: nameOrDocument } : nameOrDocument;
    return this.call("PUT", "/control/scenario/", document);
  }

  faults(document) {
    return this.call("PUT", "/control/faults/", Array.isArray(document) ? { faults: document } : document);
  }

  async webhooks(orderId) {
    return (await this.call("GET", `/control/webhooks/${orderId ? `?order_id=${orderId}` : ""}`)).items;
  }

  async review() {
    return (await this.call("GET", "/control/review/")).items;
  }

  async report() {
    return nameDelivery((await this.call("GET", "/control/report/")).text);
  }

  async deliverTo(handler, path = "/webhook") {
    if (typeof handler !== "function" && typeof handler?.fetch !== "function") {
      throw new TypeError(`deliverTo takes a node:http handler, such as an Express application, or an object with fetch, not ${nameType(handler)}`);
    }
    await this.#listening?.();
    const shop = typeof handler === "function" ? await serveHandler(handler) : wrapFetch(handler);
    const controller = new AbortController();
    const next = (timeout) =>
      this.call("POST", "/control/listener/next/", { listener, forward_to: shop.url + path, timeout }, { signal: controller.signal });
    const listener = randomUUID();
    const first = await next(0); // from now on, the server offers webhooks instead of sending them
    const forwarding = this.#forward(first, next, shop.deliver).catch((error) => {
      if (!controller.signal.aborted) process.emitWarning(`webhooks are no longer delivered: ${error.message}`);
    });
    this.#listening = async () => {
      controller.abort();
      await forwarding;
      shop.close();
    };
  }

  tellBooks() {} // nothing reads the books, but suites tell them

  async ended() {} // close() does the rest

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
    this.#isExplained = true;
    const report = await this.report().catch((problem) => `the timeline could not be read: ${problem.message}`);
    const failed = error instanceof Error || error?.stack ? error : new Error(String(error), { cause: error });
    const cause = failed.cause?.message ? `: ${failed.cause.message}` : ""; // "fetch failed" alone explains nothing
    const [before, message] = [failed.message, `${failed.message}${cause}\n\n--- payment sandbox ---\n${report}\n`];
    const stack = String(failed.stack).replace(before, () => message);
    Object.defineProperty(failed, "message", { value: message, configurable: true, writable: true });
    Object.defineProperty(failed, "stack", { value: stack, configurable: true, writable: true });
    return failed;
  }

  async close() {
    await this.#listening?.();
    const mode = reviewMode();
    const mistakes = mode === "off" ? "" : await this.#mistakes();
    await this.#dispose(mistakes);
    if (!mistakes || this.#isExplained) return;
    if (mode === "error") throw new Error(mistakes);
    process.emitWarning(`${this.#test ? `${this.#test}: ` : ""}${mistakes}`, "PaymentReviewWarning");
  }

  async #mistakes() {
    const { text } = await this.call("GET", "/control/review/").catch(() => ({ text: "" })); // the test may have deleted it
    return nameDelivery(text);
  }

  /** Delete the project; on a shared server, keep mistakes for "payment-sandbox review --all-projects". */
  async #dispose(mistakes) {
    const kept = mistakes && process.env.SANDBOX_URL;
    const disposal = kept ? ["PATCH", "/control/project/", { expires_after: KEPT_FOR }] : ["DELETE", "/control/project/"];
    await this.call(...disposal).catch(() => {});
  }
}

const nameType = (value) => (isObject(value) ? `an object of ${value.constructor?.name}` : JSON.stringify(value));
const isObject = (value) => typeof value === "object" && value !== null;

/** Return an error's stack without the frames of this package and of Node, which hide those of the shop. */
function stackOf(error) {
  const lines = String(error?.stack ?? error).split("\n");
  return lines.filter((line) => !line.includes(__filename) && !line.includes("(node:") && !/^\s*at (async )?node:/.test(line)).join("\n");
}

function requireId(method, orderId) {
  if (typeof orderId === "string" && orderId) return;
  throw new TypeError(`${method} takes the id of an order, not ${nameType(orderId)}: did the shop's call to create the order fail, or is an await missing?`);
}

/** Serve a shop that is a node:http handler, such as an Express application. */
async function serveHandler(handler) {
  const server = http.createServer(async (request, response) => {
    try {
      await handler(request, response);
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end(stackOf(error));
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const deliver = async ({ url, headers, body }) => {
    const answer = await send("POST", url, headers, body, { seconds: HANDLER_SECONDS });
    return { status: answer.status, body: answer.text.slice(0, 4096) };
  };
  const url = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url, deliver, close };
}

/** Wrap a shop with a fetch method, such as a Hono application or {fetch: POST}. */
function wrapFetch(shop) {
  const deliver = async ({ url, headers, body }) => {
    try {
      const response = await inTime(shop.fetch(new Request(url, { method: "POST", headers, body })));
      return { status: response.status, body: (await response.text()).slice(0, 4096) };
    } catch (error) {
      if (error instanceof NoAnswer) throw error;
      return { status: 500, body: stackOf(error) };
    }
  };
  return { url: "http://127.0.0.1", deliver, close() {} };
}

async function inTime(answer) {
  const answered = new AbortController();
  const limit = pause(HANDLER_SECONDS * 1000, undefined, { signal: answered.signal }).then(
    () => { throw new NoAnswer(HANDLER_SECONDS); },
    () => {}, // answered in time
  );
  try {
    return await Promise.race([answer, limit]);
  } finally {
    answered.abort();
  }
}

function sandboxed(settings, test) {
  if (typeof settings === "function") [settings, test] = [{}, settings];
  return async function (...args) {
    const project = await newProject(settings, testName(this, args[0]));
    try {
      return await test.call(this, project, ...args);
    } catch (error) {
      throw await project.explain(error);
    } finally {
      await project.close();
    }
  };
}

module.exports = { SandboxError, newProject, sandboxed, startSandbox };
