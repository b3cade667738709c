<?php

declare(strict_types=1);

namespace PaymentSandbox;

/** A webhook, as delivered to the shop. */
final class Webhook
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly string $url,
        public readonly array $headers,
        public readonly string $body,
        public readonly string $orderId,
    ) {
    }
}
