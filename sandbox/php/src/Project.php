<?php

declare(strict_types=1);

namespace PaymentSandbox;

/** A project for one test, with its own key, frozen clock and orders. */
final class Project
{
    private const POLL_SECONDS = 10;
    private const CALL_SECONDS = 90; // longer than any wait that the server allows
    private const HANDLER_SECONDS = 5; // the service's timeout for an answer
    private const KEPT_FOR = 'P1D'; // real time
    private const REVIEW_MODES = ['off', 'warn', 'error'];

    /** @var (callable(Webhook): mixed)|null */
    private $handler = null;
    /** @var array<string, array<string, mixed>> answers that the server did not record; it offers their webhooks again */
    private array $lateAnswers = [];
    /** Every call of the control API for this project, such as `$project->control->timeline()`. */
    public readonly ControlCommands $control;
    private string $listener;
    private string $forwardTo;

    private function __construct(
        /** The address of both APIs, for the code under test. */
        public readonly string $url,
        /** The key of this project, for the code under test: the user name of HTTP Basic. */
        public readonly string $apiKey,
        public readonly string $projectId = '',
    ) {
        $this->listener = bin2hex(random_bytes(8));
        $this->control = new ControlCommands($this->call(...));
    }

    /**
     * @param array<string, mixed> $settings such as ['mode' => 'live', 'numeric_ids' => 'text']
     * @param string|null $test the test's name, for `payment-sandbox review --all-projects` and the dashboard
     */
    public static function create(array $settings = [], ?string $test = null): self
    {
        $server = new self(Server::url(), '');
        preg_match('/^.{0,200}/u', (string) preg_replace('/\p{C}/u', ' ', (string) $test), $name);
        try {
            $created = $server->call('POST', '/control/projects/', $settings + ['clock' => 'frozen', 'name' => $name[0] ?? '']);
        } catch (SandboxError $error) {
            throw $error->getCode() === 404 ? new \RuntimeException("no payment sandbox at $server->url: {$error->getMessage()}" . Server::hint()) : $error;
        }
        $project = new self($server->url, $created['api_key'], $created['project_id']);
        if (Server::isShared()) {
            register_shutdown_function($project->close(...));
        }
        return $project;
    }

    /**
     * Make any call of the merchant API or the control API. Meanwhile, deliver webhooks to the handler, if there is one.
     *
     * @param array<string, mixed>|null $body
     * @return array<string, mixed>
     * @throws SandboxError if the sandbox refuses the call
     */
    public function call(string $method, string $path, ?array $body = null): array
    {
        $call = $this->prepare($this->url . $path, $method, $body);
        $multi = curl_multi_init();
        curl_multi_add_handle($multi, $call);
        $poll = null;
        try {
            do {
                if ($poll === null && $this->handler !== null) {
                    $poll = $this->prepare("$this->url/control/listener/next/", 'POST', $this->pollBody(self::POLL_SECONDS));
                    curl_multi_add_handle($multi, $poll);
                }
                curl_multi_exec($multi, $running);
                curl_multi_select($multi, 0.005); // short, because some steps of curl wait for no socket
                [$poll, $isDone] = $this->collectAnswers($multi, $call, $poll);
            } while (!$isDone);
            return $this->answer($call);
        } finally {
            array_map(fn (\CurlHandle $each) => curl_multi_remove_handle($multi, $each), array_filter([$call, $poll]));
        }
    }

    /**
     * Pay as the customer; return the order once all webhooks are answered.
     *
     * @param array<string, mixed> $more such as ['card' => 'challenge']
     * @return array<string, mixed>
     */
    public function pay(string $orderId, array $more = []): array
    {
        return $this->act($orderId, ['actor' => 'customer', 'action' => 'pay'] + $more);
    }

    /**
     * Act as the customer, bank, screening or processor; return the order once all webhooks are answered.
     *
     * @param array<string, mixed> $action such as ['actor' => 'bank', 'action' => 'credit', 'transaction_id' => $id]
     * @return array<string, mixed>
     */
    public function act(string $orderId, array $action): array
    {
        $this->call('POST', "/control/orders/$orderId/act/", $action);
        $this->settle();
        return $this->order($orderId);
    }

    /**
     * Advance the clock: by a period such as 'PT30M', ['to' => time] or ['until' => 'idle'].
     *
     * @param string|array<string, string> $by
     * @return array<string, mixed> the advance, with its events
     */
    public function advance(string|array $by): array
    {
        $advance = $this->call('POST', '/control/clock/advance/', is_string($by) ? ['by' => $by] : $by);
        if ($this->lateAnswers !== []) {
            $this->settle();
        }
        return $advance;
    }

