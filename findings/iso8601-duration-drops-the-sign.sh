#!/usr/bin/env bash
# iso8601-duration 2.1.4 on Node.js 20, run on 2026-11-28
# A negative duration is accepted, and read as a positive one: what was to end a day earlier ends a day later.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts iso8601-duration@2.1.4
cat > program.mjs << 'PROGRAM'
import { end, parse, toSeconds } from "iso8601-duration";

for (const text of ["P1D", "-P1D"])
  console.log(text, toSeconds(parse(text)), end(parse(text), new Date("2026-11-28T00:00:00Z")).toISOString());
PROGRAM
seen=$(node program.mjs)
expected=$(cat << 'EXPECTED'
P1D 86400 2026-11-29T00:00:00.000Z
-P1D 86400 2026-11-29T00:00:00.000Z
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
