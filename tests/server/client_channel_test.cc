// What a client may be when the mode of the port changes while it connects.
#include <leasehold/server/front/client_channel.h>

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include <string>
#include <utility>

namespace leasehold::server {
namespace {

using Mode = ClientTls::Mode;

/// A client over loopback that has sent its first bytes.
class Arrival {
 public:
  Arrival(const std::string& bytes, bool only_tls) : channel_(accept(), only_tls) {
    asio::write(client_, asio::buffer(bytes));
    channel_.socket().wait(asio::socket_base::wait_read);
  }
  ClientChannel& channel() { return channel_; }

 private:
  asio::ip::tcp::socket accept() {
    asio::ip::tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    client_.connect(acceptor.local_endpoint());
    return acceptor.accept();
  }

  asio::io_context io_;
  asio::ip::tcp::socket client_{io_};
  ClientChannel channel_;
};

Greeting::State greet(Arrival& arrival, const ClientTls& tls) {
  return arrival.channel().greet(tls, "test").state;
}

TEST(ClientChannel, OneThatWasLetInBecauseOfTlsIsNotServedWithoutIt) {
  ClientTls tls(Mode::on, nullptr);
  Arrival before("PING\r\n", true);
  tls.replace(Mode::optional, nullptr);
  EXPECT_EQ(greet(before, tls), Greeting::State::failed);
  Arrival after("PING\r\n", false);
  EXPECT_EQ(greet(after, tls), Greeting::State::done);
  // And the other way.
  tls.replace(Mode::on, nullptr);
  EXPECT_TRUE(after.channel().looks_outdated(tls));
  EXPECT_FALSE(after.channel().is_believed(tls));
}

TEST(ClientChannel, AHandshakeWithoutACertificateEnds) {
  ClientTls tls(Mode::optional, nullptr);
  Arrival arrival("\x16\x03\x01", false);
  tls.replace(Mode::off, nullptr);
  EXPECT_EQ(greet(arrival, tls), Greeting::State::ended);
}

}  // namespace
}  // namespace leasehold::server
