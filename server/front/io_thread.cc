#include <leasehold/server/front/connection.h>
#include <leasehold/server/front/io_thread.h>
#include <leasehold/server/front/people_time.h>

namespace leasehold::server {

using asio::ip::tcp;

namespace {

/// How often a thread checks whether a connection is idle; all of them in this many steps.
constexpr std::chrono::milliseconds kSweep{1000};
constexpr std::size_t kSweepSteps = 10;
/// Certificates that are looked at again in one step, of 0.2 ms each about.
constexpr std::size_t kCertificateLooks = 20;

}  // namespace

// All pending tasks run before any connection sends: replies that became ready together leave in
// one write.
void IoThread::run_tasks() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(tasks_);
    scheduled_ = false;
  }
  for (auto& task : running_) task();
  running_.clear();
  for (std::size_t i = 0; i < awake_.size(); ++i) {
    const std::shared_ptr<Connection> connection = std::move(awake_[i]);
    connection->pump_awake();
  }
  awake_.clear();
}

void IoThread::queue_turn(std::shared_ptr<Connection> connection) {
  turns_.push_back(std::move(connection));
  if (!std::exchange(turn_scheduled_, true)) asio::post(io, [this] { run_turn(); });
}

// One turn, and then the sockets that have become ready: a client with few requests never waits for
// more than one turn of clients with many.
void IoThread::run_turn() {
  const std::shared_ptr<Connection> connection = std::move(turns_.front());
  turns_.pop_front();
  turn_scheduled_ = !turns_.empty();
  if (turn_scheduled_) asio::post(io, [this] { run_turn(); });
  connection->pump_in_turn();
}

void IoThread::take_over(std::shared_ptr<Connection> connection, tcp protocol, int handle) {
  asio::post(io, [this, connection = std::move(connection), protocol, handle] {
    tcp::socket socket(io, protocol, handle);
    if (closed_) return;
    connections_.emplace(connection.get(), connection);
    if (draining_) connection->stop_reading();
    connection->arrive(std::move(socket));
  });
}

void IoThread::adopt(tcp::socket socket, std::string address, ClientTls::Mode mode) {
  if (mode == ClientTls::Mode::off) {
    welcome(ClientChannel(std::move(socket)), std::move(address));
  } else {
    greetings_.begin(std::move(socket), std::move(address), mode);
  }
}

void IoThread::welcome(ClientChannel channel, std::string address) {
  if (closed_) {
    state.clients.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  auto connection = std::make_shared<Connection>(*this, std::move(channel), std::move(address));
  connections_.emplace(connection.get(), connection);
  nobodys_.emplace(connection->id(), connection);
  if (draining_) connection->stop_reading();
  connection->start();
}

void IoThread::forget(const Connection* connection) {
  nobodys_.erase(connection->id());
  connections_.erase(connection);
}

// One that is somebody's stays so, or has had a password: it is not looked at again.
std::shared_ptr<Connection> IoThread::oldest_nobodys() {
  for (auto at = nobodys_.begin(); at != nobodys_.end();) {
    if (!at->second->is_nobodys()) {
      at = nobodys_.erase(at);
    } else if (at->second->busy()) {
      ++at;
    } else {
      return at->second;
    }
  }
  return nullptr;
}

// A pool opens connections and leaves them idle until it needs them. So none of them has a deadline
// while there are places; and where there are not, those are the last ones that others can miss.
bool IoThread::make_place() {
  const auto greeted = greetings_.oldest();
  const auto connection = oldest_nobodys();
  if (!greeted && !connection) return false;
  if (greeted && (!connection || *greeted <= connection->arrived())) {
    greetings_.end_oldest();
  } else {
    connection->close();
  }
  counters.connections_displaced.add();
  return true;
}

void IoThread::stop_reading() {
  draining_ = true;
  for (const auto& [key, connection] : connections_) connection->stop_reading();
}

void IoThread::close_all() {
  closed_ = true;
  sweep_.cancel();
  greetings_.close_all();
  for (const auto& [key, connection] : connections_) connection->prepare_to_finish();
  asio::post(io, [this] {
    nobodys_.clear();
    const auto connections = std::exchange(connections_, {});
    for (const auto& [key, connection] : connections) {
      connection->finish();
      connection->close();
    }
  });
}

void IoThread::sweep() {
  swept_ = true;
  std::vector<std::shared_ptr<Connection>> idle, slow, behind, distrusted;
  std::size_t looks = kCertificateLooks;
  const std::size_t buckets = connections_.bucket_count();
  for (std::size_t i = 0; i < buckets / kSweepSteps + 1; ++i) {
    const std::size_t bucket = next_bucket_++ % buckets;
    for (auto at = connections_.begin(bucket); at != connections_.end(bucket); ++at) {
      if (at->second->sweep(state.live.idle_timeout())) {
        idle.push_back(at->second);
      } else if (at->second->slow_to_ask(state.options.first_request_timeout)) {
        slow.push_back(at->second);
      } else if (looks > 0 && at->second->looks_outdated()) {
        --looks;
        if (!at->second->is_believed()) distrusted.push_back(at->second);
      } else if (at->second->wants_progress()) {
        behind.push_back(at->second);
      }
    }
  }
  counters.connections_idle.add(idle.size());
  counters.connections_slow.add(slow.size());
  counters.tls_distrusted.add(distrusted.size());
  for (const auto* ended : {&idle, &slow, &distrusted}) {
    for (const auto& connection : *ended) connection->close();
  }
  for (const auto& connection : behind) connection->pump();
  greetings_.end_late();
  sweep_.expires_after(kSweep / kSweepSteps);
  sweep_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled && !closed_) sweep();
  });
}

ListedClients IoThread::list(const ClientFilter& filter) const {
  ListedClients listed;
  for (const auto& [key, connection] : connections_) {
    if (connection->fits(filter)) listed.lines[connection->id()] = connection->describe();
  }
  return listed;
}

std::size_t IoThread::kill(const ClientFilter& filter, std::uint64_t asker) {
  std::vector<std::shared_ptr<Connection>> chosen;
  for (const auto& [key, connection] : connections_) {
    if (connection->fits(filter)) chosen.push_back(connection);
  }
  for (const auto& connection : chosen) {
    connection->id() == asker ? connection->close_after_replies() : connection->close();
  }
  return chosen.size();
}

}  // namespace leasehold::server
