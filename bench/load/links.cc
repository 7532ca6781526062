#include <leasehold/bench/load/links.h>

#include <leasehold/bench/workload.h>
#include <leasehold/tls/stream.h>

#include <fmt/format.h>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kRedialWait = 100 * kMillisecond;
constexpr std::uint64_t kReturnWait = 2000 * kMillisecond;
/// The client closes a connection whose oldest request has waited this long.
constexpr std::uint64_t kSilenceMax = 10'000 * kMillisecond;
constexpr std::size_t kChunkBytes = 256U << 10U;
constexpr std::size_t kSlotDigitsMax = 5;
/// Marks the dialer's descriptor among those of the connections.
constexpr std::uint64_t kWakeMark = ~std::uint64_t{0};

/// What one step on a socket did: bytes, or a reason to wait, or none of both: it is over.
struct Moved {
  std::size_t bytes = 0;
  bool waits = false;
  std::string why;  ///< of what is over
};

Moved moved_by_tls(const tls::Stream::Step& step, const tls::Stream& stream) {
  using State = tls::Stream::State;
  if (step.state == State::done) return {step.bytes, false, ""};
  if (step.state == State::wants_read || step.state == State::wants_write) return {0, true, ""};
  return {0, false, step.state == State::ended ? "connection closed" : stream.problem()};
}

Moved moved_by_system(ssize_t result) {
  if (result > 0) return {static_cast<std::size_t>(result), false, ""};
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) return {0, true, ""};
  return {0, false, "connection closed"};
}

Moved write_part(const Descriptor& socket, std::string_view bytes) {
  if (socket.stream() != nullptr) {
    return moved_by_tls(socket.stream()->write(bytes), *socket.stream());
  }
  return moved_by_system(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

Moved read_part(const Descriptor& socket, std::string& into) {
  if (socket.stream() != nullptr) {
    return moved_by_tls(socket.stream()->read(into.data(), into.size()), *socket.stream());
  }
  return moved_by_system(recv(socket.get(), into.data(), into.size(), 0));
}

}  // namespace

/// Tells one connection's replies to the load.
struct Links::Taking final : Talk::Replies {
  Taking(Links& links, std::size_t link, std::uint64_t now)
      : links_(links), link_(link), now_(now) {}
  bool replied(std::uint64_t number, const ReplyView& reply) override {
    return links_.take_reply(link_, number, reply, now_);
  }

 private:
  Links& links_;
  std::size_t link_;
  std::uint64_t now_;
};

Result<std::unique_ptr<Links>> Links::open(const LoadOptions& options) {
  std::unique_ptr<Links> links(new Links(options));
  if (auto begun = links->begin(); !begun) return begun.error();
  return links;
}

Result<void> Links::begin() {
  auto dialer = Dialer::start(options_);
  if (!dialer) return dialer.error();
  dialer_ = std::move(dialer).value();
  layout_ = dialer_->first_layout();
  servers_ = layout_.servers();
  chunk_.resize(kChunkBytes);
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.open()) return system_error("epoll");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeMark;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, dialer_->wake_fd(), &event) != 0) {
    return system_error("epoll");
  }
  links_.resize(std::max<std::size_t>(options_.connections, servers_.size()));
  set_targets();
  for (std::size_t link = 0; link < links_.size(); ++link) dial(link);
  // The first answers decide whether there is anything to measure.
  Error last{ErrorCode::unavailable, "no connection could be opened"};
  std::size_t opened = 0;
  for (std::size_t answered = 0; answered < links_.size();) {
    pollfd wake = {dialer_->wake_fd(), POLLIN, 0};
    if (poll(&wake, 1, -1) < 0 && errno != EINTR) return system_error("poll");
    dialer_->take_wake();
    for (Dialer::Answer& answer : dialer_->answers()) {
      ++answered;
      if (answer.opened) ++opened;
      if (!answer.opened) last = answer.opened.error();
      if (!answer.opened && last.code == ErrorCode::invalid_argument) return last;
      take_answer(std::move(answer));
    }
  }
  return opened > 0 ? Result<void>{} : Result<void>(last);
}

std::string Links::server_for(std::size_t link) const {
  const Link& one = links_[link];
  // A server that is away has its share taken over by the others: any node serves any key.
  if (one.failures == 0) return one.target;
  return options_.servers[(link + one.failures) % options_.servers.size()];
}

void Links::dial(std::size_t link) {
  links_[link].dialing = true;
  links_[link].server = server_for(link);
  dialer_->dial(link, links_[link].server);
}

void Links::take_answers() {
  dialer_->take_wake();
  for (Dialer::Answer& answer : dialer_->answers()) take_answer(std::move(answer));
  if (auto layout = dialer_->new_layout()) take_layout(std::move(*layout));
}

