// The disk of the data directory.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/server/front/duration.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace leasehold::doctor {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// The fastest devices, which keep their memory with a battery, need twice as much for a block.
constexpr lease::Duration kFastestDevice = microseconds(10);
/// Less than a turn of the fastest rotating disk.
constexpr lease::Duration kFastestTurn = milliseconds(1);
constexpr lease::Duration kSlowSync = milliseconds(20);
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
/// Two segments of the log, and what the store writes meanwhile.
constexpr std::uint64_t kFreeLeast = 128 * kMiB;
constexpr std::uint64_t kStoreSpare = 256 * kMiB;

constexpr std::array<std::string_view, 7> kGoodKinds = {"ext4", "ext3", "xfs",     "btrfs",
                                                        "f2fs", "zfs",  "bcachefs"};
constexpr std::array<std::string_view, 9> kFarKinds = {"nfs",  "nfs4", "cifs",      "smb3",  "9p",
                                                       "ceph", "afs",  "glusterfs", "lustre"};
constexpr std::array<std::string_view, 5> kUnsafeOptions = {"nobarrier", "barrier=0", "volatile",
                                                            "fsync_mode=nobarrier", "ro"};

template <std::size_t kSize>
bool among(const std::array<std::string_view, kSize>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string unsafe_option(const std::string& options) {
  for (const std::string_view option : kUnsafeOptions) {
    if (("," + options + ",").find(fmt::format(",{},", option)) != std::string::npos) {
      return std::string(option);
    }
  }
  return {};
}

Finding judge_kind(const DiskFacts& facts) {
  const char* const kName = "disk-kind";
  if (facts.kind.empty()) return skipped(kName, "the kernel does not show what the folder lies on");
  const std::string found = fmt::format("{} lies on {}", facts.folder, facts.kind);
  const char* const kMove = "put --data-dir on a disk of this machine, with ext4 or xfs";
  if (facts.kind == "tmpfs" || facts.kind == "ramfs") {
    return fault(kName, found + ": all that this node promised is gone after a reboot", kMove);
  }
  if (among(kFarKinds, facts.kind) || facts.kind.compare(0, 4, "fuse") == 0) {
    return fault(kName,
                 found +
                     ": its syncs and locks are another machine's or program's, which may lie "
                     "or give the lock away",
                 kMove);
  }
  if (const std::string option = unsafe_option(facts.options); !option.empty()) {
    return fault(
        kName, fmt::format("{}, mounted with {}: a sync does not make data durable", found, option),
        fmt::format("mount -o remount without {}, and correct /etc/fstab", option));
  }
  if (facts.kind == "overlay") {
    return warning(kName, found + ": it goes with its container",
                   "mount a volume at --data-dir (docker run -v, a volume of the pod)");
  }
  if (!among(kGoodKinds, facts.kind)) {
    return warning(kName, found + ", which nobody has tried Leasehold on", kMove);
  }
  return fine(kName, found);
}

Finding judge_error(const char* name, const DiskFacts& facts, const Error& error) {
  if (error.code == ErrorCode::overloaded) {
    return fault(name, error.message,
                 fmt::format("free some space on the disk of {}, or a quota", facts.folder));
  }
  return fault(
      name, error.message,
      fmt::format("make {} writable for this user, and look for errors of its disk (dmesg)",
                  facts.folder));
}

/// `rotating`: the kernel says so, and not of a disk that its host makes up.
Finding judge_speed(const lease::Timing& timing, const SyncFacts& sync, bool rotating) {
  const char* const kName = "disk-sync";
  const std::string found =
      fmt::format("{} syncs of 4 KiB: p50 {}, p99 {}, longest {}", sync.syncs, short_text(sync.p50),
                  short_text(sync.p99), short_text(sync.longest));
  if (sync.p50 < kFastestDevice) {
    return fault(kName,
                 found +
                     ": no device answers so fast, so a sync does not reach one, and a power cut "
                     "takes what was acknowledged",
                 "find what answers in its place (a library before the program, a cache of the "
                 "host: cache=unsafe, a file system in memory), and put --data-dir elsewhere");
  }
  if (rotating && sync.p50 < kFastestTurn) {
    return warning(kName, found + ": a rotating disk is not so fast, so a cache answers",
                   "hdparm -W 0 on its device, unless a battery keeps that cache");
  }
  const lease::Duration needed = rounded_up(sync.longest * 3);
  const std::string cure = fmt::format(
      "a faster disk, or one that nobody else uses; or --election-timeout {} (leasehold "
      "settings set election-timeout={})",
      server::format_duration(needed), server::format_duration(needed));
  if (sync.longest >= timing.election_timeout) {
    return fault(kName,
                 fmt::format("{}: a leader whose disk takes longer than the election timeout, {}, "
                             "gives its leadership up",
                             found, server::format_duration(timing.election_timeout)),
                 cure);
  }
  if (sync.longest * 3 > timing.election_timeout) {
    return warning(kName,
                   fmt::format("{}: the election timeout, {}, is less than three times the longest",
                               found, server::format_duration(timing.election_timeout)),
                   cure);
  }
  if (sync.p50 > kSlowSync) {
    return warning(kName, found + ": each write waits so long",
                   "a faster disk, or one that nobody else uses");
  }
  return fine(kName, found);
}

Finding judge_space(const server::ServeSettings& settings, const DiskFacts& facts) {
  const char* const kName = "disk-space";
  if (!facts.free_bytes) return skipped(kName, "the system does not say how much space is left");
  const auto& limits = settings.node.limits;
  const std::uint64_t log =
      settings.groups * (limits.log_tail_bytes + limits.log_cut_bytes) + kStoreSpare;
  const std::string found =
      fmt::format("{} are free; the log may take {}", size_text(*facts.free_bytes), size_text(log));
  const std::string cure = fmt::format(
      "free some space on the disk of {}, or a larger disk; or less "
      "for --log-tail and --log-cut",
      facts.folder);
  if (*facts.free_bytes < kFreeLeast) {
    return fault(kName, found + ": a node with a full disk takes no writes", cure);
  }
  if (*facts.free_bytes < log) return warning(kName, found, cure);
  return fine(kName, found);
}

}  // namespace

Findings judge_disk(const server::ServeSettings& settings, const Facts& facts) {
  const DiskFacts& disk = facts.disk;
  Findings all = {judge_kind(disk)};
  const char* const kName = "disk-sync";
  if (!disk.made) {
    all.push_back(
        skipped(kName, fmt::format("{} does not exist yet: mkdir -m 700, to have it measured",
                                   settings.data_dir)));
  } else if (!disk.sync) {
    all.push_back(skipped(kName, "left out"));
  } else if (disk.sync->error && disk.sync->error->code != ErrorCode::overloaded) {
    all.push_back(judge_error(kName, disk, *disk.sync->error));
  } else if (disk.sync->syncs > 0) {
    all.push_back(judge_speed(timing_in_force(settings, facts), *disk.sync,
                              disk.rotating && !facts.machine.virtual_machine));
  } else {
    all.push_back(skipped(kName, "no sync was measured"));
  }
  const bool full =
      disk.sync && disk.sync->error && disk.sync->error->code == ErrorCode::overloaded;
  all.push_back(full ? judge_error("disk-space", disk, *disk.sync->error)
                     : judge_space(settings, disk));
  return all;
}

}  // namespace leasehold::doctor
