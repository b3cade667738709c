#!/usr/bin/env bash
# duration-fns 3.0.2 on Node.js 20, run on 2026-11-28
# The time from 31 January to 1 March is said to be two months less thirty days, and 45 days from 31 January on are
# normalized to two months less a fortnight. Durations with parts of both signs: many readers refuse them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts duration-fns@3.0.2
cat > program.mjs << 'PROGRAM'
import { between, normalize, toString } from "duration-fns";

console.log(toString(between("2026-01-31", "2026-03-01")));
console.log(toString(normalize("P45D", "2026-01-31")));
console.log(toString(normalize("P45D", "2026-01-01")));
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
P2M-30D
P2M-14D
P1M14D
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
