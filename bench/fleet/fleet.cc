#include <leasehold/base/random.h>
#include <leasehold/bench/fleet/fleet.h>
#include <leasehold/wire/codec.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20U;
constexpr std::uint64_t kDeathIsKnownAfter = 1'000'000;  // ns
/// Of the connection, for each frame of a turn: TCP, IP, and the acknowledgement of it.
constexpr std::uint64_t kPacketBytes = 106;

std::uint64_t bytes_of(const Letter& letter, std::size_t from, std::size_t to,
                       wire::SendBuffer& out) {
  wire::PeerMessage message;
  if (const auto* of_group = std::get_if<raft::Message>(&letter.what)) {
    message.group = raft::GroupId(letter.group + std::uint64_t{1});
    message.payload = *of_group;
    message.from = raft::NodeId(from + 1);
    message.to = raft::NodeId(to + 1);
  } else if (const auto* beat = std::get_if<raft::ProcessBeat>(&letter.what)) {
    message.payload = *beat;
  } else {
    message.payload = std::get<raft::ProcessBeatReply>(letter.what);
  }
  out.clear();
  const auto encoded = wire::encode_message(message, kFrameBytesMax, out);
  LEASEHOLD_ASSERT(encoded.ok());
  return encoded.value();
}

}  // namespace

Fleet::Fleet(const Plan& plan) : plan_(plan) {
  for (std::size_t i = 0; i < plan_.hosts; ++i) {
    hosts_.push_back(std::make_unique<FleetHost>(*this, i));
  }
  turns_.assign(plan_.hosts, Duration::max());
  leaders_.assign(plan_.groups, plan_.hosts);
  place_groups();
}

/// One replica in each of three zones, at hosts that are drawn.
void Fleet::place_groups() {
  Random random(plan_.seed);
  std::vector<std::vector<std::size_t>> zones(plan_.zones);
  for (std::size_t host = 0; host < plan_.hosts; ++host) zones[zone_of(host)].push_back(host);
  for (std::uint32_t group = 0; group < plan_.groups; ++group) {
    raft::Membership membership;
    const std::size_t first = random.below(plan_.zones);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<std::size_t>& zone = zones[(first + i) % plan_.zones];
      places.push_back(zone[random.below(zone.size())]);
    }
    std::sort(places.begin(), places.end());
    for (const std::size_t host : places) {
      const raft::NodeId id(host + 1);
      membership.members.push_back(
          {id, raft::Uuid{host + 1, host + 1}, fmt::format("h{}:1", host)});
      membership.voters.push_back(id);
    }
    for (const std::size_t host : places) hosts_[host]->add_group(group, membership);
  }
}

void Fleet::add(Happening happening) {
  happening.number = next_number_++;
  queue_.push(std::move(happening));
}

void Fleet::run(Duration span, Duration every, std::vector<Sample>& samples) {
  const Duration end = now_ + span;
  for (Duration next = now_ + every; next <= end; next += every) {
    while (!queue_.empty() && queue_.top().at <= next) {
      Happening happening = queue_.top();
      queue_.pop();
      now_ = happening.at;
      happen(happening);
    }
    now_ = next;
    samples.push_back(look());
  }
}

Sample Fleet::look() {
  Sample sample;
  sample.at = now_;
  for (std::uint32_t group = 0; group < leaders_.size(); ++group) {
    const std::size_t host = leaders_[group];
    if (host < hosts_.size() && hosts_[host]->holds_lease(group, now_)) ++sample.leased;
  }
  sample.traffic = std::exchange(traffic_, {});
  return sample;
}

void Fleet::happen(Happening& happening) {
  FleetHost& host = *hosts_[happening.host];
  switch (happening.kind) {
    case Kind::turn:
      if (turns_[happening.host] != happening.at) return;  // it had an earlier one
      turns_[happening.host] = Duration::max();
      host.turn(now_);
      return;
    case Kind::arrival:
      host.arrive(happening.other, std::move(*happening.letters));
      wake(happening.host, now_);
      return;
    case Kind::sync:
      if (happening.life != host.life() || !host.up()) return;
      host.synced();
      wake(happening.host, now_);
      return;
    case Kind::death:
      host.ended(happening.other, happening.life);
      wake(happening.host, now_);
      return;
  }
}

void Fleet::wake(std::size_t host, Duration at) {
  if (turns_[host] <= at) return;
  turns_[host] = at;
  add({at, 0, Kind::turn, host});
}

void Fleet::send(std::size_t from, std::size_t to, Duration leaves, std::vector<Letter> letters) {
  traffic_.messages += letters.size();
  ++traffic_.frames;
  traffic_.bytes += kPacketBytes;
  for (const Letter& letter : letters) {
    traffic_.bytes += bytes_of(letter, from, to, encoded_);
  }
  Happening happening{leaves + plan_.way, 0, Kind::arrival, to, from};
  happening.letters = std::make_shared<std::vector<Letter>>(std::move(letters));
  add(std::move(happening));
}

void Fleet::disk_ends(std::size_t host, std::uint64_t life, Duration at) {
  add({at, 0, Kind::sync, host, 0, life});
}

void Fleet::shows(std::uint32_t group, std::size_t host, bool lease) {
  std::size_t& leader = leaders_[group];
  if (lease) {
    leader = host;
  } else if (leader == host) {
    leader = hosts_.size();
  }
}

std::size_t Fleet::led_by(std::size_t host) const {
  return static_cast<std::size_t>(std::count(leaders_.begin(), leaders_.end(), host));
}

void Fleet::kill(std::size_t host, bool known) {
  const std::uint64_t life = hosts_[host]->life();
  hosts_[host]->kill();
  turns_[host] = Duration::max();
  if (!known) return;
  for (std::size_t other = 0; other < hosts_.size(); ++other) {
    if (other == host) continue;
    add({now_ + Duration(kDeathIsKnownAfter), 0, Kind::death, other, host, life});
  }
}

void Fleet::start(std::size_t host) {
  hosts_[host]->start(now_);
}

}  // namespace leasehold::bench
