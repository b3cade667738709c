#!/usr/bin/env bash
# undici 7.30.2 on Node.js 20, run on 2026-11-28
# The retry interceptor repeats no POST, as documented. But it does not return the response of 503 either: the request is
# rejected with "Request failed" after one call, and the body, which may say why, is not readable. Without it, 503 arrives.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts undici@7.30.2
cat > program.mjs << 'PROGRAM'
import { createServer } from "node:http";
import { Agent, interceptors, request } from "undici";

let calls = 0;
const server = createServer((_, response) => (calls++, response.writeHead(503), response.end("closed until noon")));
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}/`;
const agent = new Agent();
const retrying = agent.compose(interceptors.retry({ maxRetries: 2, minTimeout: 10 }));
for (const dispatcher of [agent, retrying]) {
  calls = 0;
  const outcome = await request(url, { method: "POST", dispatcher }).then(
    async ({ statusCode, body }) => `${statusCode} ${await body.text()}`,
    (error) => `${error.code} ${error.message}`,
  );
  console.log(outcome, "after", calls, "call");
}
await agent.close();
server.close();
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
503 closed until noon after 1 call
UND_ERR_REQ_RETRY Request failed after 1 call
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
