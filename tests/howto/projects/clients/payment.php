<?php
// Drives a payment with the client that openapi-generator has made: php payment.php URL
require 'autoload.php';

use Sandbox\Api\ControlAPIApi;
use Sandbox\Api\MerchantAPIApi;
use Sandbox\Api\ServerApi;
use Sandbox\ApiException;
use Sandbox\Configuration;
use Sandbox\Model\ActRequest;
use Sandbox\Model\AdvanceRequest;
use Sandbox\Model\NewProjectRequest;
use Sandbox\Model\OrderRequest;
use Sandbox\Model\RefundRequest;
use Sandbox\Model\TransactionRequest;

$config = (new Configuration())->setHost($argv[1])->setPassword('');
$http = new GuzzleHttp\Client();

$project = (new ControlAPIApi($http, $config))->projectsPostProject(new NewProjectRequest(['clock' => 'frozen']));
$config->setUsername($project->getApiKey());
$merchant = new MerchantAPIApi($http, $config);
$control = new ControlAPIApi($http, $config);

$card = new TransactionRequest(['payment_method' => 'credit-card', 'capture_mode' => 'delayed', 'expiration_period' => 'P7D']);
$order = $merchant->apiPostOrder(new OrderRequest(['currency' => 'EUR', 'amount' => 1295, 'transactions' => [$card]]));
echo 'created ', $order->getStatus(), ' ', $order->getTransactions()[0]->getPaymentMethod(), "\n";

$paid = $control->controlPostAct($order->getId(), new ActRequest(['actor' => 'customer', 'action' => 'pay']));
echo 'paid ', $paid->getStatus(), ', capturable: ', json_encode($paid->getTransactions()[0]->getIsCapturable()), "\n";

$advance = $control->controlPostAdvance(new AdvanceRequest(['by' => 'P7D']));
echo 'a week later: ', $advance->getEvents()[0]->getKind(), "\n";

$refund = $merchant->apiPostRefund($order->getId(), null, new RefundRequest(['amount' => 500]));
echo 'refunded ', $refund->getAmount(), "\n";

try {
    $merchant->apiPostRefund($order->getId(), null, new RefundRequest(['amount' => 5000]));
} catch (ApiException $refused) {
    echo 'refused ', $refused->getCode(), ' ', $refused->getResponseObject()->getError()->getType(), "\n";
}
