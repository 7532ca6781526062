#include <leasehold/base/assert.h>
#include <leasehold/node/node_snapshots.h>
#include <leasehold/node/random_word.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/tls/digest.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace leasehold::node {
namespace {

std::string folder_of(const std::string& data_dir) {
  return data_dir + "/snapshot";
}
std::string incoming_in(const std::string& folder) {
  return folder + "/incoming";
}
std::string complete_in(const std::string& folder) {
  return folder + "/complete";
}

Result<void> rename_in(const std::string& folder, const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) {
    return Error{ErrorCode::io, fmt::format("cannot rename {}: {}", from, error.message())};
  }
  return storage::sync_folder(folder);
}

/// Blocks that are copied in one task: others of the line, and other lines, have their turn behind
/// it.
constexpr int kFillBlocks = 4;
/// Copied without an answer. A slow disk needs seconds for it; the leader ends a sending without
/// progress after Limits::snapshot_patience. Each answer may cost a window of bytes that were not
/// necessary.
constexpr std::uint64_t kFillAnswerBytes = 64U << 20U;

/// `incoming`, as the state machine sees it.
class ArrivingFile final : public replica::ArrivingSnapshot {
 public:
  explicit ArrivingFile(SnapshotFile& file) : file_(file) {}
  raft::Index last() const override { return file_.head().id.last.index; }
  std::uint64_t size() const override { return file_.head().size; }
  std::uint64_t received() const override { return file_.received(); }
  Result<void> append(std::string_view data) override { return file_.append(data); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    return file_.read(offset, to, bytes);
  }

 private:
  SnapshotFile& file_;
};

/// Never 0.
std::uint64_t random_tag() {
  const std::uint64_t tag = random_word();
  return tag == 0 ? 1 : tag;
}

}  // namespace

GroupSnapshots::GroupSnapshots(WorkPool& pool, replica::StateMachine& machine,
                               const std::string& data_dir, std::uint64_t cluster_id,
                               raft::Index durable, Post post)
    : machine_(machine),
      folder_(folder_of(data_dir)),
      cluster_id_(cluster_id),
      durable_at_start_(durable),
      post_(std::move(post)),
      filler_(machine, tls::sha256),
      line_(pool) {
  add([this] { recover(); });
}

void GroupSnapshots::add(Task task) {
  line_.add([this, task = std::move(task)] {
    if (!failed_) task();
  });
}

void GroupSnapshots::fail(const Error& error) {
  failed_ = true;
  post_(replica::StorageFailed{error});
}

// ---- The state machine's ----

void GroupSnapshots::make_durable() {
  add([this] { post_(replica::MachineDurable{machine_.make_durable()}); });
}

void GroupSnapshots::take() {
  add([this] {
    Result<std::shared_ptr<const replica::Snapshot>> snapshot = machine_.take_snapshot();
    if (!snapshot.ok()) {
      post_(replica::SnapshotTaken{snapshot.error()});
      return;
    }
    const replica::TakenSnapshot taken{snapshot.value()->last(), random_tag(),
                                       snapshot.value()->size()};
    taken_.emplace(taken.tag, std::move(snapshot).value());
    post_(replica::SnapshotTaken{taken});
  });
}

void GroupSnapshots::read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
                          std::size_t bytes) {
  add([this, token, tag, offset, bytes] {
    const auto found = taken_.find(tag);
    LEASEHOLD_ASSERT(found != taken_.end());
    std::string data(bytes, '\0');
    const Result<void> done = found->second->read(offset, data.data(), bytes);
    if (done.ok()) {
      post_(replica::SnapshotRead{token, Bytes(std::move(data))});
    } else {
      post_(replica::SnapshotRead{token, done.error()});
    }
  });
}

void GroupSnapshots::release(std::uint64_t tag) {
  add([this, tag] { taken_.erase(tag); });
}

// ---- What arrives ----

Result<std::shared_ptr<const StagedSnapshot>> GroupSnapshots::complete(
    const std::string& data_dir) {
  const std::string path = complete_in(folder_of(data_dir));
  Result<std::unique_ptr<SnapshotFile>> file = SnapshotFile::open(path);
  if (!file.ok()) return file.error();
  if (!file.value()->complete()) {
    return Error{ErrorCode::corrupted,
                 fmt::format("{} is damaged behind byte {}", path, file.value()->received())};
  }
  return std::shared_ptr<const StagedSnapshot>(
      std::make_shared<StagedSnapshot>(std::move(file).value()));
}

