#!/usr/bin/env bash
# money-math 2.6.3 on Node.js 20, run on 2026-11-28
# Products and quotients of negative amounts are off by a cent or two towards zero: half a cent is added whatever the sign,
# and the rest is cut off. -2.00 / 3.00 is -0.65, which no way of rounding yields; 2.00 / 3.00 is 0.67.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts money-math@2.6.3
cat > program.mjs << 'PROGRAM'
import money from "money-math";

for (const sign of ["", "-"])
  console.log(money.div(`${sign}2.00`, "3.00"), money.mul(`${sign}1.05`, "0.10"), money.mul(`${sign}1.50`, "0.01"));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
0.67 0.11 0.02
-0.65 -0.09 0.00
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
