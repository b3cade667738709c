<?php
require 'sandbox.php';

$id = $_GET['order_id'] ?? '';
$order = call('GET', '/v1/orders/' . rawurlencode($id) . '/');
?>
<!doctype html>
<title>Your order</title>
<h1>Order <?= htmlspecialchars($order['status'] ?? 'unknown') ?></h1>
<p id="told">The webhook said: <?= htmlspecialchars(known($id)) ?></p>
