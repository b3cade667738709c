#!/usr/bin/env bash
# currency.js 2.0.4 on Node.js 20, run on 2026-11-28
# An amount and its negative are rounded to different cents: halves go up, towards plus infinity. A refund of a computed
# amount that is entered as a negative is then a cent smaller than the charge.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts currency.js@2.0.4
cat > program.mjs << 'PROGRAM'
import currency from "currency.js";

for (const amount of [1.005, -1.005, 10.125, -10.125]) console.log(amount, currency(amount).value);
console.log("rest", currency(1.005).add(currency(-1.005)).value);
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
1.005 1.01
-1.005 -1
10.125 10.13
-10.125 -10.12
rest 0.01
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
