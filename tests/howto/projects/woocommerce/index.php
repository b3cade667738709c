<?php
define('ABSPATH', __DIR__ . '/');
define('WP_HOME', getenv('SHOP'));
define('WP_INSTALLING', true); // there are no tables
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define("{$name}_KEY", $name);
    define("{$name}_SALT", $name);
}
$table_prefix = 'wp_';
require ABSPATH . 'wp-settings.php';
