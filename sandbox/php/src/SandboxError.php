<?php

declare(strict_types=1);

namespace PaymentSandbox;

/** What the sandbox refused, such as 409 RefundExceedsCaptured; the code is the HTTP status. */
final class SandboxError extends \RuntimeException
{
    /** @param array<string, mixed> $error the body's error: type, value, violations, allowed */
    public function __construct(int $status, public readonly array $error)
    {
        parent::__construct("$status {$error['type']}: {$error['value']}", $status);
    }
}
