<?php

// `make docs` writes this file from the functions in `web/control`.

declare(strict_types=1);

namespace PaymentSandbox;

/** The calls of the control API: first the ids in the path, then the other values as an array. */
final class ControlCommands
{
    /** @param \Closure(string, string, ?array): array $call */
    public function __construct(private readonly \Closure $call)
    {
    }

    /**
     * Get the clock.
     * @return array<mixed>
     */
    public function readClock(): array
    {
        return $this->run('GET', '/control/clock/', []);
    }

    /**
     * Freeze the clock, run it at a rate, or move it forward (CTL-12).
     * @param array{mode?: string, rate?: float, now?: string} $given
     * @return array<mixed>
     */
    public function changeClock(array $given = []): array
    {
        return $this->run('PATCH', '/control/clock/', [], body: $given);
    }

    /**
     * Advance the clock, event by event (CTL-13).
     * @param array{by?: string, to?: string, until?: string, max_events?: int, timeout?: float} $given
     * @return array<mixed>
     */
    public function advance(array $given = []): array
    {
        return $this->run('POST', '/control/clock/advance/', [], body: $given);
    }

    /**
     * List the scheduled events, including failed ones (CTL-17).
     * @return array<mixed>
     */
    public function agenda(): array
    {
        return $this->run('GET', '/control/agenda/', [])['items'];
    }

    /**
     * List orders, newest first.
     * @param array{status?: string, method?: string, text?: string, limit?: int, before?: string} $given
     * @return array<mixed>
     */
    public function orders(array $given = []): array
    {
        return $this->run('GET', '/control/orders/', [], $given)['items'];
    }

    /**
     * Get one order with its possible actions, scheduled events, webhooks and refunds.
     * @return array<mixed>
     */
    public function overview(string $orderId): array
    {
        return $this->run('GET', '/control/orders/%s/', [$orderId]);
    }

    /**
     * List the history of the project, causes before effects.
     * @param array{order_id?: string, limit?: int} $given
     * @return array<mixed>
     */
    public function timeline(array $given = []): array
    {
        return $this->run('GET', '/control/timeline/', [], $given)['items'];
    }

    /**
     * Get the timeline and the review findings as text, for the report of a failed test.
     * @param array{order_id?: string} $given
     */
    public function report(array $given = []): string
    {
        return $this->run('GET', '/control/report/', [], $given)['text'];
    }

    /**
     * List the actions by customers, banks, screenings and processors, newest last.
     * @param array{order_id?: string, limit?: int, before?: string} $given
     * @return array<mixed>
     */
    public function actions(array $given = []): array
    {
        return $this->run('GET', '/control/actions/', [], $given)['items'];
    }

    /**
     * List the mistakes in the integration's requests and webhook responses.
     * @return array<mixed>
     */
    public function reviewed(): array
    {
        return $this->run('GET', '/control/review/', []);
    }

    /**
     * List the stored cards, oldest first.
     * @return array<mixed>
     */
    public function cards(): array
    {
        return $this->run('GET', '/control/cards/', [])['items'];
    }

    /**
     * List the QR requests, oldest first.
     * @return array<mixed>
     */
    public function qrRequests(): array
    {
        return $this->run('GET', '/control/bankqr/', [])['items'];
    }

    /**
     * Act on an order as the customer, the bank or another actor (CTL-20).
     * @param array{actor: string, action: string, payment_method?: string, issuer_id?: string, card?: string, authorization?: string, amount?: int, transaction_id?: string, reason?: string} $given
     * @return array<mixed>
     */
    public function act(string $orderId, array $given): array
    {
        return $this->run('POST', '/control/orders/%s/act/', [$orderId], body: $given);
    }

    /**
     * Scan a QR code as a payer.
     * @param array{amount?: int, issuer_id?: string} $given
     * @return array<mixed>
     */
    public function scan(string $qrId, array $given = []): array
    {
        return $this->run('POST', '/control/bankqr/%s/scan/', [$qrId], body: $given);
    }

    /**
     * Get the active scenario; each rule says how often it has matched.
     * @return array<mixed>
     */
    public function activeScenario(): array
    {
        return $this->run('GET', '/control/scenario/', []);
    }

    /**
     * Activate a scenario, by name or from the body (CTL-19).
     * @param array<string, mixed> $given
     * @return array<mixed>
     */
    public function putScenario(array $given): array
    {
        return $this->run('PUT', '/control/scenario/', [], body: $given);
    }

    /**
     * Restore the default scenario.
     * @return array<mixed>
     */
    public function resetScenario(): array
    {
        return $this->run('DELETE', '/control/scenario/', []);
    }

    /**
     * List the available scenarios (CTL-18).
     * @return array<mixed>
     */
    public function scenarios(): array
    {
        return $this->run('GET', '/control/scenarios/', [])['items'];
    }

    /**
     * Get a scenario with its rules, and their uses if it is active.
     * @return array<mixed>
     */
    public function scenarioDetail(string $name): array
    {
        return $this->run('GET', '/control/scenarios/%s/', [$name]);
    }

    /**
     * Get the JSON Schema of scenario files, for editors.
     * @return array<mixed>
     */
    public function scenarioSchema(): array
    {
        return $this->run('GET', '/control/scenarios/schema/', []);
    }

    /**
     * Get the faults in addition to the scenario's; each says how often it has matched.
     * @return array<mixed>
     */
    public function activeFaults(): array
    {
        return $this->run('GET', '/control/faults/', []);
    }

