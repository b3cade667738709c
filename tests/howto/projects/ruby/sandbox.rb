# One sandbox for all tests, with a project for each test.
require "json"
require "net/http"
require "tmpdir"

class Sandbox
  def self.project(settings = {})
    @url ||= start
    created = new(@url, "").call("POST", "/control/projects/", { clock: "frozen" }.merge(settings))
    new(@url, created["api_key"])
  end

  def self.start
    return ENV["SANDBOX_URL"] if ENV["SANDBOX_URL"]
    ready = File.join(Dir.mktmpdir, "ready.json")
    command = ENV.fetch("SANDBOX_COMMAND", "payment-sandbox").split
    input, @kept_open = IO.pipe # the server stops once this process has ended, and the pipe with it
    serve = ["serve", "--port", "0", "--stop-with-stdin", "--ready-file", ready]
    server = Process.spawn(*command, *serve, in: input, out: File::NULL)
    until File.exist?(ready)
      raise "#{command.first} did not start" if Process.wait(server, Process::WNOHANG)
      sleep 0.02
    end
    JSON.parse(File.read(ready))["url"]
  rescue SystemCallError => missing
    raise "#{missing.message}; pipx install 'payment-sandbox[server]', or set SANDBOX_COMMAND"
  end

  def initialize(url, key)
    @url, @key = url, key
  end

  def report
    call("GET", "/control/report/")["text"]
  end

  # Warn of the shop's mistakes; with PAYMENT_SANDBOX_REVIEW=error, they fail the test.
  def review
    mode = ENV.fetch("PAYMENT_SANDBOX_REVIEW", "warn")
    mistakes = mode == "off" ? "" : call("GET", "/control/review/")["text"]
    return if mistakes.empty?
    mode == "error" ? raise(mistakes) : warn(mistakes)
  end

  def call(method, path, body = nil)
    uri = URI(@url + path)
    request = Net::HTTP.const_get(method.capitalize).new(uri, "Content-Type" => "application/json")
    if @key.empty? # the control token creates projects, if the server asks for it
      request["Authorization"] = "Bearer #{ENV["SANDBOX_CONTROL_TOKEN"]}"
    else
      request.basic_auth(@key, "")
    end
    request.body = JSON.generate(body) if body
    answer = Net::HTTP.start(uri.host, uri.port) { |http| http.request(request) }
    raise answer.body if answer.code.to_i >= 400
    JSON.parse(answer.body)
  end
end
