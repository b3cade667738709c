<?php
require 'sandbox.php';

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $order = call('POST', '/v1/orders/', [
        'currency' => 'EUR',
        'amount' => 1295,
        'description' => 'A pair of socks',
        'return_url' => "http://{$_SERVER['HTTP_HOST']}/return.php",
        'transactions' => [['payment_method' => 'credit-card']],
    ]);
    remember($order['id'], $order['status']);
    // payment_url has no scheme; many plugins write https:// here, which needs serve --tls
    header("Location: " . getenv('SCHEME') . "://{$order['transactions'][0]['payment_url']}", true, 303);
    exit;
}
?>
<!doctype html>
<title>Sock shop</title>
<h1>Socks</h1>
<form method="post"><button>Buy for 12.95</button></form>
