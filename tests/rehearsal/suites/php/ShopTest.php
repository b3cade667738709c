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
        $sandbox = $this->paymentSandbox();
        $this->shop = new Shop($sandbox->url, $sandbox->apiKey);
        $sandbox->deliverTo(fn (Webhook $webhook) => $this->shop->onWebhook($webhook->body));
        $sandbox->every('PT1H', $this->shop->lookAtOpenOrders(...));
        $sandbox->tellBooks($this->shop->books(...));
    }

    public function testAPaidSaleIsShipped(): void
    {
        $this->paymentSandbox()->pay($this->shop->checkout('S-1', 1295));
        $this->assertGreaterThan(0, $this->shop->sales['S-1']['shipped']);
    }

    public function testASaleIsRefunded(): void
    {
        $this->paymentSandbox()->pay($this->shop->checkout('S-2', 2590));
        $this->shop->refund('S-2');
        $this->assertSame(2590, $this->shop->sales['S-2']['refunded']);
    }
}
