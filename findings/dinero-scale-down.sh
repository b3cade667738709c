#!/usr/bin/env bash
# dinero.js 2.0.2 on Node.js 20, run on 2026-11-28
# transformScale to fewer decimals rounds towards minus infinity unless it is given another function: 2.9 cents become 2,
# and -2.1 cents become -3. So a charge loses almost a cent, and its refund gains one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts dinero.js@2.0.2
cat > program.mjs << 'PROGRAM'
import { dinero, halfUp, toDecimal, transformScale } from "dinero.js";

const euro = { code: "EUR", base: 10, exponent: 2 };
for (const amount of [29, -21]) {
  const price = dinero({ amount, currency: euro, scale: 3 });
  console.log(toDecimal(price), toDecimal(transformScale(price, 2)), toDecimal(transformScale(price, 2, halfUp)));
}
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
0.029 0.02 0.03
-0.021 -0.03 -0.02
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
