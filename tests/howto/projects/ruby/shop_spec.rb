require "set"
require "webrick"
require_relative "sandbox"

RSpec.configure do |config|
  config.after do |example|
    next @sandbox.review unless example.exception
    example.metadata[:extra_failure_lines] = @sandbox.report.lines(chomp: true)
  end
end

RSpec.describe "the shop" do
  before do
    @shipped = Set.new
    quiet = { Logger: WEBrick::Log.new(File::NULL), AccessLog: [] }
    @shop = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, **quiet)
    @shop.mount_proc("/webhook") do |request, response|
      id = JSON.parse(request.body)["order_id"]
      @shipped << id if @sandbox.call("GET", "/v1/orders/#{id}/")["status"] == "completed"
      response.status = 204
    end
    @serving = Thread.new { @shop.start }
    @sandbox = Sandbox.project(webhook_url: "http://127.0.0.1:#{@shop.config[:Port]}/webhook")
  end

  after do
    @shop.shutdown
    @serving.join
  end

  it "ships a paid order" do
    order = { currency: "EUR", amount: 1295, transactions: [{ payment_method: "credit-card" }] }
    id = @sandbox.call("POST", "/v1/orders/", order)["id"]
    @sandbox.call("POST", "/control/orders/#{id}/act/", { actor: "customer", action: "pay" })
    @sandbox.call("GET", "/control/wait/?idle=1")
    expect(@shipped).to include(id)
  end
end
