<?php
// Guzzle and the generated client, without Composer; with it, this is vendor/autoload.php.
require '/usr/share/php/GuzzleHttp/autoload.php';

spl_autoload_register(function (string $class): void {
    $file = __DIR__ . '/client/lib/' . strtr(preg_replace('/^Sandbox\\\\/', '', $class), '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});
