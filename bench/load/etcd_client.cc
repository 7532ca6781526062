#include <leasehold/bench/load/etcd.pb.h>
#include <leasehold/bench/load/etcd_client.h>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kAnswerMs = 2000;

/// Waits for one reply.
class OneReply final : public Talk::Replies {
 public:
  explicit OneReply(std::uint64_t number) : number_(number) {}
  bool replied(std::uint64_t number, const ReplyView& reply) override {
    if (number != number_) return false;
    done_ = true;
    error_ = reply.kind == ReplyView::Kind::error;
    text_ = reply.text;
    return true;
  }
  bool done() const { return done_; }
  bool error() const { return error_; }
  const std::string& text() const { return text_; }

 private:
  std::uint64_t number_;
  bool done_ = false;
  bool error_ = false;
  std::string text_;
};

Error not_usable(const std::string& address, const std::string& why) {
  return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", address, why)};
}

}  // namespace

EtcdClient::EtcdClient(std::string address, Descriptor socket)
    : address_(std::move(address)),
      socket_(std::move(socket)),
      talk_(std::make_unique<EtcdTalk>(address_, true)) {}

Result<EtcdClient> EtcdClient::connect(const std::string& address) {
  auto socket = connect_tcp(address, kAnswerMs);
  if (socket) return EtcdClient(address, std::move(socket).value());
  if (socket.error().code == ErrorCode::invalid_argument) return socket.error();
  return Error{ErrorCode::unavailable, socket.error().message};
}

Result<std::string> EtcdClient::call(
    const std::function<void(std::uint64_t number, std::string&)>& submit) {
  OneReply reply(asked_);
  std::string output;
  submit(asked_++, output);
  std::array<char, 16U << 10U> chunk;
  while (!reply.done()) {
    talk_->take_output(output);
    if (auto sent = write_all(socket_, std::exchange(output, {})); !sent) {
      return Error{ErrorCode::unavailable, fmt::format("{}: {}", address_, sent.error().message)};
    }
    const auto got = read_some(socket_, chunk.data(), chunk.size());
    if (!got && got.error().code == ErrorCode::stopped) {
      return not_usable(address_,
                        "the server closed the connection: is this etcd's client address, and "
                        "without TLS? Only plain HTTP/2 is spoken here");
    }
    if (!got) {
      return Error{ErrorCode::unavailable,
                   fmt::format("{}: no answer within {} s", address_, kAnswerMs / 1000)};
    }
    const auto taken = talk_->arrived({chunk.data(), got.value()}, reply);
    if (!taken && !reply.done()) return not_usable(address_, taken.error().message);
  }
  if (!reply.error()) return reply.text();
  const std::string word(error_word(reply.text()));
  if (word == "UNIMPLEMENTED" || word == "NOT_GRPC" || word.rfind("HTTP_", 0) == 0) {
    return not_usable(address_,
                      fmt::format("the server does not offer etcd's v3 API ({})", reply.text()));
  }
  const bool refused =
      word == "UNAUTHENTICATED" || word == "PERMISSION_DENIED" || word == "INVALID_ARGUMENT";
  if (refused) {
    return not_usable(address_, fmt::format("etcd refuses a client without a login ({}): use one "
                                            "whose authentication is off",
                                            reply.text()));
  }
  return Error{ErrorCode::unavailable, fmt::format("{}: {}", address_, reply.text())};
}

Result<EtcdMember> EtcdClient::member() {
  const auto body = call([this](std::uint64_t number, std::string&) { talk_->ask_status(number); });
  if (!body) return body.error();
  etcd::StatusResponse status;
  if (!status.ParseFromString(body.value())) {
    return not_usable(address_, "the server's status is not that of etcd v3");
  }
  if (status.version().rfind("3.", 0) != 0) {
    return not_usable(address_,
                      fmt::format("etcd {} answers; only etcd 3 is spoken to",
                                  status.version().empty() ? "of no version" : status.version()));
  }
  return EtcdMember{status.version(), status.header().member_id(), status.leader()};
}

Result<void> EtcdClient::try_read() {
  const auto body =
      call([this](std::uint64_t number, std::string& output) { talk_->ask({}, number, output); });
  return body ? Result<void>{} : Result<void>(body.error());
}

std::vector<std::string> etcd_servers(const std::vector<std::string>& servers,
                                      const std::vector<EtcdMember>& members, bool leaders) {
  std::uint64_t leader = 0;
  for (const EtcdMember& member : members) {
    for (const EtcdMember& other : members) {
      if (member.leader != 0 && member.leader == other.id) leader = other.id;
    }
  }
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < members.size() && i < servers.size(); ++i) {
    if (members[i].id != 0 && (members[i].id == leader) == leaders) chosen.push_back(servers[i]);
  }
  return chosen.empty() || leader == 0 ? servers : chosen;
}

}  // namespace leasehold::bench
