<?php
// The code under test: creates orders, and records their payment when webhooks arrive.
final class Shop
{
    /** @var array<string, true> */
    public array $shipped = [];

    public function __construct(private string $url, private string $apiKey) {}

    public function checkout(int $amount): string
    {
        $transactions = [['payment_method' => 'credit-card']];
        return $this->api('POST', '/v1/orders/', ['currency' => 'EUR', 'amount' => $amount, 'transactions' => $transactions])['id'];
    }

    /** Called by the webhook route, with the request's body. */
    public function onWebhook(string $body): void
    {
        $id = json_decode($body, true)['order_id'];
        if ($this->api('GET', "/v1/orders/$id/")['status'] === 'completed') {
            $this->shipped[$id] = true;
        }
    }

    private function api(string $method, string $path, ?array $body = null): array
    {
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => ['Authorization: Basic ' . base64_encode("$this->apiKey:"), 'Content-Type: application/json'],
            'content' => $body === null ? '' : json_encode($body),
        ]]);
        return json_decode(file_get_contents($this->url . $path, false, $context), true);
    }
}
