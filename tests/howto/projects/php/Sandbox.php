<?php
// One sandbox for all tests, and a project of its own for each.
final class Sandbox
{
    private static ?string $url = null;

    private function __construct(private string $key) {}

    public static function project(array $settings = []): self
    {
        self::$url ??= self::start();
        $made = (new self(''))->call('POST', '/control/projects/', ['clock' => 'frozen'] + $settings);
        return new self($made['api_key']);
    }

    public function call(string $method, string $path, ?array $body = null): array
    {
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => ['Authorization: ' . $this->authorization(), 'Content-Type: application/json'],
            'content' => $body === null ? '' : json_encode($body),
            'ignore_errors' => true,
        ]]);
        $data = json_decode(file_get_contents(self::$url . $path, false, $context), true);
        if (isset($data['error'])) {
            throw new RuntimeException("{$data['error']['status']} {$data['error']['type']}: {$data['error']['value']}");
        }
        return $data;
    }

    /** The control token creates projects, if the server asks for it. */
    private function authorization(): string
    {
        return $this->key === ''
            ? 'Bearer ' . getenv('SANDBOX_CONTROL_TOKEN')
            : 'Basic ' . base64_encode("$this->key:");
    }

    public function settings(): array
    {
        return ['SANDBOX_URL' => self::$url, 'SANDBOX_API_KEY' => $this->key];
    }

    private static function start(): string
    {
        if (getenv('SANDBOX_URL')) {
            return getenv('SANDBOX_URL');
        }
        $ready = sys_get_temp_dir() . '/sandbox-' . getmypid() . '.json';
        @unlink($ready);
        $command = getenv('SANDBOX_COMMAND') ?: 'payment-sandbox';
        $output = [1 => ['file', '/dev/null', 'w']];
        $server = proc_open("exec $command serve --port 0 --ready-file $ready", $output, $pipes);
        register_shutdown_function(function () use ($server, $ready) {
            proc_terminate($server);
            @unlink($ready);
        });
        while (!is_file($ready)) {
            proc_get_status($server)['running'] || throw new RuntimeException("$command did not start");
            usleep(20_000);
        }
        return json_decode(file_get_contents($ready), true)['url'];
    }
}
