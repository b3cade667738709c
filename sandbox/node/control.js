// `make docs` writes this file from the functions in `web/control`.
"use strict";

/** The calls of the control API by name: method, path, and the key of the response that the call returns. */
const COMMANDS = {
  readClock: ["GET", "/control/clock/", null],
  changeClock: ["PATCH", "/control/clock/", null],
  advance: ["POST", "/control/clock/advance/", null],
  agenda: ["GET", "/control/agenda/", "items"],
  orders: ["GET", "/control/orders/", "items"],
  overview: ["GET", "/control/orders/<order_id>/", null],
  timeline: ["GET", "/control/timeline/", "items"],
  report: ["GET", "/control/report/", "text"],
  actions: ["GET", "/control/actions/", "items"],
  reviewed: ["GET", "/control/review/", null],
  cards: ["GET", "/control/cards/", "items"],
  qrRequests: ["GET", "/control/bankqr/", "items"],
  act: ["POST", "/control/orders/<order_id>/act/", null],
  scan: ["POST", "/control/bankqr/<qr_id>/scan/", null],
  activeScenario: ["GET", "/control/scenario/", null],
  putScenario: ["PUT", "/control/scenario/", null],
  resetScenario: ["DELETE", "/control/scenario/", null],
  scenarios: ["GET", "/control/scenarios/", "items"],
  scenarioDetail: ["GET", "/control/scenarios/<name>/", null],
  scenarioSchema: ["GET", "/control/scenarios/schema/", null],
  activeFaults: ["GET", "/control/faults/", null],
  putFaults: ["PUT", "/control/faults/", null],
  resetFaults: ["DELETE", "/control/faults/", null],
  webhooks: ["GET", "/control/webhooks/", "items"],
  webhook: ["GET", "/control/webhooks/<delivery_id>/", null],
  redeliver: ["POST", "/control/webhooks/<delivery_id>/redeliver/", null],
  deliverUnsent: ["POST", "/control/webhooks/deliver/", "items"],
  journal: ["GET", "/control/journal/", "items"],
  journalEntry: ["GET", "/control/journal/<entry_id>/", null],
  fidelity: ["GET", "/control/fidelity/", null],
  project: ["GET", "/control/project/", null],
  patchProject: ["PATCH", "/control/project/", null],
  deleteProject: ["DELETE", "/control/project/", "deleted"],
  reset: ["POST", "/control/reset/", null],
  snapshot: ["GET", "/control/state/", null],
  restore: ["PUT", "/control/state/", null],
  wait: ["GET", "/control/wait/", null],
  nextOffers: ["POST", "/control/listener/next/", null],
  reportAnswer: ["POST", "/control/listener/answers/", "recorded"],
};

/** One method for each call: first the ids in its path, then the other values as an object. */
class ControlCommands {
  constructor(call) {
    for (const [name, [method, path, unwraps]] of Object.entries(COMMANDS)) {
      this[name] = async (...given) => {
        const filled = path.replace(/<\w+>/g, () => pathPart(given.shift()));
        const [values] = given;
        const isRead = method === "GET";
        const query = isRead && values ? `?${new URLSearchParams(Object.entries(values).filter(([, each]) => each != null))}` : "";
        const answer = await call(method, filled + query, isRead ? undefined : values);
        return unwraps ? answer[unwraps] : answer;
      };
    }
  }
}

function pathPart(id) {
  if (typeof id !== "string" || ["", ".", ".."].includes(id)) throw new TypeError(`${JSON.stringify(id)} is not an id`);
  return encodeURIComponent(id);
}

module.exports = { COMMANDS, ControlCommands };
