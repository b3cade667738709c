<?php

declare(strict_types=1);

namespace PaymentSandbox;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\IncompleteTest;
use PHPUnit\Framework\SkippedTest;

/** For test cases of PHPUnit: a project for each test, whose timeline and findings end the report of a failure. */
trait UsesPaymentSandbox
{
    private ?Project $paymentSandbox = null;

    /** @param array<string, mixed> $settings of the project; the first call of a test makes it */
    protected function paymentSandbox(array $settings = []): Project
    {
        return $this->paymentSandbox ??= Project::create($settings, static::class . '::' . $this->nameOfTest());
    }

    /**
     * Let a rehearsal judge the test while its shop is still there.
     *
     * @after
     */
    #[After]
    protected function endRehearsedTest(): void
    {
        if ($this->paymentSandbox !== null && Project::isRehearsed()) {
            $this->paymentSandbox->ended($this->failureOfTest());
        }
    }

    private function nameOfTest(): string
    {
        return method_exists($this, 'nameWithDataSet') ? $this->nameWithDataSet() : $this->getName();
    }

    /** The failure of the test, if it has failed until now: PHPUnit 10 and later ask an object for it. */
    private function failureOfTest(): ?string
    {
        if (!method_exists($this, 'status')) {
            return $this->getStatus() > 2 ? 'the test fails: ' . $this->getStatusMessage() : null;
        }
        $status = $this->status();
        return $status->isFailure() || $status->isError() ? $status->message() : null;
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
