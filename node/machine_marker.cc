#include <leasehold/base/coding.h>
#include <leasehold/node/machine_marker.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

namespace leasehold::node {
namespace {

// The page as the specification of the VM clock device lays it out (struct vmclock_abi of Linux).
// All of it is little-endian.
constexpr std::size_t kPageBytes = 4096;
//   magic u32, size of the structure u32, version u16, other fields, marker u64 at offset 16
constexpr std::size_t kMarkerAt = 16;
constexpr std::uint32_t kMagic = 0x4b4c4356;  // "VCLK"
constexpr std::uint16_t kVersion = 1;
/// The group of events that the kernel itself sends, not udev.
constexpr std::uint32_t kKernelEvents = 1;

std::string reason() {
  return std::system_category().message(errno);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::unique_ptr<MachineMarker>> MachineMarker::open(const Options& options) {
  std::unique_ptr<MachineMarker> marker(new MachineMarker());
  if (!options.vm_clock.empty()) {
    const auto mapped = marker->map(options.vm_clock);
    if (!mapped.ok() && options.vm_clock_required) return mapped.error();
  }
  if (options.generation_events) marker->listen();
  return marker;
}

MachineMarker::~MachineMarker() {
  if (listener_.joinable()) {
    const std::uint64_t one = 1;
    while (::write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    listener_.join();
  }
  if (events_ >= 0) ::close(events_);
  if (wake_ >= 0) ::close(wake_);
  if (page_ != nullptr) ::munmap(const_cast<unsigned char*>(page_), kPageBytes);
}

Result<void> MachineMarker::map(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return Error{ErrorCode::io, fmt::format("{}: {}. This machine may have no VM clock device; "
                                            "--vm-clock off goes on without it",
                                            path, reason())};
  }
  struct stat about {};
  if (::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode) &&
      about.st_size < static_cast<off_t>(kPageBytes)) {
    return Error{ErrorCode::malformed,
                 fmt::format("{} is not a VM clock: it is shorter than a page", path)};
  }
  void* const mapped = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) {
    return Error{ErrorCode::io, fmt::format("{} cannot be mapped: {}", path, reason())};
  }
  page_ = static_cast<const volatile unsigned char*>(mapped);
  path_ = path;
  std::array<char, kMarkerAt> head{};
  for (std::size_t i = 0; i < head.size(); ++i) head[i] = static_cast<char>(page_[i]);
  LittleReader in({head.data(), head.size()});
  const bool ours = in.u32() == kMagic;
  const std::uint32_t size = in.u32();
  const std::uint16_t version = in.u16();
  if (ours && version == kVersion && size >= kMarkerAt + sizeof(std::uint64_t)) {
    first_ = this->marker();
    return {};
  }
  ::munmap(mapped, kPageBytes);
  page_ = nullptr;
  if (!ours) {
    return Error{ErrorCode::malformed,
                 fmt::format("{} is not a VM clock: it begins with other bytes", path)};
  }
  return Error{ErrorCode::unsupported_format,
               fmt::format("{} is a VM clock of version {}; this build knows version {}", path,
                           version, kVersion)};
}

/// Not converted to the host's byte order: it is only compared.
std::uint64_t MachineMarker::marker() const {
  return *reinterpret_cast<const volatile std::uint64_t*>(page_ + kMarkerAt);
}

/// Where there is no such socket, as in some containers, this does nothing.
void MachineMarker::listen() {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelEvents;
  events_ = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  if (events_ < 0 || wake_ < 0 ||
      ::bind(events_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return;
  }
  listener_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "lh-marker");
    std::array<char, 8192> event{};
    std::array<pollfd, 2> waiting{{{events_, POLLIN, 0}, {wake_, POLLIN, 0}}};
    while (::poll(waiting.data(), waiting.size(), -1) >= 0 || errno == EINTR) {
      if (waiting[1].revents != 0) return;
      sockaddr_nl sender{};
      socklen_t length = sizeof(sender);
      const ssize_t size = ::recvfrom(events_, event.data(), event.size(), 0,
                                      reinterpret_cast<sockaddr*>(&sender), &length);
      // Events were lost, and one may have been ours: a restart costs less than a wrong read.
      const bool lost = size < 0 && errno == ENOBUFS;
      // Only the kernel has the number 0.
      const bool told = size > 0 && sender.nl_pid == 0 &&
                        tells_new_generation(event.data(), static_cast<std::size_t>(size));
      if (lost || told) generation_changed_.store(true, std::memory_order_release);
    }
  });
}

std::string MachineMarker::watched() const {
  constexpr const char* kGeneration = "the kernel's VM generation";
  if (page_ == nullptr) return listener_.joinable() ? kGeneration : "nothing";
  if (!listener_.joinable()) return fmt::format("the VM clock {}", path_);
  return fmt::format("the VM clock {} and {}", path_, kGeneration);
}

/// "change@/devices/…", and then assignments, each with a zero byte behind it.
bool tells_new_generation(const char* event, std::size_t size) {
  std::string_view rest(event, size);
  bool change = false;
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('\0'));
    change = change || field == "ACTION=change";
    if (change && field.rfind("NEW_VMGENID=", 0) == 0) return true;
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  }
  return false;
}

}  // namespace leasehold::node
