<?php
require 'vendor/autoload.php';
use PaymentSandbox\{Project, SandboxError, Webhook};
$sandbox = Project::create(['webhook_timing' => 'before_response', 'mode' => 'live', 'absolute_urls' => true]);
$seen = [];
$sandbox->deliverTo(function (Webhook $webhook) use ($sandbox, &$seen): int {
    $seen[] = $sandbox->call('GET', "/v1/orders/{$webhook->orderId}/")['status'];
    throw new LogicException('no stock');
}, '/hook');
$card = ['payment_method' => 'credit-card'];
$order = ['currency' => 'EUR', 'amount' => 1295, 'webhook_url' => 'http://shop.example/hook', 'transactions' => [$card]];
$id = $sandbox->call('POST', '/v1/orders/', $order)['id'];
$sandbox->pay($id);
$sandbox->faults([['when' => ['path' => '/v1/orders/'], 'then' => ['status' => 503]]]);
try {
    $sandbox->call('POST', '/v1/orders/', $order);
} catch (SandboxError $refused) {
    $statuses = [$refused->getCode()];
}
$sandbox->faults([]);
$sandbox->deliverTo(fn () => 'fine');
$sandbox->pay($sandbox->call('POST', '/v1/orders/', $order)['id']);
$transfer = ['payment_method' => 'bank-transfer'];
$awaited = $sandbox->call('POST', '/v1/orders/', ['transactions' => [$transfer]] + $order);
$credit = ['actor' => 'bank', 'action' => 'credit', 'transaction_id' => $awaited['transactions'][0]['id']];
$credited = $sandbox->act($awaited['id'], $credit)['status'];
try {
    $sandbox->pay($id);
} catch (SandboxError $refused) {
    echo json_encode([$credited, $seen, $refused->getCode(), $refused->error['type'], $sandbox->report(), $statuses]);
}
