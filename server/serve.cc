#include <leasehold/node/machine_clock.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/server/admin/admin_port.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/credentials.h>
#include <leasehold/server/descriptor_room.h>
#include <leasehold/server/failure.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/tcp_front.h>
#include <leasehold/server/node_log.h>
#include <leasehold/server/replicas.h>
#include <leasehold/server/serve.h>
#include <leasehold/server/span_file.h>
#include <leasehold/server/start_watch.h>
#include <leasehold/server/terminal.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/storage/sync_times.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace leasehold::server {
namespace {

/// Heaps of the allocator. Its own choice is eight for each processor; each keeps what was freed in
/// it, and a request's memory is often freed on another thread than it was taken on. With two, the
/// busy threads waited for each other's (bench/README.md).
constexpr int kHeapsMax = 4;
/// Payload of recent log entries kept in memory. Healthy followers are behind by far less, and what
/// is older is on the disk; each entry costs about twice its size here.
constexpr std::size_t kEntryCacheBytes = 8U << 20U;
/// How often the start is looked at, the sessions, and a failure that ended the node.
constexpr timespec kWatchInterval{0, 200'000'000};
/// How often leases are looked at, and so the keys that end by themselves: those are late by two
/// such times. In a process of many groups with all else, as each look is one at every group.
constexpr timespec kLeaseInterval{0, 20'000'000};
constexpr int kLeaseLooks = 10;  ///< in a kWatchInterval
constexpr std::size_t kPromptGroupsMax = 16;
/// How often the end of a drain is looked for. It takes a few milliseconds as a rule.
constexpr timespec kDrainInterval{0, 1'000'000};
/// Connected clients get refusals for at least this time before their connections are closed. A
/// client whose request arrives while its connection closes cannot know that the request was not
/// executed; a refusal says so, and a client that gets one leaves. So only a client that asks less
/// often can still meet that moment.
constexpr std::chrono::milliseconds kRefusing{100};

/// Each client takes a descriptor; the usual soft limit is 1024. Returns the limit.
std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

void bound_clients(std::uint64_t descriptors, ServerOptions& server) {
  const std::size_t most = clients_that_fit(descriptors, server.clients_max);
  if (most == server.clients_max) return;
  spdlog::warn(
      "at most {} files and connections may be open: this node takes {} clients at a time, not {}; "
      "raise the limit (LimitNOFILE in the unit of systemd, else ulimit -Hn), or say --clients-max "
      "{}",
      descriptors, most, server.clients_max, most);
  server.clients_max = most;
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

/// What a node that serves waits for. SIGHUP: read the certificates and keys again.
sigset_t awaited_signals() {
  sigset_t signals = ending_signals();
  sigaddset(&signals, SIGHUP);
  return signals;
}

/// From here on a signal ends the process, wherever it is; its folders are used to that.
void end_at_the_next_signal() {
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

const char* name_of(int signal) {
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

/// Says so. False: it has not failed.
bool has_failed(const Failure& failure) {
  const auto error = failure.get();
  if (error) spdlog::critical("this node cannot go on: {}", error->message);
  return error.has_value();
}

/// No exit status: serve() is to be called once more.
constexpr int kStartAgain = -1;

int status_of(const Failure& failure) {
  const auto error = failure.get();
  if (error && error->code == ErrorCode::clock_disrupted) return kStartAgain;
  return error && error->code == ErrorCode::removed ? kRemoved : 1;
}

Result<std::unique_ptr<node::MachineClock>> open_clock(const ServeSettings& settings) {
  node::MachineMarker::Options options;
  const bool off = settings.vm_clock == "off";
  options.vm_clock_required = !off && !settings.vm_clock.empty();
  if (!off) {
    options.vm_clock =
        settings.vm_clock.empty() ? node::MachineMarker::kVmClock : settings.vm_clock;
  }
  options.generation_events = !off;
  auto marker = node::MachineMarker::open(options);
  if (!marker) return marker.error();
  spdlog::info("watched for stops of this machine that its clocks may not show: {}",
               marker.value()->watched());
  return std::make_unique<node::MachineClock>(std::move(marker).value());
}

/// Of all processes under this kernel, until the next boot; empty if it does not say.
std::string machine_name() {
  std::string name;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), name);
  return name;
}

node::NodeOptions node_options(const ServeSettings& settings) {
  node::NodeOptions options = settings.node;
  options.limits.cache_bytes_max = kEntryCacheBytes;
  if (settings.deputy != "on") {
    if (settings.deputy != "off") options.deputy = settings.deputy;
    return options;
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) options.deputy = (program.parent_path() / "leasehold-deputy").string();
  return options;
}

/// How often members are asked that do not answer, and how often it is said again.
constexpr timespec kAskPause{1, 0};
constexpr int kAsksPerLine = 10;

/// The id of this node's cluster; asks the --join members until one answers. None: a signal came.
Result<std::optional<std::uint64_t>> find_cluster_id(const node::NodeOptions& options) {
  auto known = node::known_cluster_id(options);
  if (!known || known.value()) return known;
  const sigset_t signals = ending_signals();
  std::string said;
  for (int asked = 0;; ++asked) {
    const auto answer = node::ask_cluster_id(options);
    if (answer) return std::optional(answer.value());
    const Error& error = answer.error();
    if (error.code != ErrorCode::unavailable) return error;
    if (error.message != said || asked % kAsksPerLine == 0) {
      spdlog::info("cannot join yet: {}", error.message);
    }
    said = error.message;
    const int signal = sigtimedwait(&signals, nullptr, &kAskPause);
    if (signal <= 0) continue;
    spdlog::info("stopping: {}", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    return std::optional<std::uint64_t>();
  }
}

/// The node to which a witness sends its clients: the leader, or a member that can find it.
raft::NodeId full_member(const node::NodeStatus& status) {
  raft::NodeId found = raft::kNobody;
  for (const node::MemberStatus& member : status.members) {
    if (member.witness || !member.voter) continue;
    if (member.id == status.leader) return member.id;
    if (found == raft::kNobody || member.connected) found = member.id;
  }
  return found;
}

/// Asks for the newest users, until it has them; so that hardly any client has to wait for them.
void learn_users(node::Group& node, ServerState& state) {
  if (state.users_known.load() || state.asking_for_users.exchange(true)) return;
  node.read(raft::ReadMode::quorum, state.options.command_timeout,
            [&state](const replica::ReadResult& result) {
              if (result.index) state.users_known.store(true);
              state.asking_for_users.store(false);
            });
}

/// A signal, or, when the interval is over, none: not above 0.
int wait_for_signal(const sigset_t& signals, Replicas& replicas, const ServedGroups& groups) {
  if (groups.all().size() > kPromptGroupsMax) {
    return sigtimedwait(&signals, nullptr, &kWatchInterval);
  }
  for (int i = 0; i < kLeaseLooks; ++i) {
    const int signal = sigtimedwait(&signals, nullptr, &kLeaseInterval);
    if (signal > 0) return signal;
    replicas.look_at_leases();
  }
  return 0;
}

/// Waits for a signal, and returns it, or for a failure: 0.
int watch(Replicas& replicas, const ServedGroups& groups, Credentials& credentials,
          ServerState& state, const Failure& failure) {
  node::Group& home = replicas.home();
  const sigset_t signals = awaited_signals();
  StartWatch start(
      home, replicas.leader_known(), [](const std::string& text) { spdlog::info("{}", text); },
      groups.many());
  for (;;) {
    const int signal = wait_for_signal(signals, replicas, groups);
    if (signal == SIGHUP) {
      static_cast<void>(credentials.reload());  // it logs the result
    } else if (signal > 0) {
      return signal;
    }
    if (has_failed(failure)) return 0;
    credentials.look();
    start.look();
    replicas.look();
    groups.routes().end_waits(coarse_now());
    learn_users(home, state);
    if (!state.options.witness) continue;
    home.status([&state](const node::NodeStatus& status) {
      state.full_member.store(full_member(status).value(), std::memory_order_relaxed);
    });
  }
}

std::string drain_text(const Replicas::Drained& drained, raft::NodeId self) {
  std::string out = drained.incomplete == 0 ? "" : "the time is over; ";
  if (drained.waiting > 0) out += fmt::format("{} calls still wait; ", drained.waiting);
  if (drained.groups > 1) {
    return out + fmt::format("{} leaderships transferred; this node leads {} of {} groups",
                             drained.transferred, drained.led_here, drained.groups);
  }
  const node::DrainResult& result = drained.home;
  if (result.leader == self) return out + "this node leads, and no other could follow";
  if (result.leader == raft::kNobody) return out + "no leader is known";
  return fmt::format("{}{}node {} leads", out, result.transferred ? "leadership transferred: " : "",
                     result.leader.value());
}

/// Answers the requests in flight, transfers the leadership and refuses further requests: within
/// the time limit, and until another signal or a failure. False: a failure.
bool drain(Replicas& replicas, const ServedGroups& groups, const ServeSettings& settings,
           const ServerState& state, const Failure& failure) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const auto told = begun + std::min<lease::Duration>(kRefusing, settings.drain_timeout);
  // The completion may come after the return: it only touches what it owns.
  const auto ended = std::make_shared<std::promise<Replicas::Drained>>();
  std::future<Replicas::Drained> end = ended->get_future();
  replicas.drain(settings.drain_timeout,
                 [ended](const Replicas::Drained& drained) { ended->set_value(drained); });
  const sigset_t signals = ending_signals();
  for (;;) {
    // What waits for a slot is refused, as all that comes now.
    groups.routes().end_waits(std::chrono::nanoseconds::max());
    if (end.valid() && end.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      const auto ms = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
      spdlog::info("drained in {:.1f} ms: {}", ms, drain_text(end.get(), settings.node.id));
    }
    const bool nobody = state.clients.load(std::memory_order_relaxed) == 0;
    if (!end.valid() && (nobody || Clock::now() >= told)) return true;
    const int signal = sigtimedwait(&signals, nullptr, &kDrainInterval);
    if (signal > 0) {
      spdlog::warn("{} again: stopping at once", name_of(signal));
      return true;
    }
    if (has_failed(failure)) return false;
  }
}

/// Null: there is none.
Result<std::unique_ptr<AdminPort>> open_admin(const ServeSettings& settings,
                                              const ServedGroups& groups, ServerState& state,
                                              const AdminSources& sources) {
  if (settings.admin.empty()) return std::unique_ptr<AdminPort>();
  auto admin = AdminPort::open(
      {settings.admin, settings.admin_open, settings.data_dir, settings.admin_addresses}, groups,
      state, sources);
  if (admin) {
    spdlog::info("monitors on {} (port {})", settings.admin, admin.value()->port());
  }
  return admin;
}

Result<void> make_data_dir(const ServeSettings& settings) {
  const std::string& dir = settings.data_dir;
  const auto made = storage::make_private_folder(dir);
  if (!made) {
    return Error{made.error().code,
                 fmt::format("{}; or choose another --data-dir", made.error().message)};
  }
  // An earlier version let others read, or a copy that was made with cp.
  const auto tightened = storage::tighten_content(dir);
  if (!tightened) return tightened.error();
  if (made.value() || tightened.value() > 0) {
    spdlog::warn(
        "{}: other users had rights to it; now only its owner has, also to {} files and "
        "folders in it",
        dir, tightened.value());
  }
  return {};
}

/// Says it at each start: what was lost is missing for good.
void note_loss(const node::Recovered& recovered, const std::string& whose) {
  spdlog::warn(
      "{} was recovered from a lost majority of cluster {:016x}: what was acknowledged there "
      "behind entry {} is lost",
      whose, recovered.cluster_id, recovered.end.index.value());
}

void note_recovery(const node::Recovered& recovered, const ServeSettings& settings,
                   ServerState& state) {
  state.options.recovery = {
      {"recovered", "yes"},
      {"recovered_from_cluster", fmt::format("{:016x}", recovered.cluster_id)},
      {"recovered_at", std::to_string(recovered.at_s)}};
  if (settings.groups == 1) {
    state.options.recovery.emplace_back("recovered_end_term",
                                        std::to_string(recovered.end.term.value()));
    state.options.recovery.emplace_back("recovered_end_index",
                                        std::to_string(recovered.end.index.value()));
    return note_loss(recovered, "this group");
  }
  for (std::size_t group = 1; group <= settings.groups; ++group) {
    const auto restored =
        node::load_restored(fmt::format("{}/groups/{}", settings.data_dir, group));
    if (!restored || !restored.value() || !restored.value()->recovered) continue;
    note_loss(*restored.value()->recovered, fmt::format("group {}", group));
  }
}

/// What a session says of this node. `clock` outlives `state`'s use.
void describe_node(const ServeSettings& settings, ServerState& state,
                   const node::MachineClock& clock) {
  const auto restored = node::load_restored(settings.data_dir);
  if (restored && restored.value() && restored.value()->recovered) {
    note_recovery(*restored.value()->recovered, settings, state);
  }
  state.options.notice = [](const std::string& text) { spdlog::warn("{}", text); };
  state.options.clocks = [&clock] { return clock.now(); };
  state.options.machine = machine_name();
  state.options.set_log_level = set_log_level;
  // A witness has no users.
  state.users_known = state.options.witness;
}

/// Null: nobody wants them. `clock` and `state` outlive it.
Result<std::unique_ptr<SpanFile>> open_spans(const ServeSettings& settings,
                                             const node::MachineClock& clock, ServerState& state) {
  if (settings.spans.empty()) return std::unique_ptr<SpanFile>();
  SpanFile::Options options;
  options.path = settings.spans;
  options.ratio = settings.spans_ratio;
  options.bytes_max = settings.spans_bytes;
  options.resource = {settings.node.cluster, std::to_string(settings.node.id.value()), kVersion,
                      settings.advertise};
  options.unix_now_ns = [] { return std::chrono::nanoseconds(wall_now()).count(); };
  options.notice = [](const std::string& text) { spdlog::warn("{}", text); };
  auto spans = SpanFile::open(std::move(options), clock);
  if (!spans) return spans.error();
  SpanFile& file = *spans.value();
  state.tracer = &file;
  state.options.set_spans_ratio = [&file](double ratio) { file.set_ratio(ratio); };
  state.options.spans = [&file] { return file.counts(); };
  spdlog::info("spans of {} of the commands go to {}", settings.spans_ratio, settings.spans);
  return spans;
}

/// `replicas` outlives `state`'s use.
void open_doors(Replicas& replicas, ServerState& state) {
  if (replicas.served().many()) {
    state.options.add_host = [&replicas](raft::NodeId node, const std::string& address) {
      return replicas.add_host({node, address});
    };
    state.options.hear_place = [&replicas](std::size_t group, const auto& nodes) {
      return replicas.hear_place(group, nodes);
    };
  }
  if (const auto cache = replicas.read_cache()) {
    state.options.read_cache = [cache] {
      const kv::RecordCache::Stats stats = cache->stats();
      return ReadCacheUse{stats.bytes, stats.evicted};
    };
  }
}

Result<int> serve(const ServeSettings& settings) {
  if (const auto made = make_data_dir(settings); !made) return made.error();
  node::NodeOptions options = node_options(settings);
  if (settings.groups == 1) {
    const auto cluster_id = find_cluster_id(settings.node);
    if (!cluster_id) return cluster_id.error();
    if (!cluster_id.value()) return 0;
    options.cluster_id = *cluster_id.value();
  }
  auto context = Credentials::load_for_clients(settings);
  if (!context) return context.error();
  ServerState state(settings.server, command_table(), std::move(context).value());
  Failure failure;
  auto clock = open_clock(settings);
  if (!clock) return clock.error();
  describe_node(settings, state, *clock.value());
  storage::SyncTimes syncs(*clock.value());
  options.sync_times = &syncs;
  // The node and its clients, which end first, write to it.
  const auto spans = open_spans(settings, *clock.value(), state);
  if (!spans) return spans.error();
  options.tracer = spans.value().get();
  auto opened = Replicas::open(settings, options, *clock.value(), failure);
  if (!opened) return opened.error();
  Replicas& replicas = *opened.value();

  replicas.begin(state);
  const ServedGroups groups = replicas.served();
  Credentials credentials(
      settings, [&replicas](const auto& fresh) { return replicas.set_peer_security(fresh); },
      state);
  state.options.reload = [&credentials] { return credentials.reload(); };
  open_doors(replicas, state);
  auto front = TcpFront::open(settings.listen, groups, state);
  if (!front) return front.error();
  spdlog::info("leasehold {}: clients on {} (port {}), data in {}", kVersion, settings.listen,
               front.value()->port(), settings.data_dir);

  // For as long as this node drains, monitors see that it does.
  auto admin = open_admin(settings, groups, state, {replicas.events(), syncs});
  if (!admin) return admin.error();

  const int signal = watch(replicas, groups, credentials, state, failure);
  front.value()->close_door();
  state.draining = true;
  bool good = signal > 0;
  if (good && settings.drain_timeout > lease::Duration(0)) {
    spdlog::info("{}: draining for {} at most; no new clients, no new commands", name_of(signal),
                 format_duration(settings.drain_timeout));
    good = drain(replicas, groups, settings, state, failure);
  }
  if (good) spdlog::info("stopping: {}", name_of(signal));
  end_at_the_next_signal();
  // Clients are refused until the last moment: a request that is left unread would end in a broken
  // connection, and its client could not know whether it was executed.
  replicas.stop();
  front.value()->stop();
  return good ? 0 : status_of(failure);
}

}  // namespace

int run_serve(ServeSettings settings) {
  const sigset_t signals = awaited_signals();
  std::signal(SIGPIPE, SIG_IGN);
  const std::uint64_t descriptors = raise_descriptor_limit();
  ::umask(storage::kPrivateUmask);
  mallopt(M_ARENA_MAX, kHeapsMax);
  // Before there is another thread. One that does not block them would be given a signal that comes
  // while this one is busy, and that would be the end of the process.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  start_log(settings);
  bound_clients(descriptors, settings.server);
  Result<int> served = serve(settings);
  while (served && served.value() == kStartAgain) {
    spdlog::warn("starting again, as a new incarnation without promises of a lease");
    // Its end has opened them.
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    served = serve(settings);
  }
  if (!served) spdlog::critical("{}", served.error().message);
  const int exit_status = served ? served.value() : 1;
  if (exit_status == 0) spdlog::info("stopped");
  spdlog::shutdown();
  return exit_status;
}

}  // namespace leasehold::server
