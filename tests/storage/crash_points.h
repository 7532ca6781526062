// All states in which a crash could leave a disk.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/tests/storage/crash_disk.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::storage::testing {

/// Walks through a history and shows each state that a crash could leave: everything that was
/// synced, of each sector that was not any of its versions, and each file that was removed since
/// the folder was synced, or not.
class CrashPoints {
 public:
  CrashPoints(const Image& before, std::vector<DiskEvent> events)
      : durable_(before), events_(std::move(events)) {}

  /// Calls `see(image, notes)` for each state; `notes` is the number of the newest note before the
  /// crash (`first_note` before all of them). Where there are too many, `limit` random ones, with
  /// all and none of the sectors among them.
  template <class See>
  void visit(Random& random, std::uint64_t first_note, std::size_t limit, See see) {
    std::uint64_t note = first_note;
    show(random, note, limit, see);
    for (const DiskEvent& event : events_) {
      if (event.kind == DiskEvent::Kind::create) {
        Image half = durable_;
        half[event.name + ".new"] = event.bytes.substr(0, event.bytes.size() / 2);
        see(half, note);
        durable_[event.name] = event.bytes;
        waiting_.erase(event.name);
        lingering_.clear();
      } else if (event.kind == DiskEvent::Kind::remove) {
        // The last writes of a file without a name do not matter.
        lingering_[event.name] = std::move(durable_.at(event.name));
        durable_.erase(event.name);
        waiting_.erase(event.name);
      } else if (event.kind == DiskEvent::Kind::note) {
        note = event.offset;
      } else if (event.kind == DiskEvent::Kind::write) {
        take(event);
      } else {
        for (const auto& sector : waiting_[event.name]) {
          put(durable_, event.name, sector.first, sector.second.back());
        }
        waiting_.erase(event.name);
      }
      show(random, note, limit, see);
    }
  }

  /// At the moment that visit() shows: what is certainly on the disk.
  const Image& durable() const { return durable_; }
  /// At that moment, with every write.
  Image cached() const {
    Image image = durable_;
    for (const auto& file : waiting_) {
      for (const auto& sector : file.second)
        put(image, file.first, sector.first, sector.second.back());
    }
    return image;
  }

 private:
  /// The versions of a sector that may have reached the disk, oldest first.
  using Sectors = std::map<std::uint64_t, std::vector<std::string>>;

  static void put(Image& image, const std::string& name, std::uint64_t sector,
                  const std::string& bytes) {
    image.at(name).replace(sector, bytes.size(), bytes);
  }

  void take(const DiskEvent& event) {
    Sectors& sectors = waiting_[event.name];
    const std::uint64_t end = event.offset + event.bytes.size();
    for (std::uint64_t at = event.offset / kSectorBytes * kSectorBytes; at < end;
         at += kSectorBytes) {
      auto& versions = sectors[at];
      std::string sector =
          versions.empty() ? durable_.at(event.name).substr(at, kSectorBytes) : versions.back();
      const std::uint64_t from = std::max(at, event.offset);
      const std::uint64_t to = std::min(at + sector.size(), end);
      sector.replace(from - at, to - from, event.bytes.substr(from - event.offset, to - from));
      versions.push_back(std::move(sector));
    }
  }

  template <class See>
  void show(Random& random, std::uint64_t note, std::size_t limit, See see) {
    std::vector<std::pair<std::string, std::uint64_t>> places;
    std::size_t states = 1;
    for (const auto& file : waiting_) {
      for (const auto& sector : file.second) {
        places.emplace_back(file.first, sector.first);
        states = std::min(states * (sector.second.size() + 1), limit + 1);
      }
    }
    for (std::size_t i = 0; i < lingering_.size(); ++i) states = std::min(states * 2, limit + 1);
    const bool all = states <= limit;
    for (std::size_t state = 0; state < std::min(states, limit); ++state) {
      Image image = durable_;
      std::size_t rest = state;
      for (const auto& place : places) {
        const auto& versions = waiting_.at(place.first).at(place.second);
        std::size_t version = 0;  // how many of the writes arrived
        if (all) {
          version = rest % (versions.size() + 1);
          rest /= versions.size() + 1;
        } else {
          version = state == 0   ? 0
                    : state == 1 ? versions.size()
                                 : static_cast<std::size_t>(random.below(versions.size() + 1));
        }
        if (version > 0) put(image, place.first, place.second, versions[version - 1]);
      }
      for (const auto& file : lingering_) {
        const bool stays = all ? rest % 2 == 1 : state == 0 || (state > 1 && random.chance(1, 2));
        rest /= 2;
        if (stays) image.insert(file);
      }
      see(image, note);
    }
  }

  Image durable_;
  std::map<std::string, Sectors> waiting_;
  Image lingering_;  ///< removed, but perhaps not durably
  std::vector<DiskEvent> events_;
};

}  // namespace leasehold::storage::testing
