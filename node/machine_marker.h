// Detects that this virtual machine was stopped, moved or restored, which its clocks may not show.
#pragma once

#include <leasehold/base/result.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace leasehold::node {

/// A guest cannot see from its clocks how long its host had stopped it: they may continue as if
/// nothing had happened. Two devices show it. The VM clock device (/dev/vmclock0, Linux 6.14) is a
/// page of memory that the host writes; a counter in it, the disruption marker, changes with each
/// stop that the clocks may have missed. The VM generation device makes the kernel send an event
/// (NEW_VMGENID, Linux 6.10) when the machine continues from a snapshot.
class MachineMarker {
 public:
  struct Options {
    /// The page of the VM clock device. Empty: it is not used.
    std::string vm_clock;
    /// False: a missing `vm_clock` is not an error.
    bool vm_clock_required = false;
    /// Whether to listen for the kernel's events of a new generation, which takes a thread.
    bool generation_events = true;
  };
  /// Where the kernel shows the device.
  static constexpr const char* kVmClock = "/dev/vmclock0";

  /// Watches the devices that the machine has; most have neither. Errors: io, malformed,
  /// unsupported_format: a `vm_clock` that is required cannot be used.
  static Result<std::unique_ptr<MachineMarker>> open(const Options& options);
  ~MachineMarker();
  MachineMarker(const MachineMarker&) = delete;
  MachineMarker& operator=(const MachineMarker&) = delete;

  /// Whether the machine was stopped since open(). Once true, it stays true. Any thread; two loads
  /// from memory. Ask *after* reading the clock: then a stop between the two is seen.
  bool changed() const {
    return generation_changed_.load(std::memory_order_acquire) ||
           (page_ != nullptr && marker() != first_);
  }
  /// "the VM clock /dev/vmclock0 and the kernel's VM generation", "nothing".
  std::string watched() const;

 private:
  MachineMarker() = default;
  Result<void> map(const std::string& path);
  void listen();
  std::uint64_t marker() const;

  std::string path_;
  const volatile unsigned char* page_ = nullptr;
  std::uint64_t first_ = 0;
  std::atomic<bool> generation_changed_{false};
  int events_ = -1;
  int wake_ = -1;  ///< ends the thread
  std::thread listener_;
};

/// Whether a kernel event, as it comes from the socket, says that the machine has a new generation.
bool tells_new_generation(const char* event, std::size_t size);

}  // namespace leasehold::node
