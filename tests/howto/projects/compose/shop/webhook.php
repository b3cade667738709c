<?php
require 'sandbox.php';

$id = json_decode(file_get_contents('php://input'), true)['order_id'] ?? '';
$order = call('GET', '/v1/orders/' . rawurlencode($id) . '/');
if (isset($order['status'])) {
    remember($id, $order['status']);
}
http_response_code(204);
