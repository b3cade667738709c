<?php

declare(strict_types=1);

namespace PaymentSandbox;

use PHPUnit\Framework\IncompleteTest;
use PHPUnit\Framework\SkippedTest;

/** For test cases of PHPUnit: a project for each test, whose timeline and findings end the report of a failure. */
trait UsesPaymentSandbox
{
    private ?Project $paymentSandbox = null;

    /** @param array<string, mixed> $settings of the project; the first call of a test makes it */
    protected function paymentSandbox(array $settings = []): Project
    {
        return $this->paymentSandbox ??= Project::create($settings);
    }

    protected function onNotSuccessfulTest(\Throwable $t): never
    {
        if (!$t instanceof SkippedTest && !$t instanceof IncompleteTest) {
            $this->paymentSandbox?->explain($t);
        }
        parent::onNotSuccessfulTest($t);
        throw $t;
    }
}