    /** Wait until all webhooks are answered, for example after a call by the shop. */
    public function settle(): void
    {
        $round = 0;
        do {
            if ($this->handler !== null) { // the server waits for no webhook that it could not offer: connect before the wait begins
                $this->deliver($this->direct('POST', '/control/listener/next/', $this->pollBody(0)));
            }
            $this->call('GET', '/control/wait/?idle=1&timeout=60');
        } while (++$round < 2 && $this->lateAnswers !== []);
    }

    /**
     * Read an order; the review does not count this as a read by the shop.
     *
     * @return array<string, mixed>
     */
    public function order(string $orderId): array
    {
        return $this->call('GET', "/control/orders/$orderId/")['order'];
    }

    /** @param string|array<string, mixed> $scenario a name, or a whole document */
    public function scenario(string|array $scenario): void
    {
        $this->call('PUT', '/control/scenario/', is_string($scenario) ? ['name' => $scenario] : $scenario);
    }

    /** @param list<array<string, mixed>>|array<string, list<array<string, mixed>>> $faults those of requests, or under "faults" and "webhooks" */
    public function faults(array $faults): void
    {
        $this->call('PUT', '/control/faults/', array_is_list($faults) ? ['faults' => $faults] : $faults);
    }

    /** @return list<array<string, mixed>> */
    public function webhooks(?string $orderId = null): array
    {
        return $this->call('GET', '/control/webhooks/' . ($orderId === null ? '' : "?order_id=$orderId"))['items'];
    }

    /** @return list<array<string, mixed>> the integration's mistakes so far */
    public function review(): array
    {
        return $this->call('GET', '/control/review/')['items'];
    }

    /** Return the timeline and the findings as text. */
    public function report(): string
    {
        return self::nameDelivery($this->call('GET', '/control/report/')['text']);
    }

    /** Add deliverTo to advice to serve the shop. */
    private static function nameDelivery(string $text): string
    {
        $named = 'In a test, call $sandbox->deliverTo($handler). Otherwise make the shop listen at';
        return str_replace('Make the shop listen at', $named, $text);
    }

    /**
     * Deliver all webhooks of the project to a handler in this process; the server does not need access to the shop.
     *
     * The handler runs while the test waits in act(), advance() or settle(), and returns the HTTP status; null is 204.
     *
     * @param callable(Webhook): (int|null|void) $handler
     */
    public function deliverTo(callable $handler, string $path = '/webhook'): void
    {
        $this->forwardTo = "http://127.0.0.1$path";
        $this->handler = $handler;
        $this->deliver($this->direct('POST', '/control/listener/next/', $this->pollBody(0)));
    }

    /**
     * Accept the function that returns the shop's current view of its purchases; nothing reads it.
     *
     * @param callable(): list<array<string, mixed>> $books entries such as ['purchase' => 'S-1', 'orders' => [$id], 'paid' => 1295]
     */
    public function tellBooks(callable $books): void
    {
    }

    /** Accept the end of the test, with its failure, if any; close() does the rest. */
    public function ended(?string $failure = null): void
    {
    }

    /** Add the report to the message of a failed test. */
    public function explain(\Throwable $failure): void
    {
        try {
            $report = $this->report();
        } catch (\RuntimeException $problem) {
            $report = "the timeline could not be read: {$problem->getMessage()}";
        }
        $message = new \ReflectionProperty($failure instanceof \Error ? \Error::class : \Exception::class, 'message');
        $message->setValue($failure, rtrim($failure->getMessage()) . "\n\n--- payment sandbox ---\n$report\n");
    }

    /**
     * Warn of the integration's mistakes on the standard error stream, or throw an error, as PAYMENT_SANDBOX_REVIEW says:
     * off, warn or error.
     */
    public function enforceReview(string $test = ''): void
    {
        $mode = getenv('PAYMENT_SANDBOX_REVIEW') ?: 'warn';
        if (!in_array($mode, self::REVIEW_MODES, true)) {
            throw new \RuntimeException("PAYMENT_SANDBOX_REVIEW must be off, warn or error, not '$mode'");
        }
        $mistakes = $mode === 'off' ? '' : $this->mistakes();
        if ($mistakes !== '' && $mode === 'error') {
            throw new \RuntimeException($mistakes);
        }
        if ($mistakes !== '') {
            fwrite(STDERR, "\nWarning: " . ($test === '' ? '' : "$test: ") . "$mistakes\n");
        }
    }

    /** Return the open mistakes as text; empty if the test has deleted the project. */
    private function mistakes(): string
    {
        try {
            return self::nameDelivery($this->direct('GET', '/control/review/')['text']);
        } catch (\RuntimeException) {
            return '';
        }
    }

    /**
     * Delete the project, including its due commands. On a shared server, a project with mistakes remains for a day, for
     * `payment-sandbox review --all-projects`.
     */
    public function close(): void
    {
        $this->handler = null;
        $isKept = Server::isShared() && $this->mistakes() !== '';
        try {
            $this->direct($isKept ? 'PATCH' : 'DELETE', '/control/project/', $isKept ? ['expires_after' => self::KEPT_FOR] : null);
        } catch (\RuntimeException) {
            // the test has deleted the project, or the server has stopped
        }
    }