void Links::take_answer(Dialer::Answer answer) {
  Link& link = links_[answer.connection];
  link.dialing = false;
  if (!answer.opened) {
    ++link.failures;
    link.redial_at = monotonic_ns() + kRedialWait;
    if (listener_ != nullptr) listener_->not_opened(answer.opened.error());
    return;
  }
  link.socket = std::move(answer.opened.value().socket);
  link.talk = std::move(answer.opened.value().talk);
  link.asked = 0;
  link.failures = 0;
  link.moving = false;
  link.polls_output = false;
  link.return_at = monotonic_ns() + kReturnWait;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = answer.connection;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link.socket.get(), &event) != 0) {
    link.socket = Descriptor();
    link.redial_at = monotonic_ns() + kRedialWait;
    return;
  }
  links_of_[link.server].push_back(answer.connection);
}

void Links::take_layout(Layout layout) {
  layout_ = std::move(layout);
  servers_ = layout_.servers();
  // A server that has no connection yet gets one.
  if (links_.size() < servers_.size()) links_.resize(servers_.size());
  set_targets();
  for (Link& link : links_) {
    link.failures = 0;
    if (link.socket.open() && link.server != link.target) link.moving = true;
  }
}

/// Each server of the layout gets its share of the connections, and as few as possible move.
void Links::set_targets() {
  std::map<std::string, std::size_t> shares;
  for (const std::string& server : servers_) shares[server] = 0;
  const std::size_t most = (links_.size() + servers_.size() - 1) / servers_.size();
  std::vector<Link*> free;
  for (Link& link : links_) {
    const auto share = shares.find(link.target);
    if (share != shares.end() && share->second < most) {
      ++share->second;
    } else {
      free.push_back(&link);
    }
  }
  const auto smaller = [](const auto& one, const auto& other) { return one.second < other.second; };
  for (Link* link : free) {
    const auto least = std::min_element(shares.begin(), shares.end(), smaller);
    link->target = least->first;
    ++least->second;
  }
  // Every server has one: there are at least as many connections as servers.
  for (auto& [server, share] : shares) {
    if (share > 0) continue;
    const auto largest = std::max_element(shares.begin(), shares.end(), smaller);
    const auto giver = std::find_if(links_.begin(), links_.end(), [&](const Link& link) {
      return link.target == largest->first;
    });
    giver->target = server;
    --largest->second;
    ++share;
  }
}

std::optional<std::size_t> Links::any_open(std::size_t hint) const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const std::size_t link = (hint + i) % links_.size();
    if (links_[link].usable()) return link;
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const std::size_t link = (hint + i) % links_.size();
    if (links_[link].socket.open() && !links_[link].talk->ending()) return link;
  }
  return std::nullopt;
}

std::optional<std::size_t> Links::choose(std::string_view key, std::size_t hint) {
  const auto owner = choose_owner(key, hint);
  return owner ? owner : any_open(hint);
}

std::optional<std::size_t> Links::choose_owner(std::string_view key, std::size_t hint) {
  const Part& part = layout_.part_of(key);
  const auto in_part = [&part](const std::string& server) {
    return std::find(part.servers.begin(), part.servers.end(), server) != part.servers.end();
  };
  if (links_[hint].usable() && in_part(links_[hint].server)) return hint;
  for (std::size_t i = 0; i < part.servers.size(); ++i) {
    const auto found = links_of_.find(part.servers[(turn_ + i) % part.servers.size()]);
    if (found == links_of_.end() || found->second.empty()) continue;
    const std::size_t link = found->second[turn_++ % found->second.size()];
    if (links_[link].usable()) return link;
  }
  return std::nullopt;
}

void Links::send(std::size_t link, const Request& request, Ticket ticket) {
  Link& one = links_[link];
  // The second half of an operation, whose server has said meanwhile that it goes.
  if (one.talk->ending()) return listener_->lost(ticket, "connection closing");
  one.talk->ask(request, one.asked, one.output);
  one.pending.emplace_back(one.asked++, std::move(ticket));
  ++in_flight_;
  if (!one.dirty) dirty_.push_back(link);
  one.dirty = true;
}

void Links::flush() {
  for (const std::size_t link : std::exchange(dirty_, {})) {
    links_[link].dirty = false;
    if (links_[link].socket.open() && !links_[link].polls_output)
      static_cast<void>(flush_link(link));
  }
}

bool Links::flush_link(std::size_t link) {
  Link& one = links_[link];
  one.talk->take_output(one.output);
  while (one.output_at < one.output.size()) {
    const Moved moved = write_part(one.socket, std::string_view(one.output).substr(one.output_at));
    one.output_at += moved.bytes;
    if (moved.bytes > 0) continue;
    if (!moved.waits) {
      drop(link, moved.why);
      return false;
    }
    watch_output(link, true);
    return true;
  }
  one.output.clear();
  one.output_at = 0;
  watch_output(link, false);
  return true;
}

