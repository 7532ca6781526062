#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/storage/private_folder.h>

#include <utility>

namespace leasehold::node {

namespace {

Result<std::uint64_t> find_cluster_id(const NodeOptions& options, const storage::Disk* disk) {
  const auto known = known_cluster_id(options, disk);
  if (!known.ok()) return known.error();
  if (known.value()) return *known.value();
  return ask_cluster_id(options);
}

}  // namespace

Result<Ground> find_ground(const NodeOptions& options,
                           const std::function<Result<raft::Index>()>& open_machine) {
  Ground ground;
  if (const auto usable = check_not_retired(options.data_dir); !usable.ok()) return usable.error();
  const auto restored = load_restored(options.data_dir);
  if (!restored.ok()) return restored.error();
  ground.restored = restored.value();
  std::unique_ptr<storage::Disk> disk;
  if (options.log_disk) {
    auto opened = options.log_disk();
    if (!opened.ok()) return opened.error();
    disk = std::move(opened).value();
  }
  const auto cluster_id = find_cluster_id(options, disk.get());
  if (!cluster_id.ok()) return cluster_id.error();
  ground.cluster_id = cluster_id.value();

  if (const auto made = storage::make_private_folder(options.data_dir); !made.ok()) {
    return made.error();
  }
  storage::SegmentLogOptions log_options;
  log_options.dir = options.data_dir + "/log";
  log_options.group = kGroup;
  log_options.cluster_id = ground.cluster_id;
  log_options.id = options.id;
  log_options.sync_times = options.sync_times;
  auto opened = disk != nullptr ? storage::SegmentLog::open(log_options, std::move(disk))
                                : storage::SegmentLog::open(log_options);
  if (!opened.ok()) return opened.error();
  ground.log = std::move(opened).value();
  storage::SegmentLog& log = *ground.log;
  const auto machine_durable = open_machine();
  if (!machine_durable.ok()) return machine_durable.error();

  if (!log.formed() && options.peers.empty()) {
    if (const auto may = may_join(options); !may.ok()) return may.error();
    const auto fits = check_new_log(options.data_dir, ground.restored, machine_durable.value());
    if (!fits.ok()) return fits.error();
    if (const auto joined = log.join(); !joined.ok()) return joined.error();
  }
  ground.members = log.confirmed_set();
  if (ground.members.empty()) {
    for (const Peer& peer : options.peers) {
      ground.members.push_back({peer.id, raft::Uuid{}, peer.address});
    }
  }
  if (log.formed()) ground.initial = log.take_initial_state();
  auto address = own_address(options, ground.initial, ground.members);
  if (!address.ok()) return address.error();
  ground.address = std::move(address).value();
  return ground;
}

}  // namespace leasehold::node
