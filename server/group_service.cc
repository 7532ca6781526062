#include <leasehold/base/assert.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/server/group_service.h>
#include <leasehold/server/host_cluster.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <filesystem>
#include <utility>

namespace leasehold::server {
namespace {

void tell_of_expired(std::size_t ended) {
  spdlog::info("{} lease{} ended: nobody has renewed {} in time", ended, ended == 1 ? "" : "s",
               ended == 1 ? "it" : "them");
}

std::string folder_of(const ServeSettings& settings, std::size_t number) {
  return number == 0 ? settings.data_dir : fmt::format("{}/groups/{}", settings.data_dir, number);
}

Backups::Options backup_options(const ServeSettings& settings, std::size_t number) {
  Backups::Options options;
  options.data_dir = folder_of(settings, number);
  options.cluster =
      number == 0 ? settings.node.cluster : name_of_group(settings.node.cluster, number);
  options.id = settings.node.id;
  options.timeout = settings.server.command_timeout;
  if (!settings.server.lease_reads) options.mode = raft::ReadMode::quorum;
  options.backups_max = settings.backups_max;
  options.notice = [](const std::string& text) { spdlog::info("{}", text); };
  return options;
}

StateWatch::Options state_watch_options(const ServeSettings& settings, std::size_t number,
                                        raft::NodeId replica) {
  StateWatch::Options options;
  options.id = replica;
  options.rebuild = "--data-dir " + settings.data_dir;
  if (number > 0) options.rebuild += fmt::format(" --group {}", number);
  if (number <= 1) options.log_dir = settings.data_dir + "/log";
  options.compare_interval = settings.compare_interval;
  options.scrub_interval = settings.scrub_interval;
  options.timeout = settings.server.command_timeout;
  return options;
}

}  // namespace

GroupService::GroupService(const ServeSettings& settings, std::size_t number, raft::NodeId replica,
                           Failed failed)
    : settings_(settings),
      number_(number),
      replica_(replica),
      data_dir_(folder_of(settings, number)),
      failed_(std::move(failed)) {}

Result<replica::StateMachine*> GroupService::open_store(std::uint64_t cluster_id,
                                                        std::shared_ptr<kv::RecordCache> cache) {
  LEASEHOLD_ASSERT(!store_);
  kv::RocksdbStore::Options options;
  options.dir = data_dir_ + "/state";
  if (settings_.node.witness) {
    if (std::filesystem::exists(options.dir)) {
      return Error{ErrorCode::invalid_argument,
                   options.dir +
                       " is there: this directory is of a member with a state, which cannot become "
                       "a witness. Remove it from the group, and start a witness with an empty "
                       "directory"};
    }
    // No command is ever applied to it, and no client can read it.
    store_ = std::make_unique<kv::MemoryStore>();
    return store_.get();
  }
  options.cluster_id = cluster_id;
  options.id = settings_.node.id;
  if (number_ > 0) options.ids_above = (number_ - 1) * kv::kIdsOfGroup;
  options.cache = std::move(cache);
  options.events = settings_.events;
  options.on_failure = [this](Error error) { failed_(std::move(error)); };
  options.on_full = [this](bool full) { say_space(full); };
  auto store = kv::RocksdbStore::open(std::move(options));
  if (!store) return store.error();
  on_disk_ = store.value().get();
  store_ = std::move(store).value();
  return store_.get();
}

/// A thread of the store.
void GroupService::say_space(bool full) {
  full_.store(full);
  if (node::Group* const group = group_.load()) group->machine_space(full);
  if (full) {
    spdlog::warn("the store found no space in {}/state: what is committed waits; free some space",
                 data_dir_);
  } else {
    spdlog::info("the disk of {}/state has space again", data_dir_);
  }
}

void GroupService::begin(node::Group& group, ServerState& state) {
  group_.store(&group);
  // Else it was said to nobody.
  if (full_.load()) group.machine_space(true);
  state_ = &state;
  group.on_failure([this](Error error) { failed_(std::move(error)); });
  const lease::Duration timeout = settings_.server.command_timeout;
  keeper_.emplace(group.clock(),
                  [this](std::uint64_t cursor) { return store_->lease_changes(cursor); });
  sessions_.emplace(group, *store_, settings_.session_idle_max, timeout);
  leases_.emplace(group, *keeper_, timeout, tell_of_expired);
  trace_.emplace(group);
  if (on_disk_ == nullptr) return;
  backups_.emplace(group, *on_disk_, backup_options(settings_, number_));
  states_.emplace(group, *on_disk_, health_, state,
                  state_watch_options(settings_, number_, replica_));
}

ServedGroup GroupService::served() {
  ServedGroup served{*group_, *store_, health_, &*keeper_};
  served.sessions = [this] { return sessions_->open(); };
  served.trace = trace_->calls();
  if (!backups_) return served;
  served.backups.write = [this](std::string_view name, BackupWanted wanted,
                                const Backups::Done& done) { backups_->start(name, wanted, done); };
  served.backups.read = [this](std::string_view name, std::uint64_t offset) {
    return backups_->read(name, offset);
  };
  served.backups.progress = [this] { return backups_->progress(); };
  return served;
}

void GroupService::look() {
  sessions_->look();
  leases_->look();
  trace_->look();
  if (states_) states_->look();
}

void GroupService::look_at_leases() {
  leases_->look();
}

Result<void> GroupService::empty_store() {
  return on_disk_ != nullptr ? on_disk_->clear() : Result<void>();
}

void GroupService::serve_as(raft::NodeId replica) {
  replica_ = replica;
  if (!states_) return;
  states_->stop();
  states_.emplace(*group_.load(), *on_disk_, health_, *state_,
                  state_watch_options(settings_, number_, replica_));
}

void GroupService::interrupt() {
  if (on_disk_ != nullptr) on_disk_->interrupt();
}

void GroupService::stop() {
  if (states_) states_->stop();
  if (backups_) backups_->stop();
}

}  // namespace leasehold::server
