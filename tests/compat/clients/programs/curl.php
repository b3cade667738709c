<?php
// php curl.php URL METHOD new|kept [fresh]: make one call, on a connection that a GET has opened if it is "kept".
[, $url, $method, $connection] = $argv;
$curl = curl_init($url);
curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
if ($connection === 'kept') {
    curl_exec($curl);
}
curl_setopt($curl, CURLOPT_CUSTOMREQUEST, $method);
if ($method === 'POST') {
    curl_setopt($curl, CURLOPT_HTTPHEADER, ['Content-Type: application/json']);
    curl_setopt($curl, CURLOPT_POSTFIELDS, file_get_contents('php://stdin'));
}
curl_setopt($curl, CURLOPT_USERPWD, getenv('API_KEY') . ':');
curl_setopt($curl, CURLOPT_FRESH_CONNECT, in_array('fresh', $argv));
curl_exec($curl);
echo curl_getinfo($curl, CURLINFO_RESPONSE_CODE), ' ', curl_error($curl);
