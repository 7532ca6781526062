// For a node that keeps its whole log.
#pragma once

#include <leasehold/node/driver.h>

#include <functional>

namespace leasehold::node {

/// Neither takes nor accepts snapshots: every answer is `unsupported`, or a refusal.
class NoSnapshots final : public Snapshots {
 public:
  /// `post` is given each answer during the call that it answers; it must not enter the Driver.
  explicit NoSnapshots(std::function<void(Event)> post);

  void make_durable() override;
  void take() override;
  void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
            std::size_t bytes) override;
  void release(std::uint64_t tag) override;
  void store(const raft::ReceivedChunk& received) override;
  void discard() override;

 private:
  std::function<void(Event)> post_;
};

}  // namespace leasehold::node
