<?php
// The code under test: learns from a webhook whether an order is paid, and ships it.
$id = json_decode(file_get_contents('php://input'), true)['order_id'];
$headers = ['Authorization: Basic ' . base64_encode(getenv('SANDBOX_API_KEY') . ':')];
$context = stream_context_create(['http' => ['header' => $headers]]);
$order = json_decode(file_get_contents(getenv('SANDBOX_URL') . "/v1/orders/$id/", false, $context), true);
if ($order['status'] === 'completed') {
    touch(getenv('SHIPPED') . "/$id");
}
http_response_code(204);
