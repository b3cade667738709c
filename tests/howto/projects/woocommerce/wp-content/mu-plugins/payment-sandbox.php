<?php
// WordPress trusts its own list of authorities, and refuses to call names that resolve to this machine.
add_filter('http_request_args', fn ($args) => ['sslcertificates' => getenv('SANDBOX_CA')] + $args);
add_filter('http_request_host_is_external', fn ($is, $host) => $is || $host === 'api.payments.example', 10, 2);
