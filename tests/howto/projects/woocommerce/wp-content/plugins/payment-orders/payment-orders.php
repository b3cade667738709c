<?php
/** Plugin Name: Payment orders */
add_action('plugins_loaded', function () {
    class WC_Gateway_Payment_Orders extends WC_Payment_Gateway
    {
        const API = 'https://api.payments.example/v1';

        public function __construct()
        {
            $this->id = 'payment_orders';
            $this->method_title = 'Payment orders';
            $this->supports = ['products', 'refunds'];
            $this->form_fields = ['key' => ['title' => 'API key', 'type' => 'password']];
            $this->init_settings();
            add_action('woocommerce_api_payment_orders', [$this, 'webhook']);
            add_action('woocommerce_order_status_completed', [$this, 'capture']);
            add_action("woocommerce_update_options_payment_gateways_$this->id", [$this, 'process_admin_options']);
        }

        public function process_payment($order_id)
        {
            $order = wc_get_order($order_id);
            $created = $this->call('POST', '/orders/', [
                'currency' => $order->get_currency(),
                'amount' => $this->cents($order->get_total()),
                'merchant_order_id' => (string) $order->get_order_number(),
                'return_url' => $this->get_return_url($order),
                'webhook_url' => WC()->api_request_url('payment_orders'),
                'transactions' => [
                    ['payment_method' => 'credit-card', 'capture_mode' => 'manual', 'expiration_period' => 'P7D'],
                ],
            ]);
            if (is_wp_error($created)) {
                wc_add_notice($created->get_error_message(), 'error');
                return ['result' => 'failure'];
            }
            $order->set_transaction_id($created['id']);
            $order->update_meta_data('_payment', $created['transactions'][0]['id']);
            $order->save();
            return ['result' => 'success', 'redirect' => 'https://' . $created['transactions'][0]['payment_url']];
        }

        public function webhook()
        {
            $id = json_decode(file_get_contents('php://input'), true)['order_id'];
            $paid = $this->call('GET', "/orders/$id/");
            if (is_wp_error($paid)) {
                status_header(503); // the service retries
                exit;
            }
            $order = wc_get_order((int) ($paid['merchant_order_id'] ?? 0));
            if ($order && $order->get_transaction_id() === $id && $order->needs_payment()) {
                if ($paid['status'] === 'completed') {
                    $order->payment_complete($id);
                } elseif (in_array($paid['status'], ['cancelled', 'expired', 'error'], true)) {
                    $order->update_status('cancelled', "The payment is {$paid['status']}.");
                }
            }
            status_header(204);
            exit;
        }

        /** A completed order has been shipped: capture the remaining authorization. */
        public function capture($order_id)
        {
            $order = wc_get_order($order_id);
            $captured = $this->call('POST', $this->payment($order) . '/captures/');
            if (is_wp_error($captured)) {
                $order->update_status('on-hold', 'Not captured: ' . $captured->get_error_message());
                return;
            }
            $order->update_meta_data('_captured', 'yes');
            $order->save();
        }

        /** Before the capture, a refund voids the unshipped part of the authorization; afterwards, it returns money. */
        public function process_refund($order_id, $amount = null, $reason = '')
        {
            $order = wc_get_order($order_id);
            $body = ['amount' => $this->cents($amount), 'description' => $reason ?: 'Refund'];
            $is_captured = $order->get_meta('_captured') === 'yes';
            $path = $is_captured ? "/orders/{$order->get_transaction_id()}/refunds/" : $this->payment($order) . '/voids/amount/';
            $refund = $this->call('POST', $path, $body);
            return is_wp_error($refund) ? $refund : true;
        }

        private function payment($order)
        {
            return "/orders/{$order->get_transaction_id()}/transactions/{$order->get_meta('_payment')}";
        }

        private function cents($amount)
        {
            return (int) round($amount * 100);
        }

        private function call($method, $path, $body = null)
        {
            $headers = ['Authorization' => 'Basic ' . base64_encode($this->get_option('key') . ':')];
            $response = wp_safe_remote_request(self::API . $path, [
                'method' => $method,
                'headers' => $headers + ['Content-Type' => 'application/json'],
                'body' => $body === null ? null : wp_json_encode($body),
                'timeout' => 10,
            ]);
            if (is_wp_error($response)) {
                return $response;
            }
            $answer = json_decode(wp_remote_retrieve_body($response), true);
            return isset($answer['error']) ? new WP_Error($answer['error']['type'], $answer['error']['value']) : $answer;
        }
    }
    add_filter('woocommerce_payment_gateways', fn ($all) => [...$all, 'WC_Gateway_Payment_Orders']);
});
