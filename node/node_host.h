// A host: a loop with many groups, which share a log and their promises. Not an interface for
// users.
#pragma once

#include <leasehold/node/host.h>
#include <leasehold/node/node_group.h>
#include <leasehold/node/node_links.h>
#include <leasehold/node/node_loop.h>
#include <leasehold/replica/places.h>
#include <leasehold/replica/process_driver.h>
#include <leasehold/replica/progress_watch.h>
#include <leasehold/storage/shared_log.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {

/// What one replica needs of the connections between hosts: members are known by the numbers of
/// its group, hosts by theirs.
class ReplicaLinks final : public Links, public net::Transport {
 public:
  /// `directory_of`: of a host that was met.
  using DirectoryOf = std::function<std::optional<raft::Uuid>(const net::PeerAddress& host)>;

  ReplicaLinks(raft::NodeId self, Loop& loop, const replica::Places& places,
               DirectoryOf directory_of)
      : self_(self), loop_(loop), places_(places), directory_of_(std::move(directory_of)) {}

  void send(raft::NodeId to, wire::PeerMessage message) override;

  // The connections are the host's, and so is what it says of itself.
  void describe(const std::string&, raft::LogId) override {}
  void set_peer(const net::PeerAddress&) override {}
  std::vector<net::PeerAddress> peers() const override { return {}; }
  void dismiss_peer(raft::NodeId, const wire::Refusal&) override {}
  std::optional<raft::LogId> known_membership(raft::NodeId) const override { return {}; }
  void introduce(const MemberEdit& added, std::function<void(Result<wire::Hello>)> done) override;
  std::optional<std::uint32_t> wire_version(raft::NodeId member) const override;
  bool connected(raft::NodeId member) const override;
  net::PeerProofs proofs(raft::NodeId member) const override;

 private:
  const raft::NodeId self_;
  Loop& loop_;
  const replica::Places& places_;
  DirectoryOf directory_of_;
};

/// The promises of the process, as one group of it sees them.
class GroupPromises final : public raft::SharedPromises {
 public:
  /// `remembered`: the longest of all. A group knows a holder by a number that only its log
  /// explains.
  GroupPromises(raft::SharedPromises& process, lease::Duration remembered)
      : process_(process), remembered_(remembered) {}

  const lease::Support* support_of(const raft::Uuid& holder) const override {
    return process_.support_of(holder);
  }
  void rely(const raft::Uuid& holder, raft::PromiseInstant now) override {
    process_.rely(holder, now);
  }
  lease::Duration remembered(raft::NodeId) const override { return remembered_; }
  const lease::Beats& beats() const override { return process_.beats(); }
  const lease::Supporter* supporter(const raft::Uuid& member) const override {
    return process_.supporter(member);
  }
  raft::LeaseClassId join(const raft::LeaseBasis& basis, raft::HolderInstant now) override {
    return process_.join(basis, now);
  }
  const raft::LeaseClass& lease_class(raft::LeaseClassId id) const override {
    return process_.lease_class(id);
  }
  bool healthy() const override { return process_.healthy(); }
  bool take_place(raft::GroupId group, raft::PromiseInstant now) override {
    return process_.take_place(group, now);
  }

 private:
  raft::SharedPromises& process_;
  const lease::Duration remembered_;
};

class HostShell final : public Host, private replica::SupportStore {
 public:
  HostShell(HostOptions options, const lease::Clock& clock, replica::Observer& observer)
      : options_(std::move(options)),
        disk_(options_.timing.election_timeout),
        loop_({options_.deputy, options_.appliers, "lh-host", options_.io_context}, clock,
              observer) {}
  ~HostShell() override { stop(); }  // NOLINT(bugprone-exception-escape): only without memory

  Result<void> start();

