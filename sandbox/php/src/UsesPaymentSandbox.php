<?php

declare(strict_types=1);

namespace PaymentSandbox;

use PHPUnit\Framework\Attributes\PostCondition;
use PHPUnit\Framework\IncompleteTest;
use PHPUnit\Framework\SkippedTest;

/** Gives each test of a PHPUnit test case a project; the message of a failure ends with its timeline and findings. */
trait UsesPaymentSandbox
{
    private ?Project $paymentSandbox = null;

    /** @param array<string, mixed> $settings of the project, which the first call in a test creates */
    protected function paymentSandbox(array $settings = []): Project
    {
        if ($this->paymentSandbox !== null && $settings !== []) {
            throw new \LogicException('paymentSandbox() has already created the project of this test: pass the settings in its first call');
        }
        return $this->paymentSandbox ??= Project::create($settings, static::class . '::' . $this->currentTestName());
    }

    /**
     * Review the integration's calls in a test that passed.
     *
     * @postCondition
     */
    #[PostCondition]
    protected function reviewPaymentSandbox(): void
    {
        $this->paymentSandbox?->enforceReview(static::class . '::' . $this->currentTestName());
    }

    private function currentTestName(): string
    {
        return method_exists($this, 'nameWithDataSet') ? $this->nameWithDataSet() : $this->getName();
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
