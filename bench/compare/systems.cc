#include <leasehold/bench/compare/systems.h>
#include <leasehold/bench/load/etcd_client.h>
#include <leasehold/client/resp_client.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

namespace leasehold::bench {
namespace {

using Words = std::vector<std::string>;
using StatusJson = nlohmann::json;

constexpr std::size_t kMembers = 3;
constexpr std::chrono::seconds kStartTimeout{30};
constexpr std::chrono::milliseconds kReadyPause{20};
constexpr std::chrono::milliseconds kStateTimeout{2000};
constexpr std::chrono::seconds kStopTimeout{10};

std::string local(int port) {
  return fmt::format("127.0.0.1:{}", port);
}

/// `ports`: those of clients first, then those of peers.
std::vector<Words> leasehold_words(const std::string& program, const std::string& folder,
                                   const std::vector<int>& ports) {
  std::string peers;
  for (std::size_t i = 0; i < kMembers; ++i) {
    peers += fmt::format("{}{}={}", i == 0 ? "" : ",", i + 1, local(ports[kMembers + i]));
  }
  std::vector<Words> all;
  for (std::size_t i = 0; i < kMembers; ++i) {
    all.push_back({program, "serve", "--id", std::to_string(i + 1), "--data-dir",
                   fmt::format("{}/node{}", folder, i + 1), "--peers", peers, "--listen",
                   local(ports[i])});
  }
  return all;
}

std::vector<Words> etcd_words(const std::string& program, const std::string& folder,
                              const std::vector<int>& ports) {
  std::string members;
  for (std::size_t i = 0; i < kMembers; ++i) {
    members += fmt::format("{}m{}=http://{}", i == 0 ? "" : ",", i + 1, local(ports[kMembers + i]));
  }
  std::vector<Words> all;
  for (std::size_t i = 0; i < kMembers; ++i) {
    const std::string client = "http://" + local(ports[i]);
    const std::string peer = "http://" + local(ports[kMembers + i]);
    // Its usual quota of 2 GiB holds a long measurement up: each write stays as a revision.
    all.push_back({program,
                   "--name",
                   fmt::format("m{}", i + 1),
                   "--data-dir",
                   fmt::format("{}/etcd{}", folder, i + 1),
                   "--listen-client-urls",
                   client,
                   "--advertise-client-urls",
                   client,
                   "--listen-peer-urls",
                   peer,
                   "--initial-advertise-peer-urls",
                   peer,
                   "--initial-cluster",
                   members,
                   "--initial-cluster-state",
                   "new",
                   "--quota-backend-bytes",
                   "8589934592",
                   "--log-level",
                   "error"});
  }
  return all;
}

std::vector<Words> redis_words(const std::string& program, const std::string& folder,
                               const std::vector<int>& ports, bool durable) {
  Words words = {program, "--port", std::to_string(ports[0]), "--bind", "127.0.0.1", "--save", "",
                 "--dir", folder};
  const Words log = {
      "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"};
  const Words none = {"--appendonly", "no"};
  const Words& more = durable ? log : none;
  words.insert(words.end(), more.begin(), more.end());
  return {words};
}

Result<client::RespValue> ask_redis(const std::string& address, const Words& words) {
  auto client = client::RespClient::connect(address, kStateTimeout);
  if (!client) return client.error();
  auto reply = client.value().call(words, kStateTimeout);
  if (reply && reply.value().kind == client::RespValue::Kind::error) {
    return Error{ErrorCode::unavailable, fmt::format("{}: {}", address, reply.value().text)};
  }
  return reply;
}

Error odd_status(const std::string& address) {
  return Error{ErrorCode::unavailable, fmt::format("{}: its status has another form", address)};
}

const char* id_of(System system) {
  switch (system) {
    case System::leasehold: return "leasehold";
    case System::etcd: return "etcd";
    case System::redis: return "redis";
    case System::redis_durable: return "redis-durable";
  }
  return "";
}

}  // namespace

std::string package_of(System system) {
  if (system == System::leasehold) return "";
  return system == System::etcd ? "etcd-server" : "redis-server";
}

std::string description_of(System system) {
  switch (system) {
    case System::leasehold: return "three nodes of Leasehold";
    case System::etcd: return "three members of etcd";
    case System::redis: return "one Redis that keeps nothing on disk";
    case System::redis_durable: return "one Redis that syncs each write (appendfsync always)";
  }
  return "";
}

std::string program_of(System system, const CompareOptions& options) {
  if (system == System::leasehold) return options.program;
  return program_in_path(system == System::etcd ? "etcd" : "redis-server");
}

Result<RunningSystem> RunningSystem::start(System system, const CompareOptions& options,
                                           const std::string& parent) {
  const std::string program = program_of(system, options);
  if (program.empty()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: not installed (Debian: {})", id_of(system), package_of(system))};
  }
  const std::string folder = fmt::format("{}/{}", parent, id_of(system));
  std::error_code failed;
  std::filesystem::create_directory(folder, failed);
  if (failed) return Error{ErrorCode::io, fmt::format("{}: {}", folder, failed.message())};
  const bool group = system == System::leasehold || system == System::etcd;
  const auto ports = unused_ports(group ? 2 * kMembers : 1);
  if (!ports) return ports.error();
  std::vector<Words> commands;
  if (system == System::leasehold) commands = leasehold_words(program, folder, ports.value());
  if (system == System::etcd) commands = etcd_words(program, folder, ports.value());
  if (!group) {
    commands = redis_words(program, folder, ports.value(), system == System::redis_durable);
  }
  Words addresses;
  for (std::size_t i = 0; i < commands.size(); ++i) addresses.push_back(local(ports.value()[i]));
  RunningSystem running(system, std::move(addresses));
  for (std::size_t i = 0; i < commands.size(); ++i) {
    auto process = ServerProcess::start(commands[i], fmt::format("{}/{}.log", folder, i + 1));
    if (!process) return process.error();
    running.processes_.push_back(std::move(process).value());
  }
  return running;
}

Result<void> RunningSystem::wait_ready(const std::function<bool()>& ended) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  for (;;) {
    if (ended()) return Error{ErrorCode::stopped, "ended before anything was measured"};
    for (ServerProcess& process : processes_) {
      if (process.running()) continue;
      return Error{ErrorCode::unavailable, fmt::format("{}: a process ended by itself:{}",
                                                       id_of(system_), end_of_log(process.log()))};
    }
    const auto found = state();
    if (found) return {};
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ErrorCode::unavailable,
                   fmt::format("{} does not serve within {} s ({}):{}", id_of(system_),
                               kStartTimeout.count(), found.error().message,
                               end_of_log(processes_.front().log()))};
    }
    std::this_thread::sleep_for(kReadyPause);
  }
}

