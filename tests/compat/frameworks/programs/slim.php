<?php
require 'Slim/autoload.php';

$_SERVER['SCRIPT_NAME'] = '/slim.php'; // php -S puts the path there, which Slim would cut off
$app = new Slim\App();
$app->map(['POST'], '/{route:slash/|bare}', function ($request, $response) {
    $id = json_decode($request->getBody())->order_id;
    $headers = 'Authorization: Basic ' . base64_encode(getenv('KEY') . ':');
    $context = stream_context_create(['http' => ['header' => $headers]]);
    $order = json_decode(file_get_contents(getenv('URL') . "/v1/orders/$id/", false, $context));
    return $response->write($order->status);
});
$app->run();
