// Many hosts with many groups in one process, on virtual time: real cores and real promises between
// processes; networks, disks and processors are numbers.
#pragma once

#include <leasehold/bench/fleet/fleet_host.h>
#include <leasehold/bench/fleet/plan.h>
#include <leasehold/wire/frame.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <vector>

namespace leasehold::bench {

/// What the hosts have done since the last look.
struct Traffic {
  std::uint64_t messages = 0;  ///< beats, their answers and messages of groups
  std::uint64_t frames = 0;    ///< what one turn of a host sends to another one
  std::uint64_t bytes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t elected = 0;  ///< groups
};

/// At one instant.
struct Sample {
  Duration at{0};
  std::size_t leased = 0;  ///< groups whose leader has a valid lease
  Traffic traffic;         ///< since the sample before
};

class Fleet {
 public:
  explicit Fleet(const Plan& plan);

  Duration now() const { return now_; }
  std::size_t groups() const { return leaders_.size(); }
  /// Lets time pass, and looks at all leases each `every`.
  void run(Duration span, Duration every, std::vector<Sample>& samples);
  Sample look();
  /// The process of a host ends, and is known to have ended if `known`, a millisecond later.
  void kill(std::size_t host, bool known);
  /// Its next process.
  void start(std::size_t host);
  /// Its processor needs so many times what it needs otherwise.
  void slow_down(std::size_t host, unsigned times) { hosts_[host]->slow_down(times); }
  std::size_t zone_of(std::size_t host) const { return host % plan_.zones; }
  std::size_t led_by(std::size_t host) const;
  std::size_t hosts() const { return hosts_.size(); }

  // Of the hosts.

  const Plan& plan() const { return plan_; }
  Traffic& traffic() { return traffic_; }
  /// A turn of a host is due; it takes the earliest of those that were asked for.
  void wake(std::size_t host, Duration at);
  void send(std::size_t from, std::size_t to, Duration leaves, std::vector<Letter> letters);
  void disk_ends(std::size_t host, std::uint64_t life, Duration at);
  /// The replica at a host shows a lease of the group, or none any more.
  void shows(std::uint32_t group, std::size_t host, bool lease);

 private:
  enum class Kind : std::uint8_t { turn, arrival, sync, death };
  struct Happening {
    Duration at{0};
    std::uint64_t number = 0;
    Kind kind = Kind::turn;
    std::size_t host = 0;
    std::size_t other = 0;   ///< who sent, or who has ended
    std::uint64_t life = 0;  ///< of the host, when that was asked for; or of the one that has ended
    std::shared_ptr<std::vector<Letter>> letters{};

    friend bool operator>(const Happening& a, const Happening& b) {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };

  void place_groups();
  void add(Happening happening);
  void happen(Happening& happening);

  const Plan plan_;
  Duration now_{0};
  std::uint64_t next_number_ = 0;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue_;
  std::vector<std::unique_ptr<FleetHost>> hosts_;
  /// The instant of the turn that each host waits for.
  std::vector<Duration> turns_;
  /// By group: the host that shows a lease, or the number of hosts.
  std::vector<std::size_t> leaders_;
  Traffic traffic_;
  wire::SendBuffer encoded_;
};

}  // namespace leasehold::bench