Result<SystemState> RunningSystem::state() const {
  if (system_ == System::leasehold) return leasehold_state();
  return system_ == System::etcd ? etcd_state() : redis_state();
}

Result<SystemState> RunningSystem::leasehold_state() const {
  std::set<std::uint64_t> leaders;
  SystemState state;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    const auto reply = ask_redis(addresses_[i], {"LEASEHOLD", "STATUS"});
    if (!reply) return reply.error();
    const StatusJson status = StatusJson::parse(reply.value().text, nullptr, false);
    if (!status.is_object()) return odd_status(addresses_[i]);
    const StatusJson leader = status.value("leader", StatusJson());
    leaders.insert(leader.is_number_unsigned() ? leader.get<std::uint64_t>() : 0);
    if (status.value("role", "") != "leader") continue;
    if (status.value("lease_left", 0.0) <= 0) {
      return Error{ErrorCode::unavailable, "the leader has no lease"};
    }
    state.leader = fmt::format("node {} in term {}", i + 1, status.value("term", 0));
    state.lease_reads =
        status.value(StatusJson::json_pointer("/reads/lease_hits"), std::uint64_t{0});
  }
  if (leaders.size() == 1 && *leaders.begin() != 0 && !state.leader.empty()) return state;
  return Error{ErrorCode::unavailable, "no leader that all nodes follow"};
}

Result<SystemState> RunningSystem::etcd_state() const {
  SystemState state;
  std::set<std::uint64_t> leaders;
  for (const std::string& address : addresses_) {
    auto client = EtcdClient::connect(address);
    if (!client) return client.error();
    const auto member = client.value().member();
    if (!member) return member.error();
    leaders.insert(member.value().leader);
    state.version = "etcd " + member.value().version;
  }
  if (leaders.size() != 1 || *leaders.begin() == 0) {
    return Error{ErrorCode::unavailable, "no leader that all members follow"};
  }
  state.leader = fmt::format("member {:x}", *leaders.begin());
  return state;
}

Result<SystemState> RunningSystem::redis_state() const {
  const auto info = ask_redis(addresses_.front(), {"INFO", "server"});
  if (!info) return info.error();
  const std::string& text = info.value().text;
  const std::string name = "redis_version:";
  const std::size_t at = text.find(name);
  SystemState state;
  if (at != std::string::npos) {
    const std::size_t from = at + name.size();
    state.version = "Redis " + text.substr(from, text.find('\r', from) - from);
  }
  return state;
}

std::uint64_t RunningSystem::cpu_ns() const {
  std::uint64_t sum = 0;
  for (const ServerProcess& process : processes_) sum += process.cpu_ns();
  return sum;
}

void RunningSystem::end() {
  for (const ServerProcess& process : processes_) process.end();
}

void RunningSystem::stop() {
  end();
  for (ServerProcess& process : processes_) process.wait(kStopTimeout);
}

}  // namespace leasehold::bench
