#include <leasehold/kv/command_level.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/state_watch.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_check.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::server {
namespace {

constexpr lease::Duration kJudgePause = std::chrono::seconds(1);
/// A pass has half of the interval: what breaks just behind it is found by the next one in time.
/// The rest is for what is written meanwhile.
constexpr double kPaceReserve = 1.25;
/// At least this many bytes a second: a small store is read quickly, and its snapshot soon given
/// back.
constexpr std::uint64_t kPaceMin = std::uint64_t{4} << 20U;
constexpr lease::Duration kScrubLook = std::chrono::milliseconds(100);
/// How often a report of damage is proposed until it has come through the log.
constexpr lease::Duration kReportPause = std::chrono::seconds(5);
/// Niceness of the thread, from 0 (as the others) to 19: clients come first.
constexpr int kScrubNiceness = 15;

std::string list_of(const std::vector<raft::NodeId>& nodes) {
  std::string out = nodes.size() == 1 ? "node" : "nodes";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? " " : ", ", nodes[i].value());
  }
  return out;
}

}  // namespace

StateWatch::StateWatch(node::Group& node, kv::RocksdbStore& store, StateHealth& health,
                       ServerState& state, Options options)
    : node_(node),
      store_(store),
      health_(health),
      state_(state),
      options_(std::move(options)),
      next_compare_(node.clock().now().promise + options_.compare_interval),
      next_judgement_(node.clock().now().promise) {
  look_at_trust();
  if (options_.scrub_interval <= lease::Duration(0)) return;
  thread_ = std::thread([this] { run_scrubs(); });
  pthread_setname_np(thread_.native_handle(), "lh-scrub");
}

StateWatch::~StateWatch() {
  stop();
}

void StateWatch::stop() {
  stopping_.store(true);
  if (thread_.joinable()) thread_.join();
}

void StateWatch::look() {
  look_at_trust();
  if (health_.refuses.load()) return;
  const raft::PromiseInstant now = node_.clock().now().promise;
  if (options_.compare_interval > lease::Duration(0)) compare(now);
  report();
  if (now < next_judgement_) return;
  next_judgement_ = now + kJudgePause;
  judge();
}

/// The store says by itself that it is not trusted: after a restart, and while it is rebuilt.
void StateWatch::look_at_trust() {
  const std::string why = store_.distrusted();
  if (why != health_.refused()) {
    health_.set_refused(why);
    if (why.empty()) spdlog::info("this replica has been rebuilt and serves again");
  }
  if (!why.empty() && !store_.rebuilding()) stand_down(why);
}

void StateWatch::stand_down(const std::string& why) {
  if (std::exchange(stood_down_, true)) return;
  spdlog::error(
      "this replica's state is not served any more: {}. It still stores the log and votes, "
      "but leads no more. To rebuild it: stop it, write a backup on another node (leasehold "
      "backup), leasehold rebuild {} --from that file, and start it",
      why, options_.rebuild);
  node_.drain(options_.timeout, [](const node::DrainResult&) {});
  // A client that watches would see the changes of a state that is not the group's.
  if (state_.clients_known != nullptr) state_.clients_known->kill({}, 0, [](std::size_t) {});
}

Result<void> StateWatch::propose(const kv::Command& command,
                                 std::function<void(bool committed)> done) {
  auto encoded = kv::encode_for(command, node_.lease_view().level());
  if (!encoded) return encoded.error();
  node_.propose(std::move(encoded).value(), options_.timeout,
                [done = std::move(done)](const replica::ProposeResult& result) {
                  done(result.status == replica::ProposeStatus::committed);
                });
  return {};
}

/// The leader appends the entry at which all compare.
void StateWatch::compare(raft::PromiseInstant now) {
  const auto newest = store_.comparison().newest();
  if (newest && newest->index != compared_) {
    compared_ = newest->index;
    next_compare_ = now + options_.compare_interval;
  }
  if (now < next_compare_ || !node_.lease_view().look(node_.clock()).valid()) return;
  next_compare_ = now + options_.compare_interval;
  static_cast<void>(propose(kv::CompareState{}));
}

void StateWatch::report() {
  const auto newest = store_.comparison().newest();
  if (!newest || newest->index.value() == shared_->reported.load()) return;
  const std::uint64_t index = newest->index.value();
  shared_->reported.store(index);
  const kv::StateReport own{options_.id, newest->index, kv::kSumVersion, newest->kept,
                            newest->kept};
  static_cast<void>(propose(kv::ReportState{own}, [shared = shared_, index](bool committed) {
    std::uint64_t expected = index;
    if (!committed) shared->reported.compare_exchange_strong(expected, 0);
  }));
}

void StateWatch::judge() {
  node_.status([shared = shared_](const node::NodeStatus& status) {
    const std::lock_guard lock(shared->mutex);
    shared->voters.clear();
    for (const node::MemberStatus& member : status.members) {
      if (member.voter && !member.witness) shared->voters.push_back(member.id);
    }
  });
  std::vector<raft::NodeId> voters;
  {
    const std::lock_guard lock(shared_->mutex);
    voters = shared_->voters;
  }
  if (voters.empty()) return;
  const auto judged = store_.comparison().judge(options_.id, voters);
  using Verdict = kv::Comparison::Verdict;
  if (judged.verdict == Verdict::open) return;
  if (health_.compared_index.exchange(judged.index.value()) != judged.index.value()) {
    health_.compares.fetch_add(1);
  }
  if (judged.verdict == Verdict::differs) {
    store_.distrust(
        fmt::format("at entry {} it differs from a majority of the group", judged.index.value()));
    look_at_trust();
  } else if (judged.verdict == Verdict::undecided) {
    warn(
        fmt::format("this replica differs from {} at entry {}, and no majority says which is "
                    "right: compare backups of both, and rebuild the wrong one",
                    list_of(judged.others), judged.index.value()));
  } else if (!judged.others.empty()) {
    warn(fmt::format("{} from this replica and a majority at entry {}: rebuild it",
                     list_of(judged.others) + (judged.others.size() == 1 ? " differs" : " differ"),
                     judged.index.value()));
  } else {
    warn("");
  }
}