  Result<Group*> open_group(const GroupOptions& options, replica::StateMachine& machine,
                            replica::Observer& observer) override;
  std::vector<raft::GroupId> stored_groups() const override;
  Result<void> close_group(raft::GroupId group) override;
  Result<void> remove_group(raft::GroupId group, raft::NodeId replica) override;
  Result<void> set_hosts(const std::vector<Peer>& hosts) override;
  Result<void> set_peer_security(const net::PeerSecurity& security) override;
  void status(std::function<void(HostStatus)> done) override;
  std::uint64_t cluster_id() const override;
  void stop() override;

 private:
  struct Seat {
    Seat(HostShell& host, const GroupOptions& options, replica::Observer& observer);

    replica::Places places;
    ReplicaLinks links;
    GroupPromises promises;
    const raft::NodeId replica;
    std::vector<Placement> initial;
    GroupShell shell;
    /// Ends first: it calls the shell until then.
    std::unique_ptr<storage::GroupLog> log;
  };

  // Any thread.
  void on_loop(const std::function<void()>& task);
  std::string folder_of(raft::GroupId group) const;
  std::string address_of(raft::NodeId host) const;
  /// Another host that was there before it may look connected for a while.
  bool last_at(const net::PeerAddress& host) const;
  void name_host(const Peer& host);
  std::vector<raft::Member> members_of(const std::vector<Placement>& placements) const;
  // Under one_at_a_time_.
  Result<void> prepare(Seat& seat, const GroupOptions& options, replica::StateMachine& machine);
  Result<void> remove_leftovers(raft::GroupId group) const;
  /// Lets the lock go while it waits for the state machine.
  void close(std::unique_lock<std::mutex>& one, raft::GroupId group);
  Result<std::unique_ptr<Seat>> make_seat(const GroupOptions& options,
                                          replica::StateMachine& machine,
                                          replica::Observer& observer);
  // The loop's thread.
  void let_in();
  void remember(std::vector<raft::RememberedSupport> supports, std::uint64_t write) override;
  net::TcpCallbacks policy();
  Result<void> judge_host(raft::NodeId host, const raft::Uuid& directory) const;
  void met(raft::NodeId host, const raft::Uuid& directory);
  raft::NodeId host_of(const raft::Uuid& directory) const;
  std::optional<raft::Uuid> directory_of(const net::PeerAddress& host) const;
  void tell_met(Seat& seat);
  HostStatus make_status();

  const HostOptions options_;
  std::uint64_t generation_ = 0;  ///< of the backup that the directory was restored from
  net::TcpCallbacks policy_;
  std::unique_ptr<storage::SharedLog> log_;
  lease::Duration remembered_{0};  ///< the longest that an earlier process has promised
  std::map<raft::Uuid, raft::RememberedSupport> supports_;
  /// Of the log. While it hangs no group that is led here commits anything.
  replica::ProgressWatch disk_;
  Loop loop_;
  /// Of the hosts that were met since the process began: the directory and the number. Of one that
  /// was wiped meanwhile only the directory that it has now.
  std::map<raft::Uuid, raft::NodeId> hosts_;
  /// Held while a group is opened, closed or removed, and while the host stops; but not while a
  /// state machine is at work, which may take as long as it likes.
  mutable std::mutex one_at_a_time_;
  /// Under one_at_a_time_: their state machines are waited for.
  std::set<raft::GroupId> closing_;
  std::condition_variable closed_;
  /// Of all groups that were opened, and not removed since: the replica. Under one_at_a_time_.
  std::map<raft::GroupId, raft::NodeId> opened_;
  mutable std::mutex mutex_;
  /// Of all hosts. Under mutex_.
  std::map<raft::NodeId, std::string> addresses_;
  /// At each address: the host that was named last. Under mutex_.
  std::map<std::string, raft::NodeId> last_at_;
  /// Of groups that were opened, until the loop's next turn. Under mutex_.
  std::vector<std::unique_ptr<Seat>> entering_;
  /// Under mutex_, and changed on the loop's thread only.
  std::map<raft::GroupId, std::unique_ptr<Seat>> seats_;
  /// Closed ones, to which a caller may still come. Under one_at_a_time_.
  std::vector<std::unique_ptr<Seat>> ended_;
};

}  // namespace leasehold::node
