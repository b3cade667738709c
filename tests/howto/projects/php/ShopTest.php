<?php
require_once 'Sandbox.php';

use PHPUnit\Framework\TestCase;

final class ShopTest extends TestCase
{
    private Sandbox $sandbox;
    private string $shipped;
    private $shop;

    protected function setUp(): void
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $address = stream_socket_get_name($socket, false); // a free port
        fclose($socket);
        $this->sandbox = Sandbox::project(['webhook_url' => "http://$address/webhook.php"]);
        $this->shipped = sys_get_temp_dir() . '/shipped-' . bin2hex(random_bytes(4));
        mkdir($this->shipped);
        $settings = $this->sandbox->settings() + ['SHIPPED' => $this->shipped] + getenv();
        $quiet = [2 => ['file', '/dev/null', 'w']];
        $this->shop = proc_open(['php', '-S', $address, '-t', __DIR__], $quiet, $pipes, __DIR__, $settings);
        while (!@fsockopen("tcp://$address")) {
            usleep(20_000);
        }
    }

    protected function tearDown(): void
    {
        proc_terminate($this->shop);
        array_map('unlink', glob("$this->shipped/*"));
        rmdir($this->shipped);
    }

    private function checkout(): string
    {
        $transactions = [['payment_method' => 'credit-card']];
        return $this->sandbox->call('POST', '/v1/orders/', ['currency' => 'EUR', 'amount' => 1295, 'transactions' => $transactions])['id'];
    }

    public function testAPaidOrderIsShipped(): void
    {
        $id = $this->checkout();
        $this->sandbox->call('POST', "/control/orders/$id/act/", ['actor' => 'customer', 'action' => 'pay']);
        $this->sandbox->call('GET', '/control/wait/?idle=1');
        $this->assertFileExists("$this->shipped/$id");
    }

    public function testAnOrderThatNobodyPaysExpires(): void
    {
        $id = $this->checkout();
        $this->sandbox->call('POST', '/control/clock/advance/', ['by' => 'PT30M']);
        $this->assertSame('expired', $this->sandbox->call('GET', "/v1/orders/$id/")['status']);
        $this->assertFileDoesNotExist("$this->shipped/$id");
    }
}