void StateWatch::warn(const std::string& text) {
  if (std::exchange(warned_, text) == text) return;
  health_.set_warning(text);
  if (!text.empty()) spdlog::error("{}", text);
}

// ---- The scrub ----

bool StateWatch::pause(lease::Duration duration) {
  const auto end = coarse_now() + duration;
  for (auto left = duration; !stopping_.load() && left.count() > 0; left = end - coarse_now()) {
    std::this_thread::sleep_for(std::min<lease::Duration>(kScrubLook, left));
  }
  return !stopping_.load();
}

/// A step of a reader that began at `began` and reads no more than `pace` bytes a second.
bool StateWatch::pause_after(std::uint64_t bytes, std::uint64_t pace,
                             std::chrono::nanoseconds began) {
  const std::chrono::duration<double> due(static_cast<double>(bytes) / static_cast<double>(pace));
  return pause(std::chrono::duration_cast<lease::Duration>(due) - (coarse_now() - began));
}

std::uint64_t StateWatch::pace() const {
  const double seconds = std::chrono::duration<double>(options_.scrub_interval / 2).count();
  const double needed = kPaceReserve * static_cast<double>(store_.stored_bytes()) / seconds;
  return std::max(kPaceMin, static_cast<std::uint64_t>(needed));
}

void StateWatch::run_scrubs() {
  // On Linux this affects this thread alone. A hint: everything works without it.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kScrubNiceness));
  for (;;) {
    const auto begun = coarse_now();
    if (!health_.refuses.load()) scrub();
    if (!stopping_.load() && !options_.log_dir.empty()) scrub_files();
    const lease::Duration taken = coarse_now() - begun;
    if (!pause(std::max(kScrubLook, options_.scrub_interval / 2 - taken))) return;
  }
}

void StateWatch::scrub() {
  const std::uint64_t rate = pace();
  const auto found = store_.scrub([this, rate, began = coarse_now()](std::uint64_t bytes) {
    return pause_after(bytes, rate, began);
  });
  if (!found) {
    if (found.error().code != ErrorCode::corrupted) {
      spdlog::warn("the scrub of the store ended: {}", found.error().message);
      return;
    }
    health_.scrub_errors.fetch_add(1);
    store_.distrust("the scrub found damage: " + found.error().message);
    return;
  }
  if (!found.value()) return;
  const kv::Scrubbed& scrubbed = *found.value();
  health_.scrubbed_bytes.fetch_add(scrubbed.bytes);
  health_.last_scrub.store(std::chrono::duration_cast<std::chrono::seconds>(wall_now()).count());
  health_.scrubs.fetch_add(1);
  if (scrubbed.kept != scrubbed.stored) damaged(scrubbed);
}

/// Reports the damage before it believes in it: if another replica has found the same, the program
/// is wrong, and the group must not lose all its replicas to it.
void StateWatch::damaged(const kv::Scrubbed& found) {
  health_.scrub_errors.fetch_add(1);
  const kv::StateReport own{options_.id, found.index, kv::kSumVersion, found.kept, found.stored};
  using Damage = kv::Comparison::Damage;
  Damage damage = Damage::unheard;
  while (damage == Damage::unheard) {
    if (const auto proposed = propose(kv::ReportState{own}); !proposed) {
      health_.set_warning(fmt::format(
          "the scrub found that its stored records are not those that were applied up to entry {}; "
          "they are served until the replicas can compare: {}",
          found.index.value(), proposed.error().message));
    }
    for (lease::Duration waited{0}; waited < kReportPause && damage == Damage::unheard;
         waited += kScrubLook) {
      if (!pause(kScrubLook) || health_.refuses.load()) return;
      damage = store_.comparison().damage(own);
    }
  }
  if (damage == Damage::own) {
    store_.distrust(fmt::format(
        "the scrub found that its stored records are not those that were applied up to entry {}",
        found.index.value()));
    return;
  }
  const std::string text = fmt::format(
      "the scrub found a difference at entry {} that another replica has found as well: this is a "
      "fault of the program and not of a disk. Please report it",
      found.index.value());
  health_.set_warning(text);
  spdlog::error("{}", text);
}

/// The log in its files.
void StateWatch::scrub_files() {
  const auto disk = storage::view_posix_disk(options_.log_dir);
  if (!disk) return spdlog::warn("the scrub of the log ended: {}", disk.error().message);
  std::uint64_t seen = 0;
  const auto checked = storage::check_segments(
      *disk.value(), [&, rate = pace(), began = coarse_now()](std::uint64_t bytes) {
        return pause_after(seen += bytes, rate, began);
      });
  if (!checked) {
    health_.scrub_errors.fetch_add(1);
    const std::string text = fmt::format(
        "the scrub found damage in the log: {}. A restart would refuse it: leasehold snapshot cuts "
        "off what the store has made durable; else remove this node and add it again",
        checked.error().message);
    health_.set_warning(text);
    spdlog::error("{}", text);
  }
}

}  // namespace leasehold::server
