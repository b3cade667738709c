"use strict";
// Starts one server for all workers of Vitest or Jest: globalSetup: "payment-sandbox/global-setup".

const { startSandbox } = require("./index.js");

module.exports = async function setUp() {
  const { url, stop } = await startSandbox();
  process.env.SANDBOX_URL = url; // workers inherit it
  return stop; // Vitest calls this function; under Jest, the server stops with this process
};
