<?php

declare(strict_types=1);

namespace PaymentSandbox;

/** A refusal by the sandbox, such as 409 RefundExceedsCaptured; the code is the HTTP status. */
final class SandboxError extends \RuntimeException
{
    /** @param array<string, mixed> $error the error in the response body: type, value, violations, allowed */
    public function __construct(int $status, public readonly array $error)
    {
        parent::__construct("$status {$error['type']}: {$error['value']}", $status);
    }
}
