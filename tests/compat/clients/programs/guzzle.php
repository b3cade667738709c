<?php
require '/usr/share/php/GuzzleHttp/autoload.php';
[, $url, $method, $connection] = $argv;
$client = new GuzzleHttp\Client(['http_errors' => false, 'auth' => [getenv('API_KEY'), '']]);
if ($connection === 'kept') {
    $client->get($url);
}
$options = $method === 'POST' ? ['body' => file_get_contents('php://stdin'), 'headers' => ['Content-Type' => 'application/json']] : [];
if (in_array('fresh', $argv)) {
    $options['curl'] = [CURLOPT_FRESH_CONNECT => true];
}
echo $client->request($method, $url, $options)->getStatusCode();
