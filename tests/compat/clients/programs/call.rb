require 'net/http'
url, method, connection = ARGV
uri = URI(url)
request = Net::HTTP.const_get(method.capitalize).new(uri)
request.basic_auth(ENV['API_KEY'], '')
if method == 'POST'
  request['Content-Type'] = 'application/json'
  request.body = $stdin.read
end
http = Net::HTTP.new(uri.host, uri.port)
http.max_retries = 0 if ARGV.include?('once')
http.start do
  http.get(uri.path, 'Authorization' => request['Authorization']) if connection == 'kept'
  print http.request(request).code
end
