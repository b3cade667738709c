<?php
// A shop whose mistakes are selected by the environment.
final class Shop
{
    private const SECONDS = 3;

    /** @var array<string, array<string, mixed>> by the shop's own number */
    public array $sales = [];

    public function __construct(private string $url, private string $apiKey) {}

    public function checkout(string $number, int $amount): string
    {
        $this->sales[$number] = ['orders' => [], 'amount' => $amount, 'paid' => 0, 'shipped' => 0, 'refunded' => 0];
        $transactions = [['payment_method' => 'credit-card']];
        $order = ['currency' => 'EUR', 'amount' => $amount, 'merchant_order_id' => $number, 'transactions' => $transactions];
        $id = $this->api('POST', '/v1/orders/', $order)['id'];
        return $this->sales[$number]['orders'][] = $id;
    }

    public function refund(string $number): void
    {
        [$id] = $this->sales[$number]['orders'];
        $body = ['amount' => $this->sales[$number]['amount']];
        try {
            $this->api('POST', "/v1/orders/$id/refunds/", $body);
        } catch (RuntimeException $lost) {
            $order = $this->api('GET', "/v1/orders/$id/"); // it may have been carried out
            if (self::has('believes-failures') || !in_array('has-refunds', $order['flags'] ?? [], true)) {
                throw $lost;
            }
        }
        $this->sales[$number]['refunded'] = $body['amount'];
    }

    public function onWebhook(string $body): void
    {
        $this->look(json_decode($body, true)['order_id']);
    }

    public function lookAtOpenOrders(): void
    {
        foreach ($this->sales as $sale) {
            array_map($this->look(...), $sale['paid'] ? [] : $sale['orders']);
        }
    }

    /** @return list<array<string, mixed>> */
    public function books(): array
    {
        return array_map(fn ($number, $sale) => ['purchase' => $number] + $sale, array_keys($this->sales), $this->sales);
    }

    private function look(string $id): void
    {
        $status = $this->api('GET', "/v1/orders/$id/")['status'];
        foreach ($this->sales as &$sale) {
            $isOwn = in_array($id, $sale['orders'], true);
            if ($isOwn && ($status === 'completed' || self::has('believes-webhooks'))) {
                $sale['paid'] = $sale['shipped'] = $sale['amount'];
            }
        }
    }

    private static function has(string $mistake): bool
    {
        return in_array($mistake, explode(' ', (string) getenv('MISTAKES')), true);
    }

    private function api(string $method, string $path, ?array $body = null): array
    {
        $context = stream_context_create(['http' => [
            'method' => $method,
            'timeout' => self::SECONDS,
            'header' => ['Authorization: Basic ' . base64_encode("$this->apiKey:"), 'Content-Type: application/json'],
            'content' => $body === null ? '' : json_encode($body),
        ]]);
        $answer = @file_get_contents($this->url . $path, false, $context);
        return $answer === false ? throw new RuntimeException("$method $path failed") : json_decode($answer, true);
    }
}
