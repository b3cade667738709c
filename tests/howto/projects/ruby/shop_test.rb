require "minitest/autorun"
require "set"
require "webrick"
require_relative "sandbox"

class ShopTest < Minitest::Test
  def setup
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

  def teardown
    passed? ? warn(@sandbox.mistakes) : puts(@sandbox.report)
    @shop.shutdown
    @serving.join
  end

  def checkout
    transactions = [{ payment_method: "credit-card" }]
    @sandbox.call("POST", "/v1/orders/", { currency: "EUR", amount: 1295, transactions: })["id"]
  end

  def test_a_paid_order_is_shipped
    id = checkout
    @sandbox.call("POST", "/control/orders/#{id}/act/", { actor: "customer", action: "pay" })
    @sandbox.call("GET", "/control/wait/?idle=1")
    assert_includes @shipped, id
  end

  def test_an_unpaid_order_expires
    id = checkout
    @sandbox.call("POST", "/control/clock/advance/", { by: "PT30M" })
    assert_equal "expired", @sandbox.call("GET", "/v1/orders/#{id}/")["status"]
    assert_empty @shipped
  end
end
