require "json"
require "net/http"
require "sinatra"

set :port, ENV["PORT"]
set :bind, "127.0.0.1"

["/slash/", "/bare", "/protected/"].each do |path| # rack-protection is on for all paths
  post path do
    id = JSON.parse(request.body.read)["order_id"]
    call = Net::HTTP::Get.new(URI("#{ENV["URL"]}/v1/orders/#{id}/"))
    call.basic_auth(ENV["KEY"], "")
    JSON.parse(Net::HTTP.start(call.uri.host, call.uri.port) { |http| http.request(call) }.body)["status"]
  end
end
