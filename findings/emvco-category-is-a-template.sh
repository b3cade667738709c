#!/usr/bin/env bash
# emvco-qr-sdk 1.0.0 reading a code of paynowqr 1.1.2, on Node.js 20, run on 2026-11-28
# A merchant category of 0000 ("none", which most codes of small merchants carry) is read as a nested template: field 00
# with no contents. So merchantCategoryCode is an object for these codes, and a string for others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts emvco-qr-sdk@1.0.0 paynowqr@1.1.2
cat > program.mjs << 'PROGRAM'
import sdk from "emvco-qr-sdk";
import PaynowQR from "paynowqr";

const code = new PaynowQR({ uen: "201403121W", amount: 5, expiry: "20271231", company: "Example" }).output();
console.log(code.includes("52040000"));
const { merchantCategoryCode, transactionCurrency } = sdk.parseQR(code, { parseMode: sdk.QRParseMode.GLOBAL });
console.log(JSON.stringify({ merchantCategoryCode, transactionCurrency }));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
true
{"merchantCategoryCode":{"00":""},"transactionCurrency":"702"}
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
