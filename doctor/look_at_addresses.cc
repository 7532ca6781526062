#include <leasehold/doctor/gather.h>
#include <leasehold/net/handshake.h>
#include <leasehold/storage/descriptor.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace leasehold::doctor {
namespace {

constexpr int kConnectMs = 2000;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

void failed(AddressFacts& facts, int number) {
  switch (number) {
    case EADDRINUSE: facts.reach = Reach::taken; break;
    case EADDRNOTAVAIL: facts.reach = Reach::not_here; break;
    case ECONNREFUSED: facts.reach = Reach::refused; break;
    case ETIMEDOUT: facts.reach = Reach::silent; break;
    default: facts.reach = Reach::other;
  }
  facts.problem = std::generic_category().message(number);
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof(six));
    return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
  }
  sockaddr_in four{};
  std::memcpy(&four, &address, sizeof(four));
  return address.sa_family == AF_INET && ntohl(four.sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
}

/// Null: `facts` says why.
Addresses resolve(AddressFacts& facts) {
  const auto parsed = net::parse_address(facts.address);
  if (!parsed) {
    facts.reach = Reach::other;
    facts.problem = parsed.error().message;
    return nullptr;
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = facts.own ? AI_PASSIVE : 0;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(parsed.value().host.c_str(),
                                 std::to_string(parsed.value().port).c_str(), &wanted, &list);
  if (code == 0) {
    facts.loopback = is_loopback(*list->ai_addr);
    return Addresses(list);
  }
  facts.reach = Reach::no_such_name;
  facts.problem = ::gai_strerror(code);
  return nullptr;
}

/// Binds, listens to nobody, and lets go.
void try_to_bind(AddressFacts& facts) {
  const Addresses addresses = resolve(facts);
  if (!addresses) return;
  const storage::Descriptor door(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(door.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(door.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) failed(facts, errno);
}

/// 0, or why it is not connected.
int connect_within(const addrinfo& address, int milliseconds) {
  const storage::Descriptor link(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (link.get() < 0) return errno;
  if (::connect(link.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{link.get(), POLLOUT, 0};
  if (::poll(&waiting, 1, milliseconds) <= 0) return ETIMEDOUT;
  int number = 0;
  socklen_t size = sizeof(number);
  ::getsockopt(link.get(), SOL_SOCKET, SO_ERROR, &number, &size);
  return number;
}

void try_to_connect(AddressFacts& facts) {
  const Addresses addresses = resolve(facts);
  int number = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    number = connect_within(*at, kConnectMs);
    if (number == 0) return;
  }
  if (addresses) failed(facts, number);
}

}  // namespace

std::vector<AddressFacts> look_at_addresses(const server::ServeSettings& settings) {
  std::vector<AddressFacts> all;
  const auto add = [&all](const char* name, const std::string& address, bool own,
                          raft::NodeId node) {
    if (address.empty()) return;
    AddressFacts& one = all.emplace_back();
    one.name = name;
    one.address = address;
    one.own = own;
    one.peer = std::string_view(name) != "--listen" && std::string_view(name) != "--admin";
    one.node = node;
  };
  const raft::NodeId self = settings.node.id;
  add("--listen", settings.listen, true, self);
  add("--admin", settings.admin, true, self);
  add("--peer-listen", settings.node.listen, true, self);
  for (const node::Peer& peer : settings.node.peers) {
    // --peer-listen takes the place of its own entry.
    if (peer.id == self && !settings.node.listen.empty()) continue;
    add("--peers", peer.address, peer.id == self, peer.id);
  }
  for (const std::string& address : settings.node.join) {
    add("--join", address, false, raft::kNobody);
  }
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (AddressFacts& one : all) {
    threads.emplace_back([&one] { one.own ? try_to_bind(one) : try_to_connect(one); });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

}  // namespace leasehold::doctor
