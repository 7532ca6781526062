# The cluster client of ruby-redis, unmodified: cluster_ruby.rb PORT PORT PORT (of the nodes). Writes
# and reads back until its input ends; a line for each value that was acknowledged ("ok N"), and for
# each call that failed ("failed WHY").
require 'openssl'
require 'redis'

$stdout.sync = true
# By TLS and as a user if the test has set ACCESS_* (secured.py).
ca = ENV['ACCESS_CA']
access = ca ? { ssl_params: { ca_file: ca }, username: ENV['ACCESS_USER'], password: ENV['ACCESS_PASSWORD'] } : {}
client = Redis.new(cluster: ARGV.map { |port| "redis#{'s' if ca}://127.0.0.1:#{port}" }, timeout: 8, **access)
number = 0
until IO.select([$stdin], nil, nil, 0.01)
  number += 1
  begin
    raise 'SET' unless client.set("ruby:#{number}", number) == 'OK'
    puts "ok #{number}"
    read = client.get("ruby:#{number}")
    puts "wrong #{number} #{read.inspect}" unless read == number.to_s
  # What interrupts a handshake of TLS comes through as it is.
  rescue Redis::BaseError, SystemCallError, OpenSSL::SSL::SSLError => error
    puts "failed #{error.class}: #{error.message.lines.first}"
  end
end