    /**
     * Set faults for requests and webhooks, in addition to the scenario's (CTL-23, CTL-24).
     * @param array<string, mixed> $given
     * @return array<mixed>
     */
    public function putFaults(array $given): array
    {
        return $this->run('PUT', '/control/faults/', [], body: $given);
    }

    /**
     * Remove all faults except the scenario's.
     * @return array<mixed>
     */
    public function resetFaults(): array
    {
        return $this->run('DELETE', '/control/faults/', []);
    }

    /**
     * List webhooks with their delivery attempts (CTL-21).
     * @param array{order_id?: string, state?: string, limit?: int, before?: string, summary?: bool} $given
     * @return array<mixed>
     */
    public function webhooks(array $given = []): array
    {
        return $this->run('GET', '/control/webhooks/', [], $given)['items'];
    }

    /**
     * Get one webhook with its delivery attempts.
     * @return array<mixed>
     */
    public function webhook(string $deliveryId): array
    {
        return $this->run('GET', '/control/webhooks/%s/', [$deliveryId]);
    }

    /**
     * Redeliver a webhook, now or later, unchanged or with another address or body (CTL-22).
     * @param array{url?: string, body?: string, after?: string} $given
     * @return array<mixed>
     */
    public function redeliver(string $deliveryId, array $given = []): array
    {
        return $this->run('POST', '/control/webhooks/%s/redeliver/', [$deliveryId], body: $given);
    }

    /**
     * Deliver all webhooks that were not sent because no address was set.
     * @param array{webhook_url: string} $given
     * @return array<mixed>
     */
    public function deliverUnsent(array $given): array
    {
        return $this->run('POST', '/control/webhooks/deliver/', [], body: $given)['items'];
    }

    /**
     * List the requests to the merchant API (CTL-25).
     * @param array{method?: string, path?: string, status?: int, order_id?: string, limit?: int, before?: string, summary?: bool} $given
     * @return array<mixed>
     */
    public function journal(array $given = []): array
    {
        return $this->run('GET', '/control/journal/', [], $given)['items'];
    }

    /**
     * Get one request to the merchant API with its response.
     * @return array<mixed>
     */
    public function journalEntry(string $entryId): array
    {
        return $this->run('GET', '/control/journal/%s/', [$entryId]);
    }

    /**
     * List every rule with the tests that prove it, and every assumption (SET-70).
     * @return array<mixed>
     */
    public function fidelity(): array
    {
        return $this->run('GET', '/control/fidelity/', []);
    }

    /**
     * Get the project.
     * @return array<mixed>
     */
    public function project(): array
    {
        return $this->run('GET', '/control/project/', []);
    }

    /**
     * Change some settings (CTL-01, CTL-07).
     * @param array<string, mixed> $given
     * @return array<mixed>
     */
    public function patchProject(array $given): array
    {
        return $this->run('PATCH', '/control/project/', [], body: $given);
    }

    /**
     * Delete the project; its API key stops working. A damaged project can only be deleted.
     */
    public function deleteProject(): string
    {
        return $this->run('DELETE', '/control/project/', [])['deleted'];
    }

    /**
     * Reset the project to its initial state (CTL-09).
     * @return array<mixed>
     */
    public function reset(): array
    {
        return $this->run('POST', '/control/reset/', []);
    }

    /**
     * Take a snapshot of the whole project (CTL-10).
     * @return array<mixed>
     */
    public function snapshot(): array
    {
        return $this->run('GET', '/control/state/', []);
    }

    /**
     * Restore a snapshot of this or another project (CTL-10, CTL-11).
     * @param array<string, mixed> $given
     * @return array<mixed>
     */
    public function restore(array $given): array
    {
        return $this->run('PUT', '/control/state/', [], body: $given);
    }

    /**
     * Wait until all given conditions hold (CTL-26).
     * @param array{order_id?: string, status?: string, webhook?: string, idle?: bool, timeout?: float} $given
     * @return array<mixed>
     */
    public function wait(array $given = []): array
    {
        return $this->run('GET', '/control/wait/', [], $given);
    }

    /**
     * Wait for the next webhooks to deliver, for listeners such as the command ``listen``.
     * @param array{timeout?: float, listener?: string, forward_to?: string, leaves?: bool} $given
     * @return array<mixed>
     */
    public function nextOffers(array $given = []): array
    {
        return $this->run('POST', '/control/listener/next/', [], body: $given);
    }

    /**
     * Report the shop's answer to an attempt, which counts as if the sandbox had received it.
     * @param array{id: string, status?: int, body?: string, error?: string, warning?: string, duration_ms?: float} $given
     */
    public function reportAnswer(array $given): bool
    {
        return $this->run('POST', '/control/listener/answers/', [], body: $given)['recorded'];
    }

    /** @param array<string, mixed>|null $body */
    private function run(string $method, string $path, array $ids, array $query = [], ?array $body = null): array
    {
        foreach ($ids as $id) {
            if (in_array($id, ['', '.', '..'], true)) {
                throw new \InvalidArgumentException("'$id' is not an id");
            }
        }
        $path = vsprintf($path, array_map(rawurlencode(...), $ids));
        $values = array_map(fn (mixed $each) => is_bool($each) ? (int) $each : $each, $query);
        return ($this->call)($method, $path . ($values === [] ? '' : '?' . http_build_query($values)), $body);
    }
}
