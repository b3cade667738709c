<?php

declare(strict_types=1);

namespace PaymentSandbox;

/**
 * The sandbox for this process: at SANDBOX_URL; or started with the command in SANDBOX_COMMAND, or with payment-sandbox,
 * from the PATH or from the environment of the package's clone, in this order. A started server stops with
 * this process, even if the process is killed.
 */
final class Server
{
    private const INSTALL = 'Run "make run" once in the clone of the package, or set SANDBOX_COMMAND to the command that starts it, '
        . 'such as "python3 payment-sandbox.pyz", or SANDBOX_URL to the address of a running server.';
    private const START_SECONDS = 60;

    private const NO_PROGRAM = 127; // the exit code of a process whose program does not exist

    private static ?string $url = null;
    private static bool $hasFailed = false;

    public static function url(): string
    {
        return self::$url ??= rtrim((string) getenv('SANDBOX_URL'), '/') ?: self::start();
    }

    /** Return whether the server is shared and outlives this process, so that projects must be deleted. */
    public static function isShared(): bool
    {
        return (bool) getenv('SANDBOX_URL');
    }

    /** Return the remedy for a server that does not answer as a sandbox; empty if this process has started it. */
    public static function hint(): string
    {
        $remedy = 'set SANDBOX_URL to the address of a server, such as http://127.0.0.1:8080, or unset it to start one for the tests';
        return self::isShared() ? "; $remedy" : '';
    }

    private static function start(): string
    {
        if (self::$hasFailed) {
            throw new \RuntimeException('there is no payment sandbox: the first failure of this run says why');
        }
        self::$hasFailed = true;
        $folder = sys_get_temp_dir() . '/payment-sandbox-' . bin2hex(random_bytes(6));
        mkdir($folder);
        try {
            $url = self::serve($folder, self::findCommand());
        } finally {
            array_map('unlink', glob("$folder/*") ?: []);
            rmdir($folder);
        }
        self::$hasFailed = false;
        return $url;
    }

    /** @return list<string> the command to put before "serve" */
    private static function findCommand(): array
    {
        if (preg_match_all('/"[^"]*"|\'[^\']*\'|\S+/', (string) getenv('SANDBOX_COMMAND'), $words) > 0) {
            return preg_replace('/^(["\'])(.*)\1$/', '$2', $words[0]) ?? $words[0];
        }
        if (self::isInstalled('payment-sandbox')) {
            return ['payment-sandbox'];
        }
        $ofClone = dirname(__DIR__, 3) . (PHP_OS_FAMILY === 'Windows' ? '/.venv/Scripts/payment-sandbox.exe' : '/.venv/bin/payment-sandbox');
        if (is_file($ofClone)) {
            return [$ofClone];
        }
        throw new \RuntimeException("no payment sandbox: there is no payment-sandbox on the PATH, and no $ofClone. " . self::INSTALL);
    }

    private static function isInstalled(string $program): bool
    {
        $name = PHP_OS_FAMILY === 'Windows' ? "$program.exe" : $program;
        foreach (explode(PATH_SEPARATOR, (string) getenv('PATH')) as $folder) {
            if ($folder !== '' && is_file("$folder/$name")) {
                return true;
            }
        }
        return false;
    }

    /** @param list<string> $command */
    private static function serve(string $folder, array $command): string
    {
        $options = ['serve', '--port', '0', '--quiet', '--stop-with-stdin', '--ready-file', "$folder/ready.json"];
        $streams = [['pipe', 'r'], ['file', "$folder/output", 'w'], ['file', "$folder/errors", 'w']];
        $server = @proc_open([...$command, ...$options], $streams, $pipes);
        $problem = $server === false ? "there is no program $command[0]" : null;
        for ($waited = 0.0; $problem === null && !is_file("$folder/ready.json"); $waited += 0.02) {
            usleep(20_000);
            $status = proc_get_status($server);
            if (!$status['running']) {
                $errors = preg_replace('/\s+/', ' ', trim((string) file_get_contents("$folder/errors")));
                $problem = $status['exitcode'] === self::NO_PROGRAM ? "there is no program $command[0]" : "it exited with code {$status['exitcode']}: $errors";
            } elseif ($waited > self::START_SECONDS) {
                $problem = 'it did not become ready';
            }
        }
        if ($problem !== null || $server === false) {
            $shownCommand = implode(' ', $command);
            throw new \RuntimeException("the sandbox did not start with \"$shownCommand\": " . rtrim((string) $problem, '.') . '. ' . self::INSTALL);
        }
        register_shutdown_function(function () use ($server, $pipes): void {
            fclose($pipes[0]); // the server stops once this pipe is closed, even if this process is killed
            proc_close($server);
        });
        return json_decode((string) file_get_contents("$folder/ready.json"), true)['url'];
    }
}