    /** @return array<string, mixed> */
    private function pollBody(int $timeout): array
    {
        return ['listener' => $this->listener, 'forward_to' => $this->forwardTo, 'timeout' => $timeout];
    }

    /** @return array{\CurlHandle|null, bool} the poll if it continues, and whether the call is answered */
    private function collectAnswers(\CurlMultiHandle $multi, \CurlHandle $call, ?\CurlHandle $poll): array
    {
        $isDone = false;
        while (($completed = curl_multi_info_read($multi)) !== false) {
            if ($completed['handle'] === $poll) {
                curl_multi_remove_handle($multi, $poll);
                $this->deliver($this->answer($poll));
                $poll = null;
            } elseif ($completed['handle'] === $call) {
                $isDone = true;
            }
        }
        return [$poll, $isDone];
    }

    /** @param array<string, mixed> $offers */
    private function deliver(array $offers): void
    {
        $handler = $this->handler;
        $this->handler = null; // calls by the handler deliver no webhooks: the next webhook follows the answer to this one
        foreach ($handler === null ? [] : $offers['items'] as $offer) {
            $webhook = new Webhook($offer['url'], $offer['headers'], $offer['body'], $offer['order_id']);
            $answer = $this->lateAnswers[$offer['id']] ?? ['id' => $offer['id']] + self::handle($webhook, $handler);
            $isRecorded = $this->direct('POST', '/control/listener/answers/', $answer)['recorded'];
            $this->lateAnswers = $isRecorded ? [] : [$offer['id'] => $answer] + $this->lateAnswers;
            if (!$isRecorded && isset($answer['error'])) {
                fwrite(STDERR, "webhook of order {$offer['order_id']}: {$answer['error']}; answer first, then do slow work\n");
            }
        }
        $this->handler = $handler;
    }

    /** @return array<string, mixed> the shop's answer */
    private static function handle(Webhook $webhook, callable $handler): array
    {
        $start = microtime(true);
        try {
            $status = $handler($webhook);
            if ($status !== null && !is_int($status)) {
                return ['status' => 500, 'body' => 'the webhook handler must return an HTTP status or null, not ' . get_debug_type($status)];
            }
            $seconds = microtime(true) - $start;
            if ($seconds > self::HANDLER_SECONDS) {
                $limit = self::HANDLER_SECONDS;
                return ['error' => sprintf("no answer within $limit seconds: the webhook handler took %.1f seconds", $seconds), 'duration_ms' => $limit * 1000];
            }
            return ['status' => $status ?? 204, 'duration_ms' => $seconds * 1000];
        } catch (\Throwable $error) {
            $lines = preg_grep('~^#.*' . preg_quote(__FILE__, '~') . '~', explode("\n", (string) $error), PREG_GREP_INVERT); // hide our frames
            return ['status' => 500, 'body' => substr(implode("\n", $lines ?: []), 0, 4096)];
        }
    }

    /**
     * @param array<string, mixed>|null $body
     * @return array<string, mixed>
     */
    private function direct(string $method, string $path, ?array $body = null): array
    {
        $call = $this->prepare($this->url . $path, $method, $body);
        curl_exec($call);
        return $this->answer($call);
    }

    /** @param array<string, mixed>|null $body */
    private function prepare(string $url, string $method, ?array $body): \CurlHandle
    {
        $call = curl_init($url) ?: throw new \RuntimeException("$url is not a valid address");
        $key = base64_encode("$this->apiKey:");
        $authorization = $this->apiKey === '' ? 'Bearer ' . getenv('SANDBOX_CONTROL_TOKEN') : "Basic $key";
        curl_setopt_array($call, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => ["Authorization: $authorization", 'Content-Type: application/json', 'Expect:'],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => self::CALL_SECONDS,
            CURLOPT_PROXY => '',
        ]);
        if ($body !== null) {
            curl_setopt($call, CURLOPT_POSTFIELDS, json_encode((object) $body, JSON_THROW_ON_ERROR));
        }
        return $call;
    }

    /** @return array<string, mixed> */
    private function answer(\CurlHandle $call): array
    {
        $status = (int) curl_getinfo($call, CURLINFO_RESPONSE_CODE);
        $text = (string) curl_multi_getcontent($call);
        $data = $text === '' && $status !== 0 ? [] : json_decode($text, true);
        if ($status >= 400 && isset($data['error']['type'])) {
            throw new SandboxError($status, $data['error']);
        }
        if (!is_array($data) || $status >= 400) {
            $problem = $status === 0 ? (curl_error($call) ?: 'no answer') : "another program answered $status";
            throw new \RuntimeException("no payment sandbox at $this->url: $problem" . Server::hint());
        }
        return $data;
    }
}
