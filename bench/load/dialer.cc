#include <leasehold/bench/load/dialer.h>
#include <leasehold/bench/load/resp_talk.h>
#include <leasehold/bench/workload.h>
#include <leasehold/client/resp_client.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kConnectMs = 2000;
constexpr std::chrono::milliseconds kAskTimeout{2000};
/// How often the layout is asked for: a load follows a new leader within this.
constexpr std::chrono::milliseconds kLayoutInterval{500};

Result<void> send_setup(const Descriptor& socket, const std::vector<std::string>& words) {
  if (auto sent = write_all(socket, command_of_words(words)); !sent) return sent;
  std::string ahead;
  // All of these are answered by a line.
  auto reply = read_reply(socket, 5, ahead);
  if (!reply) return reply.error();
  if (reply.value()[0] != '-') return {};
  std::string text = reply.value().substr(1, reply.value().find('\r') - 1);
  return Error{ErrorCode::invalid_argument,
               fmt::format("the server refuses {}: {}", words[0], std::move(text))};
}

/// What a connection in the protocol of Redis needs before the load may use it.
Result<void> set_up(Descriptor& socket, const std::string& address, const LoadOptions& options) {
  if (options.access.tls()) {
    auto begun = socket.begin_tls(options.access.tls(), address.substr(0, address.rfind(':')));
    if (!begun) return begun.error();
  }
  if (!options.login.user.empty() || !options.login.password.empty()) {
    const std::string user = options.login.user.empty() ? "default" : options.login.user;
    auto done = send_setup(socket, {"AUTH", user, options.login.password});
    if (!done) return done.error();
  }
  if (!options.read_mode.empty()) {
    std::vector<std::string> words = {"LEASEHOLD", "READMODE"};
    const std::size_t space = options.read_mode.find(' ');
    words.push_back(options.read_mode.substr(0, space));
    if (space != std::string::npos) words.push_back(options.read_mode.substr(space + 1));
    if (auto done = send_setup(socket, words); !done) return done.error();
  }
  return {};
}

}  // namespace

Result<Connection> open_connection(const std::string& address, const LoadOptions& options) {
  auto socket = connect_tcp(address, kConnectMs);
  if (!socket) return socket.error();
  std::unique_ptr<Talk> talk = std::make_unique<RespTalk>();
  if (options.etcd) {
    talk = std::make_unique<EtcdTalk>(address, options.read_mode == kSerializable);
  } else if (auto ready = set_up(socket.value(), address, options); !ready) {
    return ready.error();
  }
  if (fcntl(socket.value().get(), F_SETFL, O_NONBLOCK) != 0) return system_error("fcntl");
  return Connection{std::move(socket).value(), std::move(talk)};
}

Result<std::unique_ptr<Dialer>> Dialer::start(const LoadOptions& options) {
  std::unique_ptr<Dialer> dialer(new Dialer(options));
  dialer->wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!dialer->wake_.open()) return system_error("eventfd");
  auto layout = dialer->ask_layout();
  if (!layout) return layout.error();
  dialer->first_layout_ = std::move(layout).value();
  dialer->thread_ = std::thread([self = dialer.get()] { self->run(); });
  return dialer;
}

Dialer::~Dialer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Dialer::dial(std::size_t connection, std::string server) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.emplace_back(connection, std::move(server));
  }
  changed_.notify_all();
}

std::vector<Dialer::Answer> Dialer::answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

std::optional<Layout> Dialer::new_layout() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_layout_, std::nullopt);
}

void Dialer::take_wake() {
  std::uint64_t count = 0;
  static_cast<void>(!read(wake_.get(), &count, sizeof count));
}

void Dialer::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

Result<client::RespValue> Dialer::ask(const std::string& server,
                                      const std::vector<std::string>& words) {
  auto found = asking_.find(server);
  if (found == asking_.end()) {
    auto connected = client::RespClient::connect(server, kAskTimeout, options_.access);
    if (!connected) return connected.error();
    found = asking_.emplace(server, std::move(connected).value()).first;
  }
  auto reply = found->second.call(words, kAskTimeout);
  if (!reply) asking_.erase(found);
  return reply;
}

Result<EtcdMember> Dialer::ask_member(const std::string& server) {
  auto found = asking_etcd_.find(server);
  if (found == asking_etcd_.end()) {
    auto connected = EtcdClient::connect(server);
    if (!connected) return connected.error();
    // What no member could be asked shows once, at the start.
    if (auto readable = connected.value().try_read(); !readable) return readable.error();
    found = asking_etcd_.emplace(server, std::move(connected).value()).first;
  }
  auto member = found->second.member();
  if (!member) asking_etcd_.erase(found);
  return member;
}

Result<Layout> Dialer::ask_etcd_layout() {
  const std::vector<std::string>& servers = options_.servers;
  Error last{ErrorCode::unavailable, "no server"};
  std::vector<EtcdMember> members;
  std::size_t answered = 0;
  for (const std::string& server : servers) {
    auto member = ask_member(server);
    if (member) ++answered;
    if (!member) last = member.error();
    if (!member && last.code == ErrorCode::invalid_argument) return last;
    members.push_back(member ? std::move(member).value() : EtcdMember());
  }
  if (answered == 0) return last;
  if (options_.route == Route::any) return layout_of_all(servers);
  return layout_of_all(etcd_servers(servers, members, options_.route == Route::leader));
}

Result<Layout> Dialer::ask_layout() {
  if (options_.etcd) return ask_etcd_layout();
  const std::vector<std::string>& servers = options_.servers;
  Error last{ErrorCode::unavailable, "no server"};
  bool answered = false;
  for (std::size_t i = 0; i < servers.size() && !answered; ++i) {
    const std::string& server = servers[asked_];
    const auto reply = ask(server, {"CLUSTER", "SLOTS"});
    answered = reply.ok();
    if (reply) {
      const auto layout = layout_from(reply.value(), server, options_.route);
      if (layout && options_.route != Route::any) return *layout;
    } else {
      last = reply.error();
      // No other server would take it either.
      if (last.code == ErrorCode::invalid_argument) return last;
      asked_ = (asked_ + 1) % servers.size();
    }
  }
  if (!answered) return last;
  if (options_.route == Route::any || servers.size() == 1) return layout_of_all(servers);
  std::vector<ServerRole> roles;
  for (const std::string& server : servers) {
    const auto reply = ask(server, {"ROLE"});
    roles.push_back(reply ? role_from(reply.value()) : ServerRole::unknown);
  }
  return layout_by_roles(roles, options_.route, servers);
}

void Dialer::run() {
  Layout told = first_layout_;
  auto next_ask = std::chrono::steady_clock::now() + kLayoutInterval;
  std::unique_lock lock(mutex_);
  while (!over_) {
    changed_.wait_until(lock, next_ask, [this] { return over_ || !wanted_.empty(); });
    if (over_) break;
    if (!wanted_.empty()) {
      auto [connection, server] = std::move(wanted_.front());
      wanted_.pop_front();
      lock.unlock();
      auto opened = open_connection(server, options_);
      lock.lock();
      answers_.push_back({connection, std::move(server), std::move(opened)});
      wake();
    }
    if (std::chrono::steady_clock::now() < next_ask) continue;
    lock.unlock();
    const auto layout = ask_layout();
    lock.lock();
    if (layout && layout.value() != told) {
      told = layout.value();
      new_layout_ = told;
      wake();
    }
    next_ask = std::chrono::steady_clock::now() + kLayoutInterval;
  }
}

}  // namespace leasehold::bench
