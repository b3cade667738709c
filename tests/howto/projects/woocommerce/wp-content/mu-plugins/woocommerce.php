<?php
/**
 * Stands in for WooCommerce, whose source no package index has: the classes and functions that payment gateways use,
 * with the real names, arguments and order of calls. Orders are stored in files. WordPress itself is real.
 */
final class WC_Order
{
    private const PAYABLE = ['pending', 'failed'];

    public function __construct(private array $data) {}

    public function get_id() { return $this->data['id']; }
    public function get_order_number() { return $this->data['id']; }
    public function get_currency() { return 'EUR'; }
    public function get_total() { return $this->data['total']; }
    public function get_status() { return $this->data['status']; }
    public function get_transaction_id() { return $this->data['transaction_id'] ?? ''; }
    public function set_transaction_id($id) { $this->data['transaction_id'] = $id; }
    public function get_meta($key) { return $this->data['meta'][$key] ?? ''; }
    public function update_meta_data($key, $value) { $this->data['meta'][$key] = $value; }
    public function get_checkout_order_received_url() { return home_url('/checkout/order-received/' . $this->get_id()); }
    public function needs_payment() { return in_array($this->get_status(), self::PAYABLE, true) && $this->get_total() > 0; }

    public function save()
    {
        file_put_contents(__DIR__ . "/order-{$this->get_id()}.json", json_encode($this->data), LOCK_EX);
    }

    public function update_status($status, $note = '')
    {
        $this->data['status'] = $status;
        $this->data['notes'][] = $note;
        $this->save();
        do_action("woocommerce_order_status_$status", $this->get_id(), $this);
        return true;
    }

    public function payment_complete($transaction_id = '')
    {
        $this->set_transaction_id($transaction_id);
        return $this->update_status('processing');
    }
}

abstract class WC_Payment_Gateway
{
    public $id, $method_title = '', $supports = ['products'], $form_fields = [], $settings = [], $enabled = 'yes';

    public function init_settings() { $this->settings = get_option("woocommerce_{$this->id}_settings", []); }
    public function get_option($key, $empty = null) { return $this->settings[$key] ?? $empty; }
    public function process_admin_options() { return true; }
    public function supports($feature) { return in_array($feature, $this->supports, true); }
    public function get_return_url($order = null) { return $order->get_checkout_order_received_url(); }
    public function process_payment($order_id) { return []; }
    public function process_refund($order_id, $amount = null, $reason = '') { return false; }
}

final class WooCommerce
{
    public function api_request_url($request) { return add_query_arg('wc-api', $request, home_url('/')); }
}

function WC() { return new WooCommerce(); }
function wc_add_notice($message, $type = 'success') { echo "$type: $message"; }

function wc_get_order($id)
{
    $file = __DIR__ . "/order-$id.json";
    return file_exists($file) ? new WC_Order(json_decode(file_get_contents($file), true)) : false;
}

add_filter('pre_option_home', fn () => WP_HOME); // a real shop stores this and the settings in its database
add_filter('pre_option_woocommerce_payment_orders_settings', fn () => ['key' => getenv('PAYMENTS_KEY'), 'enabled' => 'yes']);
require WP_CONTENT_DIR . '/plugins/payment-orders/payment-orders.php'; // loaded after must-use plugins, as an active plugin is

add_action('wp_loaded', function () {
    [$gateway] = array_map(fn ($class) => new $class(), apply_filters('woocommerce_payment_gateways', []));
    if (isset($_GET['wc-api'])) {
        do_action('woocommerce_api_' . strtolower($_GET['wc-api']));
        exit('-1');
    }
    $order = wc_get_order(1) ?: new WC_Order(['id' => 1, 'total' => '20.00', 'status' => 'pending']);
    $order->save();
    $answer = match ($_GET['do']) {
        'buy' => $gateway->process_payment(1),
        'refund' => $gateway->process_refund(1, $_GET['amount']),
        'complete' => $order->update_status('completed'),
        'look' => $order->get_status(),
    };
    echo wp_json_encode(is_wp_error($answer) ? $answer->get_error_message() : $answer);
    exit;
});