Result<void> GroupSnapshots::install_at_start(const std::string& data_dir, raft::LogId base,
                                              replica::StateMachine& machine) {
  const auto staged = complete(data_dir);
  if (staged.ok() && staged.value()->id().last == base) {
    const Result<void> done = machine.install_snapshot(*staged.value());
    if (!done.ok()) return done;
    if (machine.durable_index() >= base.index) return {};
  }
  const std::string why =
      staged.ok() ? "the one that is there does not fit" : staged.error().message;
  return Error{ErrorCode::corrupted,
               fmt::format("{}: the log begins behind entry {}, but the state machine holds only "
                           "{}, and no snapshot fills the gap ({}): they do not belong together, "
                           "or the state machine's files were lost. Restore both from one backup, "
                           "or remove this node from the group and add it again",
                           data_dir, base.index.value(), machine.durable_index().value(), why)};
}

/// Handles what an earlier process left. A complete snapshot that was not installed when that
/// process ended waits to be offered again.
void GroupSnapshots::recover() {
  std::error_code error;
  if (!std::filesystem::exists(folder_, error)) return;  // the first snapshot makes it
  if (auto made = storage::make_private_folder(folder_); !made.ok()) {
    fail(made.error());
    return;
  }
  if (!std::filesystem::exists(complete_in(folder_), error)) return;
  const Result<std::unique_ptr<SnapshotFile>> file = SnapshotFile::open(complete_in(folder_));
  const bool of_use = file.ok() && file.value()->head().id.last.index > durable_at_start_;
  if (!of_use) {
    remove(complete_in(folder_));
  } else if (const auto renamed = rename_in(folder_, complete_in(folder_), incoming_in(folder_));
             !renamed.ok()) {
    fail(renamed.error());
  }
}

void GroupSnapshots::store(const raft::ReceivedChunk& received) {
  add([this, received] {
    const raft::SnapshotChunk& chunk = received.chunk;
    Place place = store_now(chunk);
    if (failed_) return;
    raft::Core::StoredChunk stored;
    stored.from = received.from;
    stored.request_term = chunk.term;
    stored.round = chunk.round;
    stored.id = chunk.id;
    if (!place.fills) {
      answer(stored, std::move(place));
      return;
    }
    waiting_.push_back(stored);
    if (!std::exchange(filling_, true)) add([this] { fill(); });
  });
}

/// Those that wait come first: they are of incoming_, or of what became of it just now.
void GroupSnapshots::answer(raft::Core::StoredChunk stored, Place place) {
  if (incoming_) {
    answer_waiting({incoming_->received(), false, {}, {}});
  } else {
    answer_waiting({place.offset, place.refused, {}, {}});
  }
  stored.refused = place.refused;
  stored.offset = place.offset;
  post_(replica::ChunkStored{stored, std::move(place.complete), std::exchange(copied_, 0)});
}

/// `place` is that of their snapshot.
void GroupSnapshots::answer_waiting(Place place) {
  since_answer_ = 0;
  std::vector<raft::Core::StoredChunk> waiting = std::exchange(waiting_, {});
  for (raft::Core::StoredChunk& stored : waiting) {
    const bool last = &stored == &waiting.back();
    stored.refused = place.refused;
    stored.offset = place.offset;
    post_(replica::ChunkStored{stored, last ? std::move(place.complete) : std::nullopt,
                               std::exchange(copied_, 0)});
  }
}

GroupSnapshots::Place GroupSnapshots::store_now(const raft::SnapshotChunk& chunk) {
  Place place;
  if (complete_) {
    place.refused = *complete_ != chunk.id;
    place.offset = place.refused ? 0 : chunk.size;
    return place;
  }
  Result<Place> added = add_chunk(chunk);
  return added.ok() ? std::move(added).value() : give_up(added.error());
}

