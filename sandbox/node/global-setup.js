"use strict";
// One server for all workers of Vitest and Jest: globalSetup: "payment-sandbox/global-setup".

const { startSandbox } = require("./index.js");

module.exports = async function setUp() {
  const { url, stop } = await startSandbox();
  process.env.SANDBOX_URL = url; // workers inherit it
  return stop; // Vitest calls it; for Jest the server stops with this process
};
