#!/usr/bin/env bash
# paynowqr 1.1.2 on Node.js 20, run on 2026-11-28
# The amount is written as JavaScript prints it: 0.1 + 0.2 dollars become nineteen characters, where EMVCo allows thirteen.
# A company that is not named is called COMPANY in the code, which the payer's bank may show.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts paynowqr@1.1.2
cat > program.mjs << 'PROGRAM'
import PaynowQR from "paynowqr";

const code = new PaynowQR({ uen: "201403121W", amount: 0.1 + 0.2, expiry: "20271231" }).output();
console.log(code.match(/54\d\d0\.3\d*(?=5802SG)/)[0]);
console.log(code.match(/59\d\d[A-Z]+/)[0]);
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
54190.30000000000000004
5907COMPANY
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