/// What arrived cannot be stored.
GroupSnapshots::Place GroupSnapshots::give_up(const Error& error) {
  Place place;
  close_incoming();
  if (error.code != ErrorCode::overloaded) {
    fail(error);
    return place;
  }
  // Frees the space: the log needs it more.
  remove(incoming_in(folder_));
  place.refused = true;
  return place;
}

Result<GroupSnapshots::Place> GroupSnapshots::add_chunk(const raft::SnapshotChunk& chunk) {
  const Result<bool> opened = open_incoming(chunk);
  if (!opened.ok()) return opened.error();
  if (!opened.value()) return Place{};
  if (chunk.offset == incoming_->received()) {
    if (const auto added = incoming_->append(chunk.data.view()); !added.ok()) return added.error();
  }
  return place_now();
}

/// Of incoming_, which is finished when all of it is there.
Result<GroupSnapshots::Place> GroupSnapshots::place_now() {
  Place place;
  place.offset = incoming_->received();
  if (!incoming_->complete()) {
    place.fills = filler_.wants(ArrivingFile(*incoming_));
    return place;
  }
  const raft::Membership membership = incoming_->head().membership;
  if (const auto finished = finish(); !finished.ok()) return finished.error();
  place.complete = membership;
  return place;
}

/// One task of the copying. It goes on only while a chunk waits: a node whose disk is full takes
/// no more of them, and the end of the snapshot is said in an answer.
void GroupSnapshots::fill() {
  filling_ = false;
  if (!incoming_ || waiting_.empty()) return;
  const Result<void> filled = fill_some();
  Result<Place> now = filled.ok() ? place_now() : Result<Place>(filled.error());
  Place place = now.ok() ? std::move(now).value() : give_up(now.error());
  if (failed_) return;
  if (place.fills && since_answer_ < kFillAnswerBytes) {
    filling_ = true;
    add([this] { fill(); });
  } else {
    answer_waiting(std::move(place));
  }
}

Result<void> GroupSnapshots::fill_some() {
  ArrivingFile arriving(*incoming_);
  for (int blocks = 0; blocks < kFillBlocks && filler_.wants(arriving); ++blocks) {
    const Result<std::uint64_t> copied = filler_.copy(arriving);
    if (!copied.ok()) return copied.error();
    copied_ += copied.value();
    since_answer_ += copied.value();
  }
  return {};
}

void GroupSnapshots::close_incoming() {
  incoming_.reset();
  filler_.reset();
}

/// Makes incoming_ the file of the chunk's snapshot. False: there is none, and the chunk does not
/// begin one.
Result<bool> GroupSnapshots::open_incoming(const raft::SnapshotChunk& chunk) {
  if (!std::exchange(looked_, true)) {
    Result<std::unique_ptr<SnapshotFile>> left = SnapshotFile::open(incoming_in(folder_));
    if (left.ok()) {
      incoming_ = std::move(left).value();
    } else if (left.error().code == ErrorCode::io) {
      return left.error();
    }
  }
  const SnapshotHead head{cluster_id_, chunk.id, chunk.membership, chunk.size};
  if (incoming_ && incoming_->head() == head) return true;
  if (chunk.offset != 0) return false;
  // Another one, or a damaged one.
  if (incoming_) answer_waiting({incoming_->received(), false, {}, {}});
  close_incoming();
  remove(incoming_in(folder_));
  if (auto folder = storage::make_private_folder(folder_); !folder.ok()) return folder.error();
  Result<std::unique_ptr<SnapshotFile>> made = SnapshotFile::create(incoming_in(folder_), head);
  if (!made.ok()) return made.error();
  incoming_ = std::move(made).value();
  return true;
}

Result<void> GroupSnapshots::finish() {
  const raft::SnapshotId id = incoming_->head().id;
  if (const auto synced = incoming_->sync(); !synced.ok()) return synced;
  close_incoming();
  if (const auto renamed = rename_in(folder_, incoming_in(folder_), complete_in(folder_));
      !renamed.ok()) {
    return renamed;
  }
  complete_ = id;
  return {};
}

void GroupSnapshots::discard() {
  add([this] {
    complete_.reset();
    remove(complete_in(folder_));
  });
}

void GroupSnapshots::remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace leasehold::node