void Links::watch_output(std::size_t link, bool wanted) {
  Link& one = links_[link];
  if (one.polls_output == wanted) return;
  epoll_event event{};
  event.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = link;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, one.socket.get(), &event) == 0) {
    one.polls_output = wanted;
  }
}

Result<void> Links::wait(std::uint64_t until) {
  std::array<epoll_event, 256> events;
  int ready = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (ready == 0) {
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t wait = until > now ? until - now : 0;
    const timespec timeout = {static_cast<time_t>(wait / (1000 * kMillisecond)),
                              static_cast<long>(wait % (1000 * kMillisecond))};
    pollfd polled = {epoll_.get(), POLLIN, 0};
    if (wait > 0) static_cast<void>(ppoll(&polled, 1, &timeout, nullptr));
    ready = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  }
  if (ready < 0 && errno != EINTR) return system_error("epoll");
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeMark) {
      take_answers();
      continue;
    }
    const auto link = static_cast<std::size_t>(event.data.u64);
    if (!links_[link].socket.open()) continue;
    if ((event.events & EPOLLOUT) != 0 && !flush_link(link)) continue;
    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_link(link);
  }
  return {};
}

void Links::read_link(std::size_t link) {
  Link& one = links_[link];
  do {
    const Moved moved = read_part(one.socket, chunk_);
    if (moved.bytes == 0) {
      if (!moved.waits) drop(link, moved.why);
      return;
    }
    Taking taking(*this, link, monotonic_ns());
    const auto taken = one.talk->arrived({chunk_.data(), moved.bytes}, taking);
    if (!taken) return drop(link, taken.error().message);
    // What it says by itself, as that it has seen the server's settings.
    if (!one.dirty) dirty_.push_back(link);
    one.dirty = true;
    if (one.talk->ending()) one.moving = true;
  } while (one.socket.open() && one.socket.stream() != nullptr &&
           one.socket.stream()->has_pending());
}

bool Links::take_reply(std::size_t link, std::uint64_t number, const ReplyView& reply,
                       std::uint64_t now) {
  auto& pending = links_[link].pending;
  // At the front, unless the protocol lets replies overtake each other.
  const auto found = std::find_if(pending.begin(), pending.end(),
                                  [number](const auto& one) { return one.first == number; });
  if (found == pending.end()) return false;
  const Ticket ticket = std::move(found->second);
  pending.erase(found);
  --in_flight_;
  // It may send on this very connection.
  listener_->answered(link, ticket, reply, now);
  return true;
}

void Links::drop(std::size_t link, const std::string& why) {
  Link& one = links_[link];
  std::vector<std::size_t>& siblings = links_of_[one.server];
  siblings.erase(std::remove(siblings.begin(), siblings.end(), link), siblings.end());
  one.socket = Descriptor();
  one.talk.reset();
  one.output.clear();
  one.output_at = 0;
  one.polls_output = false;
  if (!one.moving) ++one.failures;
  one.moving = false;
  one.redial_at = monotonic_ns() + (one.failures > 0 ? kRedialWait : 0);
  const auto pending = std::exchange(one.pending, {});
  in_flight_ -= pending.size();
  for (const auto& [number, ticket] : pending) listener_->lost(ticket, why);
}

void Links::look_after(std::uint64_t now) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    if (link.socket.open()) {
      if (link.server != link.target && now >= link.return_at) link.moving = true;
      if (link.moving && link.pending.empty()) {
        link.failures = 0;
        drop(i, "moved");
        continue;
      }
      const bool silent =
          !link.pending.empty() && now > link.pending.front().second.sent + kSilenceMax;
      if (silent) drop(i, "no reply for 10 s");
    }
    if (!link.socket.open() && !link.dialing && now >= link.redial_at) dial(i);
  }
}

bool Links::redirect(std::string_view moved) {
  // "MOVED 3999 127.0.0.1:6381"
  const std::size_t space = moved.find(' ');
  const std::size_t second = moved.find(' ', space + 1);
  if (space == std::string_view::npos || second == std::string_view::npos) return false;
  std::uint32_t slot = 0;
  const auto read = std::from_chars(moved.data() + space + 1, moved.data() + second, slot);
  const bool number = read.ec == std::errc() && read.ptr == moved.data() + second &&
                      second - space - 1 <= kSlotDigitsMax;
  const std::string server(moved.substr(second + 1));
  if (!number || server.rfind(':') == std::string::npos) return false;
  Layout layout;
  for (const Part& part : layout_.parts) {
    if (slot < part.first_slot || slot > part.last_slot) {
      layout.parts.push_back(part);
      continue;
    }
    if (slot > part.first_slot) layout.parts.push_back({part.first_slot, slot - 1, part.servers});
    layout.parts.push_back({slot, slot, {server}});
    if (slot < part.last_slot) layout.parts.push_back({slot + 1, part.last_slot, part.servers});
  }
  take_layout(std::move(layout));
  return true;
}

}  // namespace leasehold::bench
