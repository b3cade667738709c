<?php

use PaymentSandbox\UsesPaymentSandbox;
use PaymentSandbox\Webhook;
use PHPUnit\Framework\TestCase;

final class ShopTest extends TestCase
{
    use UsesPaymentSandbox;

    private Shop $shop;

    protected function setUp(): void
    {
        $sandbox = $this->paymentSandbox(); // each test has its own project
        $this->shop = new Shop($sandbox->url, $sandbox->apiKey);
        $sandbox->deliverTo(fn (Webhook $webhook) => $this->shop->onWebhook($webhook->body));
    }

    public function testAPaidOrderIsShipped(): void
    {
        $id = $this->shop->checkout(1295);
        $this->paymentSandbox()->pay($id);
        $this->assertArrayHasKey($id, $this->shop->shipped);
    }

    public function testAnUnpaidOrderExpires(): void
    {
        $id = $this->shop->checkout(1295);
        $this->paymentSandbox()->advance('PT30M');
        $this->assertSame('expired', $this->paymentSandbox()->order($id)['status']);
        $this->assertSame([], $this->shop->shipped);
    }

    public function testAFailedWebhookIsRetried(): void
    {
        $this->paymentSandbox()->faults(['webhooks' => [['when' => ['attempt' => 1], 'then' => ['answer' => 503]]]]);
        $id = $this->shop->checkout(1295);
        $this->paymentSandbox()->pay($id);
        $this->paymentSandbox()->advance('PT2M');
        $this->assertArrayHasKey($id, $this->shop->shipped);
    }
}
